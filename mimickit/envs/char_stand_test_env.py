"""Puts a character down and lets its drives hold it, to see whether its gains, masses and contacts are right."""

from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from mimickit.envs.char_env import CharEnv


class CharStandTestEnv(CharEnv):
    """The character begins in its initial pose, in which its drives are told to stay. Actions mean nothing.

    An episode lasts episode_length, whether it stands or falls.
    """

    def _build_action_space(self) -> gymnasium.spaces.Box:
        super()._build_action_space()  # refuses an engine without drives
        return gymnasium.spaces.Box(np.zeros(1, dtype=np.float32), np.zeros(1, dtype=np.float32), dtype=np.float32)

    def _apply_action(self, action: Tensor) -> None:
        self._engine.set_cmd(self._char_id, self._init_pose[6:].expand(self.num_envs, -1))

    def _compute_done(self) -> Tensor:
        return torch.zeros(self.num_envs, dtype=torch.int64, device=self.device)

    def _film_name(self) -> str:
        return f"{self._char_file.stem}_stand"

    def episode_facts(self, env_id: int) -> dict[str, Any]:
        return {"height": float(self._engine.get_root_pos(self._char_id)[env_id, 2])}
