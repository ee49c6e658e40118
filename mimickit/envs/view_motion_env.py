"""Plays a motion clip on its character: nothing is learned, no policy is needed, the clip itself is filmed."""

from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import torch
from torch import Tensor

from mimickit.anim.motion import LoopMode
from mimickit.anim.motion_lib import MotionLib
from mimickit.envs.base_env import DoneFlags
from mimickit.envs.char_env import CharEnv
from mimickit.util.keys import ConfigError


class ViewMotionEnv(CharEnv):
    """The character is put into the clip's pose at every step; actions mean nothing.

    With several clips every episode plays the next one, the environments side by side. Episodes end with a clip that
    does not loop; a looping one goes on for episode_length.
    """

    KEYS: ClassVar[tuple[str, ...]] = (*CharEnv.KEYS, "motion_file")
    IS_VISUAL: ClassVar[bool] = True

    def _prepare(self) -> None:
        super()._prepare()
        if "motion_file" not in self._config:
            raise ConfigError(f"{self._source}: motion_file is missing: expected the path of a clip or a dataset YAML")

    def _build(self) -> None:
        self._lib = MotionLib(self._config["motion_file"], self._char, device=self.device)
        self._motion_ids = torch.zeros(self.num_envs, dtype=torch.int64, device=self.device)
        self._clamped = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        self._lengths = torch.zeros(self.num_envs, device=self.device)
        super()._build()

    def _build_action_space(self) -> gymnasium.spaces.Box:
        return gymnasium.spaces.Box(np.zeros(1, dtype=np.float32), np.zeros(1, dtype=np.float32), dtype=np.float32)

    def _apply_action(self, action: Tensor) -> None:
        self._pose(torch.arange(self.num_envs, device=self.device), (self._steps + 1) * self._dt)

    def _reset_envs(self, env_ids: Tensor) -> None:
        clips = (env_ids + self._episodes[env_ids] * self.num_envs) % self._lib.num_motions
        self._motion_ids[env_ids] = clips
        self._clamped[env_ids] = self._lib.loop_modes[clips] == LoopMode.CLAMP
        self._lengths[env_ids] = self._lib.lengths[clips]
        self._pose(env_ids, torch.zeros(len(env_ids), device=self.device))

    def _pose(self, env_ids: Tensor, times: Tensor) -> None:
        """Stand still in the clip's pose at times (n,) s: with no velocity, the engine's step leaves it as it is."""
        frame = self._lib.frame(self._motion_ids[env_ids], times)
        self._set_char(env_ids, frame.root_pos, frame.root_rot, self._char.rot_to_dof(frame.joint_rot))

    def _compute_done(self) -> Tensor:
        ended = self._clamped & (self._steps * self._dt >= self._lengths - 1e-4)
        return torch.where(ended, DoneFlags.TIME, DoneFlags.NULL)

    def _film_name(self) -> str:
        return Path(self._config["motion_file"]).stem

    def episode_facts(self, env_id: int) -> dict[str, Any]:
        return {"motion": Path(self._lib.motion_files[int(self._motion_ids[env_id])]).name}
