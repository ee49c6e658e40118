"""Policies of any library as one function."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mimickit.envs.base_env import BaseEnv
from mimickit.factory import load_agent
from mimickit.learning.base_agent import BaseAgent
from mimickit.util.keys import ConfigError

Actor = Callable[[Any, NDArray[np.bool_]], Any]
"""Actions of observations, in the form of the environment that gave them, and where an episode begins (num_envs,)."""
RawObs = Callable[[], NDArray[np.float32]]
"""The last observations (num_envs, O) of our environment, before any wrapper."""


def actor_of(policy: Any, env: BaseEnv | None, raw_obs: RawObs, *, deterministic: bool = True) -> Actor:
    """The function that plays a policy.

    Args:
        policy: an agent of ours, the path of a model or its folder, anything with predict() as Stable-Baselines3's
            policies and algorithms, or a callable obs -> action. env: ours at the bottom of what is played, if it is.
        raw_obs: what an agent of ours is given, since it normalises observations itself.

    Raises:
        ConfigError: none of these, or a policy of ours for an environment that is not.
    """
    if isinstance(policy, (str, Path)):
        if env is None:
            raise ConfigError(f"policy: {policy}: a model of MimicKit needs an environment of MimicKit")
        policy = load_agent(policy, env)
    if isinstance(policy, BaseAgent):
        return _actor_of_agent(policy, env, raw_obs)
    if hasattr(policy, "predict"):
        return _actor_of_predictor(policy, deterministic=deterministic)
    if callable(policy):
        return lambda obs, starts: _plain(policy(obs))
    raise ConfigError(
        f"policy: expected an agent, the path of a model, something with predict(), or a callable, found {policy!r}"
    )


def _actor_of_agent(agent: BaseAgent, env: BaseEnv | None, raw_obs: RawObs) -> Actor:
    if env is None:
        raise ConfigError("policy: an agent of MimicKit needs an environment of MimicKit")
    return lambda obs, starts: agent.act(torch.from_numpy(raw_obs())).cpu().numpy()


def _actor_of_predictor(policy: Any, *, deterministic: bool) -> Actor:
    state: Any = None

    def act(obs: Any, starts: NDArray[np.bool_]) -> Any:
        nonlocal state
        action, state = policy.predict(obs, state=state, episode_start=starts, deterministic=deterministic)
        return action

    return act


def _plain(action: Any) -> Any:
    """Tensors as arrays."""
    return action.detach().cpu().numpy() if isinstance(action, torch.Tensor) else action
