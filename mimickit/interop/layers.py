"""The layers of an environment of any library, from the outermost wrapper down, and how they are left undisturbed."""

import contextlib
import copy
import inspect
import random
from collections import deque
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

import numpy as np
import torch
from torch import nn

from mimickit.envs.base_env import BaseEnv

_INNER = ("venv", "env", "envs")  # attributes in which wrappers and vectors keep what is below them
_PLAIN = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    Enum,
    type,
    np.generic,
    np.dtype,
    torch.dtype,
    torch.device,
)
_STATE = (*_PLAIN, np.ndarray, np.random.Generator, np.random.RandomState, random.Random, torch.Tensor, nn.Module)
_RESOURCES = {"multiprocessing", "threading", "concurrent", "subprocess", "socket", "io", "_io", "ctypes", "logging"}


def layers_of(env: Any) -> list[Any]:
    """The environment and everything below it, outermost first."""
    found: list[Any] = []
    waiting = [env]
    while waiting:
        layer = waiting.pop(0)
        if any(layer is other for other in found):
            continue
        found.append(layer)
        if not isinstance(layer, BaseEnv):
            for name in _INNER:
                inner = vars(layer).get(name)
                waiting += inner if isinstance(inner, (list, tuple)) else [inner] if _is_env(inner) else []
    return found


def bare(env: BaseEnv) -> BaseEnv:
    """Our environment below the wrappers that are ours too, which keep it as ``inner``: they are not to see a film."""
    while isinstance(inner := vars(env).get("inner"), BaseEnv):
        env = inner
    return env


def _is_env(value: Any) -> bool:
    return value is not None and hasattr(value, "reset") and hasattr(value, "__dict__")


def our_envs(layers: Sequence[Any]) -> list[BaseEnv]:
    """The environments of ours among the layers."""
    return [layer for layer in layers if isinstance(layer, BaseEnv)]


@contextlib.contextmanager
def undisturbed(layers: Sequence[Any], policy: Any) -> Iterator[None]:
    """Whatever is stepped, drawn or learnt inside the with block: afterwards everything is where it was.

    That is the state of our environments, the attributes of all wrappers (statistics of normalisers, episodes under
    way, stacked frames, ...), Python's, numpy's and torch's global random states, and whether modules of the policy
    train. Within it, normalisers learn nothing and monitors write no files. Of other libraries' environments the
    attributes are kept as far as they can be copied; what runs in another process is out of reach.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_random_states())
        stack.enter_context(_training_flags(policy))
        stack.enter_context(_mujoco_states(layers))
        for env in our_envs(layers):
            stack.enter_context(_state_of(env))
        stack.enter_context(_copies_in_place(layers))
        _freeze(layers)
        yield


@contextlib.contextmanager
def _random_states() -> Iterator[None]:
    python, legacy, cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002
        torch.set_rng_state(cpu)
        if devices:
            torch.cuda.set_rng_state_all(devices)


@contextlib.contextmanager
def _training_flags(policy: Any) -> Iterator[None]:
    parts = (policy, getattr(policy, "policy", None), getattr(policy, "__self__", None))
    roots = [part for part in parts if isinstance(part, nn.Module)]
    flags = [(module, module.training) for root in roots for module in root.modules()]
    try:
        yield
    finally:
        for module, flag in flags:
            module.training = flag


@contextlib.contextmanager
def _state_of(env: BaseEnv) -> Iterator[None]:
    state = copy.deepcopy(env.state_dict())
    try:
        yield
    finally:
        env.load_state_dict(state)


@contextlib.contextmanager
def _copies_in_place(layers: Sequence[Any]) -> Iterator[None]:
    """Copies stand in for the layers' attributes; afterwards the originals, untouched, are back."""
    kept: list[tuple[Any, dict[str, Any]]] = []
    try:
        for layer in layers:
            kept.append((layer, dict(vars(layer))))
            memo = {id(other): other for other in layers}
            for name, value in kept[-1][1].items():
                if name not in _INNER and _is_copied(value, layer):
                    with contextlib.suppress(Exception):  # a class may refuse to be copied
                        vars(layer)[name] = copy.deepcopy(value, memo)
        yield
    finally:
        for layer, attributes in kept:
            vars(layer).clear()
            vars(layer).update(attributes)


def _is_copied(value: Any, layer: Any) -> bool:
    """Whether a copy can stand in for an attribute. Of our own environments objects are left out: what belongs to an
    episode is in numbers and tensors there, and objects, such as the motion library, may be large.
    """
    if isinstance(layer, BaseEnv) and not isinstance(value, (*_STATE, list, tuple, dict, set)):
        return False
    return _is_state(value, set())


def _is_state(value: Any, seen: set[int]) -> bool:
    """Whether something is numbers all the way down: a copy of what holds a file, a process or a GL context would share
    it, and close it at its own end.
    """
    if isinstance(value, _STATE) or id(value) in seen:
        return True
    seen.add(id(value))
    if isinstance(value, dict):
        return all(_is_state(item, seen) for pair in value.items() for item in pair)
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return all(_is_state(item, seen) for item in value)
    if inspect.ismethod(value):
        return isinstance(value.__self__, nn.Module)  # a reward that is learnt
    if callable(value) or hasattr(value, "__del__") or type(value).__module__.partition(".")[0] in _RESOURCES:
        return False
    return hasattr(value, "__dict__") and all(_is_state(item, seen) for item in vars(value).values())


@contextlib.contextmanager
def _mujoco_states(layers: Sequence[Any]) -> Iterator[None]:
    """The simulations of Gymnasium's own MuJoCo environments: no copy can stand in, since their renderers hold them."""
    import mujoco

    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    kept = []
    for layer in layers:
        model, data = vars(layer).get("model"), vars(layer).get("data")
        if isinstance(data, mujoco.MjData) and isinstance(model, mujoco.MjModel):
            state = np.empty(mujoco.mj_stateSize(model, kind))
            mujoco.mj_getState(model, data, state, kind)
            kept.append((model, data, state))
    try:
        yield
    finally:
        for model, data, state in kept:
            mujoco.mj_setState(model, data, state, kind)
            mujoco.mj_forward(model, data)


def _freeze(layers: Sequence[Any]) -> None:
    """Normalisers learn nothing, monitors write nothing; the originals come back with the other attributes."""
    for layer in layers:
        own = vars(layer)
        if any(cls.__name__ == "VecNormalize" for cls in type(layer).__mro__):
            own["training"] = False
        if "results_writer" in own:
            own["results_writer"] = None
        for name in ("update_running_mean", "_update_running_mean"):  # Gymnasium's normalisers
            if name in own:
                own[name] = False
