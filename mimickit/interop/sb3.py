"""Environments of ours as Stable-Baselines3's VecEnv, and our agents as its policies."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mimickit.envs.base_env import BaseEnv
from mimickit.interop.numpy_env import NumpyEnv
from mimickit.learning.base_agent import BaseAgent

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError:
    raise ImportError("mimickit.interop.sb3 needs Stable-Baselines3: pip install stable-baselines3") from None

Indices = int | Iterable[int] | None


class SB3VecEnv(VecEnv):  # type: ignore[misc]
    """All environments of one simulation. Those that are done are reset in the same step.

    infos of a done one have terminal_observation, TimeLimit.truncated (its time was over; else it failed or succeeded)
    and outcome (fail, success, time).
    """

    def __init__(self, env: BaseEnv, *, render_mode: str | None = None) -> None:
        """env: from make_env(), or one's own. render_mode: rgb_array or None."""
        self.numpy_env = NumpyEnv(env, render_mode)
        self.env = env
        self.render_mode = render_mode
        super().__init__(env.num_envs, env.obs_space, env.action_space)
        self.metadata: dict[str, Any] = {**self.numpy_env.metadata(), "render_modes": ["human", "rgb_array"]}
        self._actions: NDArray[np.float32] | None = None

    def reset(self) -> NDArray[np.float32]:
        """Begin episodes everywhere, with the seed of seed() if there was one; observations (num_envs, O)."""
        self.numpy_env.seed(self._seeds[0])
        self._reset_seeds()
        self._reset_options()
        self.reset_infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        return self.numpy_env.reset()

    def step_async(self, actions: NDArray[np.float32]) -> None:
        """Actions (num_envs, A) of the next step_wait()."""
        self._actions = actions

    def step_wait(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Observations (num_envs, O), rewards, dones (num_envs,) and infos of the step."""
        step = self.numpy_env.step(self._actions)
        infos: list[dict[str, Any]] = [
            {key: value[i] for key, value in step.info.items()} for i in range(self.num_envs)
        ]
        obs = step.obs
        if step.done.any():
            for i in np.flatnonzero(step.done):
                infos[i] |= {
                    "terminal_observation": step.obs[i].copy(),
                    "TimeLimit.truncated": bool(step.truncated[i]),
                    "outcome": step.outcome[i],
                }
                self.reset_infos[i] = {}
            obs = self.numpy_env.reset(step.done)
        return obs, step.reward, step.done, infos

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """The present states, each (height, width, 3) uint8 RGB."""
        return [None] * self.num_envs if self.render_mode is None else self.env.render()

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """An attribute of the environments: they share one, the adapter's or the environment's."""
        own = attr_name in ("render_mode", "metadata")
        return [getattr(self if own else self.env, attr_name)] * len(self._ids(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Set an attribute of the environment, for all of them."""
        setattr(self if attr_name == "render_mode" else self.env, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of the environment once; its result for each index. render gives the pictures of each."""
        if method_name == "render":
            return list(self.env.render(self._ids(indices)))
        return [getattr(self.env, method_name)(*method_args, **method_kwargs)] * len(self._ids(indices))

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Indices = None) -> list[bool]:
        """Never: the environments are not Gymnasium's."""
        return [False] * len(self._ids(indices))

    def _ids(self, indices: Indices) -> list[int]:
        return [int(i) for i in self._get_indices(indices)]

    def close(self) -> None:
        """Free what the environment holds."""
        self.env.close()


class AgentPolicy:
    """An agent of ours with predict(), as evaluate_policy() and others want it."""

    def __init__(self, agent: BaseAgent) -> None:
        self._agent = agent

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[NDArray[np.float32], Any]:
        """The agent's mean actions (N, A) or (A,) of observations (N, O) or (O,), not normalised; and state."""
        obs = torch.as_tensor(np.asarray(observation, dtype=np.float32))
        action = self._agent.act(torch.atleast_2d(obs)).cpu().numpy()
        return (action if obs.ndim > 1 else action[0]), state
