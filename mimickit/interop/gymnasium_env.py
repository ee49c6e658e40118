"""Environments of ours as Gymnasium's: Env and VectorEnv, for Gymnasium 0.29 and 1.x."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from mimickit.envs.base_env import BaseEnv
from mimickit.factory import DEFAULT_ENV, Config, make_env
from mimickit.interop.numpy_env import Bools, NumpyEnv, Step
from mimickit.util.keys import ConfigError, nearest

_MODES: Any = getattr(gymnasium.vector, "AutoresetMode", None)  # since 1.1
_AUTORESET = {"same_step": "SAME_STEP", "next_step": "NEXT_STEP", "disabled": "DISABLED"}


def make_single(
    env_config: Config = DEFAULT_ENV,
    engine_config: Config | None = None,
    *,
    render_mode: str | None = None,
    seed: int = 0,
    device: str = "cpu",
    video: Mapping[str, Any] | None = None,
) -> "GymnasiumEnv":
    """The entry point of the registered ids; arguments are make_env()'s. render_mode: rgb_array or None."""
    env = make_env(env_config, engine_config, seed=seed, device=device, video=video)
    return GymnasiumEnv(env, render_mode=render_mode)


def make_vector(
    num_envs: int = 1,
    env_config: Config = DEFAULT_ENV,
    engine_config: Config | None = None,
    *,
    render_mode: str | None = None,
    autoreset: str = "same_step",
    seed: int = 0,
    device: str = "cpu",
    video: Mapping[str, Any] | None = None,
) -> "GymnasiumVectorEnv":
    """The vector entry point of the registered ids: num_envs environments in one simulation."""
    env = make_env(env_config, engine_config, num_envs=num_envs, seed=seed, device=device, video=video)
    return GymnasiumVectorEnv(env, render_mode=render_mode, autoreset=autoreset)


class GymnasiumEnv(gymnasium.Env):  # type: ignore[misc]
    """One environment. An episode that fails or succeeds is terminated, one whose time is over is truncated."""

    def __init__(self, env: BaseEnv, *, render_mode: str | None = None) -> None:
        """env: with num_envs 1. render_mode: rgb_array or None."""
        if env.num_envs != 1:
            raise ConfigError(f"num_envs: expected 1 for a single Gymnasium Env, found {env.num_envs}")
        self.numpy_env = NumpyEnv(env, render_mode)
        self.env = env
        self.render_mode = render_mode
        self.metadata = self.numpy_env.metadata()
        self.observation_space, self.action_space = env.obs_space, env.action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an episode; returns obs (O,) and info."""
        super().reset(seed=seed)
        self.numpy_env.seed(seed)
        return self.numpy_env.reset()[0], {}

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Take an action (A,); returns obs (O,), reward, terminated, truncated, info (with outcome at the end)."""
        step = self.numpy_env.step(np.asarray(action)[None])
        info = {key: value[0] for key, value in step.info.items()}
        if step.outcome[0] is not None:
            info["outcome"] = step.outcome[0]
        return step.obs[0], float(step.reward[0]), bool(step.terminated[0]), bool(step.truncated[0]), info

    def render(self) -> NDArray[np.uint8] | None:
        """The present state (height, width, 3) uint8 RGB; None without a render mode."""
        return None if self.render_mode is None else self.env.render()[0]

    def close(self) -> None:
        """Free what the environment holds."""
        self.env.close()


