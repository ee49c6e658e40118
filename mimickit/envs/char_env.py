"""An environment with one driven character."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import torch
from torch import Tensor

from mimickit.anim.char_model import CharModel
from mimickit.engines.engine import ControlMode, ObjType
from mimickit.envs import observations
from mimickit.envs.base_env import DoneFlags
from mimickit.envs.sim_env import SimEnv
from mimickit.util.keys import ConfigError, as_bool, as_floats, as_list
from mimickit.util.rotations import exp_map_to_quat

CHAR = "character"
# A hinge's target may leave its range by this part of it on either side, so that a PD drive, which trails its target,
# can reach the ends; a ball joint's targets span this much more than its greatest limit.
_HINGE_MARGIN = 0.2
_BALL_MARGIN = 1.2
_CONTACT_N = 0.1  # ground contact forces above this count (N)


class CharEnv(SimEnv):
    """The character stands in its initial pose; it is observed, driven by dof targets, and fails when it falls."""

    KEYS: ClassVar[tuple[str, ...]] = (
        *SimEnv.KEYS,
        "char_file",
        "global_obs",
        "root_height_obs",
        "init_pose",
        "contact_bodies",
        "key_bodies",
        "zero_center_action",
        "enable_early_termination",
        "objects",
    )
    FIX_ROOT: ClassVar[bool] = False
    IS_VISUAL: ClassVar[bool] = False

    def _prepare(self) -> None:
        super()._prepare()
        config, source = self._config, self._source
        if "char_file" not in config:
            raise ConfigError(f"{source}: char_file is missing: expected the path of a character or robot:NAME")
        if not isinstance(config["char_file"], (str, Path)):
            raise ConfigError(
                f"{source}: char_file: expected the path of a character or robot:NAME, found {config['char_file']!r}"
            )
        self._char_file = Path(config["char_file"])
        self._char = CharModel.from_file(self._char_file, self.device)
        self._global_obs = as_bool(config.get("global_obs", False), "global_obs", source)
        self._root_height_obs = as_bool(config.get("root_height_obs", True), "root_height_obs", source)
        self._early_end = as_bool(config.get("enable_early_termination", True), "enable_early_termination", source)
        self._key_ids = self._body_ids("key_bodies")
        self._must_not_touch = torch.ones(self._char.num_bodies, dtype=torch.bool, device=self.device)
        self._must_not_touch[self._body_ids("contact_bodies")] = False
        self._init_pose = self._read_init_pose().to(self.device)

    def _film_context(self) -> dict[str, Any]:
        return {**super()._film_context(), "key_bodies": list(self._config.get("key_bodies") or [])}

    def _body_ids(self, key: str) -> Tensor:
        """Indices of the bodies that config[key] names."""
        try:
            names = as_list(self._config.get(key) or [], key, self._source, "names of bodies")
            return torch.tensor([self._char.body_id(str(name)) for name in names], dtype=torch.int64)
        except KeyError as error:
            raise ConfigError(f"{self._source}: {key}: {error.args[0]}") from None

    def _read_init_pose(self) -> Tensor:
        """Root position 3, root exponential map 3, dofs; the default is the character's own pose to begin in."""
        pose = self._config.get("init_pose")
        size = 6 + self._char.num_dofs
        if pose is None:
            return torch.from_numpy(self._char.info.home).float()
        values = as_floats(pose, "init_pose", self._source)
        if len(values) != size:
            raise ConfigError(
                f"{self._source}: init_pose: expected {size} numbers for {self._char_file}, found {len(values)}"
            )
        return torch.tensor(values)

    # ------------------------------------------------------------------ building

    def _build_env(self, env_id: int) -> None:
        self._char_id = self._engine.create_obj(
            env_id, ObjType.ARTICULATED, self._char_file, CHAR, fix_root=self.FIX_ROOT, is_visual=self.IS_VISUAL,
            start_pos=self._init_pose[:3].numpy(),
        )  # fmt: skip
        for index, obj in enumerate(as_list(self._config.get("objects") or [], "objects", self._source, "blocks")):
            if not isinstance(obj, Mapping):
                raise ConfigError(f"{self._source}: objects[{index}]: expected a block of keys, found {obj!r}")
            if "file" not in obj:
                raise ConfigError(f"{self._source}: objects[{index}]: expected the key 'file', found {sorted(obj)}")
            self._engine.create_obj(
                env_id, ObjType.RIGID, obj["file"], f"object{index}",
                start_pos=obj.get("pos"), start_rot=obj.get("rot"),
                fix_root=as_bool(obj.get("fix_root", True), f"objects[{index}].fix_root", self._source),
            )  # fmt: skip

    def _build_action_space(self) -> gymnasium.spaces.Box:
        mode = self._engine.get_control_mode()
        if mode in (ControlMode.POS, ControlMode.PD_EXPLICIT):
            low, high = self._position_bounds()
        elif mode is ControlMode.TORQUE:
            high = self._engine.get_obj_torque_limits(self._char_id).cpu().numpy()
            high = np.where(np.isfinite(high), high, 1.0)
            low = -high
        elif mode is ControlMode.VEL:
            high = np.full(self._char.num_dofs, 2.0 * math.pi)
            low = -high
        else:
            raise ConfigError(f"{self._source}: this environment drives its character: the engine's control_mode must "
                              f"not be {mode.value!r}")  # fmt: skip
        return gymnasium.spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)

    def _position_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        zero_center = as_bool(self._config.get("zero_center_action", False), "zero_center_action", self._source)
        limits = self._char.dof_limits.cpu().numpy()
        low, high = limits[:, 0].copy(), limits[:, 1].copy()
        for joint in self._char.joints:
            dofs = slice(joint.dof_start, joint.dof_start + joint.dof_dim)
            if joint.dof_dim == 3:  # an exponential map has no useful box: the same reach about every axis
                reach = min(_BALL_MARGIN * float(np.abs(limits[dofs]).max()), math.pi)
                low[dofs], high[dofs] = -reach, reach
            elif joint.dof_dim == 1:
                margin = _HINGE_MARGIN * (high[dofs] - low[dofs])
                low[dofs], high[dofs] = low[dofs] - margin, high[dofs] + margin
                if zero_center:
                    reach = np.maximum(np.abs(low[dofs]), np.abs(high[dofs]))
                    low[dofs], high[dofs] = -reach, reach
        return low, high

    # ------------------------------------------------------------------ stepping

    def _apply_action(self, action: Tensor) -> None:
        self._engine.set_cmd(self._char_id, self._action_to_cmd(torch.clamp(action, self._low, self._high)))

    def _action_to_cmd(self, action: Tensor) -> Tensor:
        """Command (num_envs, D) of an action within its bounds."""
        return action

    def _reset_envs(self, env_ids: Tensor) -> None:
        self._engine.reset_envs(env_ids)
        pose = self._init_pose
        self._set_char(env_ids, pose[:3], exp_map_to_quat(pose[3:6]), pose[6:])

    def _set_char(
        self,
        env_ids: Tensor,
        root_pos: Tensor,
        root_rot: Tensor,
        dof_pos: Tensor,
        root_vel: Tensor | None = None,
        root_ang_vel: Tensor | None = None,
        dof_vel: Tensor | None = None,
    ) -> None:
        engine, zero = self._engine, torch.zeros(3, device=self.device)
        engine.set_root_pos(env_ids, self._char_id, root_pos)
        engine.set_root_rot(env_ids, self._char_id, root_rot)
        if not self.FIX_ROOT:
            engine.set_root_vel(env_ids, self._char_id, zero if root_vel is None else root_vel)
            engine.set_root_ang_vel(env_ids, self._char_id, zero if root_ang_vel is None else root_ang_vel)
        engine.set_dof_pos(env_ids, self._char_id, dof_pos)
        no_vel = torch.zeros(self._char.num_dofs, device=self.device)
        engine.set_dof_vel(env_ids, self._char_id, no_vel if dof_vel is None else dof_vel)

    def _compute_obs(self, env_ids: Tensor | None) -> Tensor:
        engine, char = self._engine, self._char_id
        pick = slice(None) if env_ids is None else env_ids
        return observations.char_obs(
            root_pos=engine.get_root_pos(char)[pick],
            root_rot=engine.get_root_rot(char)[pick],
            root_vel=engine.get_root_vel(char)[pick],
            root_ang_vel=engine.get_root_ang_vel(char)[pick],
            dof_pos=engine.get_dof_pos(char)[pick],
            dof_vel=engine.get_dof_vel(char)[pick],
            body_pos=engine.get_body_pos(char)[pick],
            global_obs=self._global_obs,
            root_height_obs=self._root_height_obs,
        )

    def _compute_reward(self) -> Tensor:
        return torch.ones(self.num_envs, device=self.device)

    def _compute_done(self) -> Tensor:
        done = torch.zeros(self.num_envs, dtype=torch.int64, device=self.device)
        if self._early_end:
            done[self._fell()] = DoneFlags.FAIL
        return done

    def _fell(self) -> Tensor:
        """(num_envs,) whether a body that must not touches the ground."""
        forces = self._engine.get_ground_contact_forces(self._char_id)[:, self._must_not_touch]
        return (forces.abs() > _CONTACT_N).any(-1).any(-1)
