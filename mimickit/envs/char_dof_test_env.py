"""Moves a character's dofs one after the other, to see that a new character file means what its author thinks."""

import math
from typing import Any, ClassVar

import gymnasium
import numpy as np
import torch
from torch import Tensor

from mimickit.envs.char_env import CharEnv
from mimickit.util.keys import ConfigError

_SECONDS_A_DOF = 2.0
_LIFT = 1.5  # times the height at which a character stands: its legs have room to swing


class CharDofTestEnv(CharEnv):
    """The character hangs by its root; each dof swings once through its range while the others hold the initial pose.

    Actions mean nothing. An episode lasts until every dof has had its turn, or episode_length.
    """

    FIX_ROOT: ClassVar[bool] = True

    def _prepare(self) -> None:
        super()._prepare()
        if self._char.num_dofs == 0:
            raise ConfigError(f"{self._source}: char_file: {self._char_file}: expected a character with joints to "
                              "swing, found none")  # fmt: skip

    def _read_init_pose(self) -> Tensor:
        pose = super()._read_init_pose()
        if self._config.get("init_pose") is None:
            pose[2] *= _LIFT
        return pose

    def _build_action_space(self) -> gymnasium.spaces.Box:
        super()._build_action_space()  # refuses an engine without drives
        return gymnasium.spaces.Box(np.zeros(1, dtype=np.float32), np.zeros(1, dtype=np.float32), dtype=np.float32)

    def _apply_action(self, action: Tensor) -> None:
        turn = self._steps * self._dt / _SECONDS_A_DOF
        dof = torch.floor(turn).long() % self._char.num_dofs
        limits = self._char.dof_limits[dof]
        # out to the upper limit, back through the initial pose to the lower one, and home
        swing = torch.sin(2.0 * math.pi * torch.frac(turn))
        command = self._init_pose[6:].repeat(self.num_envs, 1)
        rest = self._init_pose[6:][dof]
        up, down = (limits[:, 1] - rest).clamp_min(0.0), (rest - limits[:, 0]).clamp_min(0.0)
        command[torch.arange(self.num_envs), dof] += swing * torch.where(swing > 0.0, up, down)
        self._engine.set_cmd(self._char_id, command)

    def _compute_done(self) -> Tensor:
        return torch.zeros(self.num_envs, dtype=torch.int64, device=self.device)

    def _film_name(self) -> str:
        return f"{self._char_file.stem}_dofs"

    def episode_facts(self, env_id: int) -> dict[str, Any]:
        return {"seconds_per_dof": _SECONDS_A_DOF}
