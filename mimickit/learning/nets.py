"""Networks by name."""

import re
from collections.abc import Callable

import torch
from torch import nn

from mimickit.learning.agent_config import NetSpec
from mimickit.util.keys import ConfigError, nearest
from mimickit.util.loading import load_object

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "elu": nn.ELU, "silu": nn.SiLU, "tanh": nn.Tanh}
_NAME = re.compile(r"fc_(\d+)layers?_(\d+)units?")


def layer_sizes(name: str) -> list[int] | None:
    """The sizes that a name such as fc_3layers_1024units stands for: all layers of m units, the last of half as many.

    So fc_2layers_1024units is the 1024-512 of DeepMimic. None: not a name of this form.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    layers, units = int(match[1]), int(match[2])
    return [units] * (layers - 1) + [max(1, units // 2)] if layers > 1 else [units] * layers


def build_trunk(spec: NetSpec, input_size: int, activation: str, source: str) -> tuple[nn.Module, int]:
    """A network without its output layer, and how many features it gives.

    Args:
        spec: fc_{n}layers_{m}units, a list of layer sizes, or ``package.module:function``, a function of the input's
            size that returns a module of (N, input_size) -> (N, any). activation: relu, elu, silu, tanh.
        source: file and key, for errors.

    Raises:
        ConfigError: an unknown name or activation, no layer, a function that isn't there or gives no such module.
    """
    if isinstance(spec, str) and ":" in spec:
        return _from_function(spec, input_size, source)
    if activation not in ACTIVATIONS:
        raise ConfigError(f"{source}: activation: found {activation!r}{nearest(activation, ACTIVATIONS)}")
    sizes = layer_sizes(spec) if isinstance(spec, str) else list(spec)
    if not sizes or min(sizes) < 1:
        raise ConfigError(
            f"{source}: expected fc_{{n}}layers_{{m}}units (e.g. fc_2layers_128units), a list of layer sizes or "
            f"package.module:function, found {spec!r}"
        )
    modules: list[nn.Module] = []
    for inputs, outputs in zip([input_size, *sizes], sizes, strict=False):
        modules += [nn.Linear(inputs, outputs), ACTIVATIONS[activation]()]
    return nn.Sequential(*modules), sizes[-1]


def _from_function(path: str, input_size: int, source: str) -> tuple[nn.Module, int]:
    function: Callable[[int], nn.Module] = load_object(path, source)
    module = function(input_size)
    with torch.no_grad():
        features = module(torch.zeros(1, input_size)) if isinstance(module, nn.Module) else None
    if features is None or features.dim() != 2:
        raise ConfigError(f"{source}: {path!r}: expected a torch module that gives (N, features), found {module!r}")
    return module, int(features.shape[1])
