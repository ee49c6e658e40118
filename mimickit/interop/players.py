"""Environments of any library, stepped in one way."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from mimickit.envs.base_env import BaseEnv
from mimickit.interop.numpy_env import Bools, NumpyEnv
from mimickit.interop.policies import Actor
from mimickit.util.keys import ConfigError


class Player(Protocol):
    """Steps num_envs environments that are reset by themselves when they are done."""

    num_envs: int
    shows_end: bool  # whether after a step in which an episode ends the pictures show its end, not the next beginning

    def reset(self) -> Any:
        """Begin episodes everywhere; returns observations in the library's form."""

    def step(self, action: Any) -> tuple[Any, NDArray[Any], Bools]:
        """Observations, rewards (num_envs,), and where an episode has ended (num_envs,)."""

    def pictures(self) -> Sequence[Any]:
        """What render() gives, one an environment."""

    def facts(self) -> dict[str, Any]:
        """The environments' metadata."""


def player_of(env: Any) -> Player:
    """What steps an environment. Raises ConfigError for something that is none."""
    if isinstance(env, OurPlayer):
        return env
    if isinstance(env, gymnasium.vector.VectorEnv):  # in Gymnasium 0.29 also an Env
        return _VectorPlayer(env)
    if isinstance(env, gymnasium.Env):
        return _SinglePlayer(env)
    if hasattr(env, "step_async") and hasattr(env, "env_method"):
        return _SB3Player(env)
    raise ConfigError(
        "eval_venv: expected an environment of MimicKit, Stable-Baselines3 or Gymnasium, "
        f"found {type(env).__module__}.{type(env).__name__}"
    )


class OurPlayer:
    """An environment of ours without any adapter."""

    shows_end = False

    def __init__(self, env: BaseEnv) -> None:
        self.numpy_env = NumpyEnv(env)
        self.env = env
        self.num_envs = env.num_envs

    def reset(self) -> Any:
        """As Player."""
        return self.numpy_env.reset()

    def step(self, action: Any) -> tuple[Any, NDArray[Any], Bools]:
        """As Player."""
        step = self.numpy_env.step(action)
        obs = self.numpy_env.reset(step.done) if step.done.any() else step.obs
        return obs, step.reward, step.done

    def pictures(self) -> Sequence[Any]:
        """As Player."""
        return self.env.render()

    def facts(self) -> dict[str, Any]:
        """As Player."""
        return self.numpy_env.metadata()


class _SB3Player:
    shows_end = False

    def __init__(self, env: Any) -> None:
        self._env = env
        self.num_envs = int(env.num_envs)

    def reset(self) -> Any:
        return self._env.reset()

    def step(self, action: Any) -> tuple[Any, NDArray[Any], Bools]:
        obs, reward, done, _ = self._env.step(action)
        if hasattr(self._env, "get_original_reward"):
            reward = self._env.get_original_reward()
        return obs, np.asarray(reward), np.asarray(done, dtype=np.bool_)

    def pictures(self) -> Sequence[Any]:
        images: Sequence[Any] = self._env.get_images()
        return images

    def facts(self) -> dict[str, Any]:
        metadata: dict[str, Any] = self._env.get_attr("metadata")[0]
        return metadata


class _VectorPlayer:
    def __init__(self, env: Any) -> None:
        self._env = env
        self.num_envs = int(env.num_envs)
        mode = getattr((env.metadata or {}).get("autoreset_mode"), "name", "SAME_STEP")
        self.shows_end = mode == "NEXT_STEP"
        self._resets = mode == "DISABLED"

    def reset(self) -> Any:
        return self._env.reset()[0]

    def step(self, action: Any) -> tuple[Any, NDArray[Any], Bools]:
        obs, reward, terminated, truncated, _ = self._env.step(action)
        done = np.asarray(terminated | truncated, dtype=np.bool_)
        if self._resets and done.any():
            obs, _ = self._env.reset(options={"reset_mask": done})
        return obs, np.asarray(reward), done

    def pictures(self) -> Sequence[Any]:
        try:
            return self._env.render() or [None] * self.num_envs
        except NotImplementedError:  # vectors of Gymnasium 0.29
            pictures: Sequence[Any] = self._env.call("render")
            return pictures

    def facts(self) -> dict[str, Any]:
        return self._env.metadata or {}


class _SinglePlayer:
    num_envs = 1
    shows_end = True

    def __init__(self, env: Any) -> None:
        self._env = env
        self._waits = False

    def reset(self) -> Any:
        return self._env.reset()[0]

    def step(self, action: Any) -> tuple[Any, NDArray[Any], Bools]:
        if self._waits:
            obs, self._waits = self._env.reset()[0], False
            return obs, np.zeros(1), np.zeros(1, dtype=np.bool_)
        if np.ndim(action) > len(self._env.action_space.shape or ()):  # of a policy that sees batches
            action = action[0]
        obs, reward, terminated, truncated, _ = self._env.step(action)
        self._waits = bool(terminated or truncated)
        return obs, np.array([reward], dtype=np.float64), np.array([self._waits])

    def pictures(self) -> Sequence[Any]:
        return [self._env.render()]

    def facts(self) -> dict[str, Any]:
        return self._env.metadata or {}


@dataclass(frozen=True)
class Played:
    """What happened in a step; before the first step, nothing."""

    reward: NDArray[Any]  # (num_envs,)
    done: Bools  # (num_envs,)
    is_last: bool = False


def play(
    player: Player, actor: Actor, shown: Sequence[int], *, num_episodes: int, max_steps: int | None
) -> Iterator[Played]:
    """Play from a reset until every environment in shown has ended num_episodes, or for max_steps; the first is the
    reset.
    """
    left = np.zeros(player.num_envs, dtype=np.int64)
    left[list(shown)] = num_episodes
    obs, starts, steps = player.reset(), np.ones(player.num_envs, dtype=np.bool_), 0
    yield Played(np.zeros(player.num_envs), np.zeros(player.num_envs, dtype=np.bool_))
    while (left > 0).any() and steps != max_steps:
        obs, reward, starts = player.step(actor(obs, starts))
        left -= starts
        steps += 1
        yield Played(reward, starts, is_last=not (left > 0).any())
