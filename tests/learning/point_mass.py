"""A small real task to learn: point masses that follow a target moving on a circle."""

import math
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from mimickit.envs.base_env import BaseEnv, DoneFlags, EnvMode

_DT = 0.1  # s
_FAIL_DISTANCE = 2.0  # m
_SPEED = 1.0  # rad/s of the target on the unit circle


class PointMassEnv(BaseEnv):
    """A double integrator in the plane, driven by its acceleration; reward exp(-distance^2), at best 1."""

    def __init__(self, *, num_envs: int = 16, seed: int = 0, steps: int = 40) -> None:
        super().__init__(num_envs=num_envs, seed=seed)
        self.max_episode_steps = steps
        self.obs_space = gymnasium.spaces.Box(-np.inf, np.inf, (8,), dtype=np.float32)
        self.action_space = gymnasium.spaces.Box(-4.0, 4.0, (2,), dtype=np.float32)
        self._pos, self._vel = torch.zeros(num_envs, 2), torch.zeros(num_envs, 2)
        self._phase = torch.zeros(num_envs)
        self._steps = torch.zeros(num_envs, dtype=torch.int64)
        self.resets = 0
        self.modes: list[EnvMode] = []

    def set_mode(self, mode: EnvMode) -> None:
        super().set_mode(mode)
        self.modes.append(mode)

    def reset(self, env_ids: Tensor | None = None) -> Tensor:
        ids = torch.arange(self.num_envs) if env_ids is None else env_ids
        self.resets += len(ids)
        self._phase[ids] = torch.rand(len(ids), generator=self._generator) * 2.0 * math.pi
        self._pos[ids] = self._target()[ids] + 0.3 * torch.randn(len(ids), 2, generator=self._generator)
        self._vel[ids] = 0.0
        self._steps[ids] = 0
        return self._observe()

    def step(self, action: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        self._vel += _DT * action.clamp(-4.0, 4.0)
        self._pos += _DT * self._vel
        self._phase += _DT * _SPEED
        self._steps += 1
        distance = (self._pos - self._target()).norm(dim=-1)
        done = torch.where(self._steps >= self.max_episode_steps, DoneFlags.TIME, DoneFlags.NULL)
        done = torch.where(distance > _FAIL_DISTANCE, DoneFlags.FAIL, done)
        return self._observe(), torch.exp(-distance.square()), done, {}

    def _target(self) -> Tensor:
        return torch.stack([self._phase.cos(), self._phase.sin()], dim=-1)

    def _observe(self) -> Tensor:
        target = self._target()
        return torch.cat([self._pos, self._vel, target, target - self._pos], dim=-1)

    def record_diagnostics(self) -> dict[str, float]:
        return {"distance_m": float((self._pos - self._target()).norm(dim=-1).mean())}

    def state_dict(self) -> dict[str, Any]:
        own = {"pos": self._pos, "vel": self._vel, "phase": self._phase, "steps": self._steps}
        return {**super().state_dict(), **{name: tensor.clone() for name, tensor in own.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        for name in ("pos", "vel", "phase", "steps"):
            getattr(self, f"_{name}").copy_(state[name])