class GymnasiumVectorEnv(gymnasium.vector.VectorEnv):  # type: ignore[misc]
    """All environments of one simulation.

    In which step an environment that is done is reset says metadata["autoreset_mode"] (Gymnasium 1.1 and newer).
    In the same step, info has its last observation and info: final_obs and final_info (in Gymnasium below 1.1
    final_observation and final_info).
    """

    def __init__(self, env: BaseEnv, *, render_mode: str | None = None, autoreset: str = "same_step") -> None:
        """render_mode: rgb_array or None. autoreset: same_step, next_step, or disabled: reset() is then told which
        environments to reset, options={"reset_mask": (num_envs,) bool}.
        """
        if autoreset not in _AUTORESET:
            raise ConfigError(f"autoreset: found {autoreset!r}{nearest(autoreset, _AUTORESET)}")
        self.numpy_env = NumpyEnv(env, render_mode)
        self.env = env
        self.num_envs = env.num_envs
        self.render_mode = render_mode
        self.closed = False
        self.is_vector_env, self.viewer = True, None  # of Gymnasium 0.29
        self.metadata = self.numpy_env.metadata()
        if _MODES is not None:
            self.metadata["autoreset_mode"] = _MODES[_AUTORESET[autoreset]]
        self.single_observation_space, self.single_action_space = env.obs_space, env.action_space
        self.observation_space = batch_space(env.obs_space, self.num_envs)
        self.action_space = batch_space(env.action_space, self.num_envs)
        self._autoreset = autoreset
        self._ended = np.zeros(self.num_envs, dtype=np.bool_)  # waiting for their reset

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin episodes everywhere, or where options["reset_mask"] is true; returns obs (num_envs, O) and info.

        Of several seeds the first counts: the environments share one simulation and one source of randomness.
        """
        first = seed if seed is None or isinstance(seed, int) else seed[0]
        if first is not None:
            self._np_random, self._np_random_seed = seeding.np_random(int(first))
            self.numpy_env.seed(first)
        mask = (options or {}).get("reset_mask")
        which = None if mask is None else np.asarray(mask, dtype=np.bool_)
        self._ended &= False if which is None else ~which
        return self.numpy_env.reset(which), {}

    def step(self, actions: Any) -> tuple[NDArray[np.float32], NDArray[np.float64], Bools, Bools, dict[str, Any]]:
        """Take actions (num_envs, A); returns obs (num_envs, O), reward, terminated, truncated (num_envs,), info."""
        step = self.numpy_env.step(actions)
        if self._autoreset == "next_step" and self._ended.any():
            return self._next_step(step)
        obs, info = step.obs, self._infos(step, ~step.done)
        if self._autoreset == "same_step" and step.done.any():
            info |= self._final(step)
            obs = self.numpy_env.reset(step.done)
        self._ended = step.done
        return obs, step.reward.astype(np.float64), step.terminated, step.truncated, info

    def _next_step(self, step: Step) -> tuple[NDArray[np.float32], NDArray[np.float64], Bools, Bools, dict[str, Any]]:
        """Environments that had ended are reset now: their action counts nothing."""
        fresh = self._ended
        obs = self.numpy_env.reset(fresh)
        reward = np.where(fresh, 0.0, step.reward.astype(np.float64))
        terminated, truncated = step.terminated & ~fresh, step.truncated & ~fresh
        self._ended = terminated | truncated
        return obs, reward, terminated, truncated, self._infos(step, ~fresh)

    def _infos(self, step: Step, which: Bools) -> dict[str, Any]:
        """Gymnasium's form: arrays (num_envs, ...), beside each the mask of the environments that it speaks of."""
        if self._autoreset != "same_step":
            which = which | step.done
        infos: dict[str, Any] = {}
        for key, value in step.info.items():
            infos[key], infos[f"_{key}"] = value, which.copy()
        if self._autoreset != "same_step" and (step.done & which).any():
            infos["outcome"] = np.array(step.outcome, dtype=object)
            infos["_outcome"] = step.done & which
        return infos

    def _final(self, step: Step) -> dict[str, Any]:
        """What environments that are reset in the same step end with."""
        done, ids = step.done, np.flatnonzero(step.done)
        last: NDArray[Any] = np.full(self.num_envs, None, dtype=object)
        for i in ids:
            last[i] = step.obs[i].copy()
        if _MODES is None:
            infos: NDArray[Any] = np.full(self.num_envs, None, dtype=object)
            for i in ids:
                infos[i] = {key: value[i] for key, value in step.info.items()} | {"outcome": step.outcome[i]}
            return {"final_observation": last, "_final_observation": done, "final_info": infos, "_final_info": done}
        final: dict[str, Any] = {"outcome": np.array(step.outcome, dtype=object), "_outcome": done}
        for key, value in step.info.items():
            final[key], final[f"_{key}"] = value, done.copy()
        return {"final_obs": last, "_final_obs": done, "final_info": final, "_final_info": done.copy()}

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """The present states, each (height, width, 3) uint8 RGB; None without a render mode."""
        return None if self.render_mode is None else tuple(self.env.render())

    def __del__(self) -> None:
        """Nothing: Gymnasium 0.29 would close here, when what closing needs may be gone; engines end by themselves."""

    def close_extras(self, **kwargs: Any) -> None:
        """Free what the environment holds."""
        self.env.close()
