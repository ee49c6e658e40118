"""A third party's engine in one file outside the package: one MjData for each environment, stepped in a plain loop.

Named on the command line or in YAML as ``tests.engines.conformance.own_engine:OwnEngine``. It is slow and small, and
keeps the whole contract; contact forces it adds up itself, contact by contact.
"""

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from mimickit.engines.engine import ControlMode
from mimickit.engines.mujoco_scene import ObjectLayout, Scene
from mimickit.engines.scene_engine import SceneEngine
from mimickit.engines.video_recorder import VideoRecorder
from mimickit.util.keys import ConfigError
from mimickit.util.rotations import exp_map_to_quat, quat_conjugate, quat_mul, quat_rotate, quat_to_exp_map
from mimickit.video.config import VideoConfig
from mimickit.video.production import Filmer
from mimickit.video.snapshot import ActorPose
from mimickit.video.stage.stage_filmer import StageFilmer

XYZW, WXYZ = [1, 2, 3, 0], [3, 0, 1, 2]
PHYSICS = mujoco.mjtState.mjSTATE_INTEGRATION
GROUND = 0  # the world's body


class OwnRecorder(VideoRecorder):
    def _make_filmer(self) -> Filmer:
        return StageFilmer()


class OwnEngine(SceneEngine):
    def __init__(self, config: Any, *, num_envs: int, **options: Any) -> None:
        super().__init__(config, num_envs=num_envs, **options)
        self._targets: dict[int, np.ndarray] = {}

    # ------------------------------------------------------------------ building

    def get_name(self) -> str:
        return "own"

    def _build_sim(self, scene: Scene) -> None:
        self._model = scene.model
        self._datas = [mujoco.MjData(self._model) for _ in range(self._num_envs)]
        self._forces = np.zeros((2, self._num_envs, self._model.nbody, 3))  # total, of the ground

    def reset_envs(self, env_ids: Tensor | None) -> None:
        for env in self._envs(env_ids):
            data = self._datas[env]
            mujoco.mj_resetData(self._model, data)
            for obj, starts in zip(self._objs, self._builder.start, strict=True):
                self._place(data, obj, *starts[env])
            self._update(env)

    def _place(self, data: Any, obj: ObjectLayout, pos: Any = None, rot: Any = None) -> None:
        free = obj.is_free
        at = obj.root_qpos if free else obj.mocap_id
        if pos is not None:
            (data.qpos[at : at + 3] if free else data.mocap_pos[at])[:] = pos
        if rot is not None:
            (data.qpos[at + 3 : at + 7] if free else data.mocap_quat[at])[:] = np.asarray(rot)[WXYZ]

    # ------------------------------------------------------------------ stepping

    def _command(self, obj_id: int, cmd: Tensor) -> None:
        if self._control_mode is ControlMode.PD_EXPLICIT:
            self._targets[obj_id] = cmd.double().numpy()
            return
        for data, row in zip(self._datas, cmd.numpy(), strict=True):
            data.ctrl[self._objs[obj_id].actuators] = row

    def _simulate(self) -> None:
        self._failed[:] = False
        for env, data in enumerate(self._datas):
            warned = self._num_warnings(data)
            for _ in range(self._sim_steps):
                self._apply_explicit_pd(env)
                mujoco.mj_step(self._model, data)
            data.xfrc_applied[:] = 0.0
            self._add_contacts(env)
            if self._num_warnings(data) > warned or not np.isfinite(data.qpos).all():
                self._failed[env] = True
                self.reset_envs(torch.tensor([env]))
            else:
                mujoco.mj_fwdPosition(self._model, data)
                mujoco.mj_fwdVelocity(self._model, data)

    @staticmethod
    def _num_warnings(data: Any) -> int:
        kinds = mujoco.mjtWarning
        bad = (kinds.mjWARN_BADQPOS, kinds.mjWARN_BADQVEL, kinds.mjWARN_BADQACC, kinds.mjWARN_BADCTRL)
        return sum(data.warning[int(kind)].number for kind in bad)

    def _apply_explicit_pd(self, env: int) -> None:
        data = self._datas[env]
        for obj_id, target in self._targets.items():
            obj = self._objs[obj_id]
            now, goal = self.get_dof_pos(obj_id)[env].double(), torch.from_numpy(target[env])
            error = goal - now
            balls = obj.ball_dofs
            turn = quat_mul(quat_conjugate(exp_map_to_quat(now[balls])), exp_map_to_quat(goal[balls]))
            error[balls] = quat_to_exp_map(turn)
            kp, kd = (gain.numpy() for gain in self._pd_gains[obj_id])
            data.ctrl[obj.actuators] = kp * error.numpy() - kd * data.qvel[obj.dof_qvel]

    def _add_contacts(self, env: int) -> None:
        data, force = self._datas[env], np.zeros(6)
        self._forces[:, env] = 0.0
        for index in range(data.ncon):
            contact = data.contact[index]
            mujoco.mj_contactForce(self._model, data, index, force)
            world = contact.frame.reshape(3, 3).T @ force[:3]
            one, other = (int(self._model.geom_bodyid[geom]) for geom in contact.geom)
            self._forces[0, env, other] += world
            self._forces[0, env, one] -= world
            if one == GROUND:
                self._forces[1, env, other] += world
            elif other == GROUND:
                self._forces[1, env, one] -= world

    def _update(self, env: int) -> None:
        mujoco.mj_forward(self._model, self._datas[env])
        self._add_contacts(env)

    # ------------------------------------------------------------------ facts

    def get_sim_time(self, env_id: int) -> float:
        return float(self._datas[env_id].time)

    def get_obj_mass(self, obj_id: int) -> float:
        return float(self._model.body_mass[self._objs[obj_id].bodies].sum())

    # ------------------------------------------------------------------ reading

    def _read(self, field: str, columns: Any) -> Tensor:
        return self._to_tensor(np.stack([getattr(data, field)[columns] for data in self._datas]))

    def get_root_pos(self, obj_id: int) -> Tensor:
        return self.get_body_pos(obj_id)[:, 0]

    def get_root_rot(self, obj_id: int) -> Tensor:
        return self.get_body_rot(obj_id)[:, 0]

    def get_root_vel(self, obj_id: int) -> Tensor:
        return self.get_body_vel(obj_id)[:, 0]

    def get_root_ang_vel(self, obj_id: int) -> Tensor:
        return self.get_body_ang_vel(obj_id)[:, 0]

    def get_dof_pos(self, obj_id: int) -> Tensor:
        obj = self._objs[obj_id]
        dof = torch.zeros(self._num_envs, obj.info.num_dofs)
        dof[:, obj.hinge_dofs] = self._read("qpos", obj.hinge_qpos)
        dof[:, obj.ball_dofs] = quat_to_exp_map(self._read("qpos", obj.ball_qpos))
        return dof

    def get_dof_vel(self, obj_id: int) -> Tensor:
        return self._read("qvel", self._objs[obj_id].dof_qvel)

    def get_dof_forces(self, obj_id: int) -> Tensor:
        obj = self._objs[obj_id]
        if obj.actuators.stop == obj.actuators.start:
            return torch.zeros(self._num_envs, obj.info.num_dofs)
        return self._read("actuator_force", obj.actuators)

    def get_body_pos(self, obj_id: int) -> Tensor:
        return self._read("xpos", self._objs[obj_id].bodies)

    def get_body_rot(self, obj_id: int) -> Tensor:
        return self._read("xquat", self._objs[obj_id].bodies)[..., XYZW]

    def get_body_vel(self, obj_id: int) -> Tensor:
        return self._velocities(obj_id)[..., 3:]

    def get_body_ang_vel(self, obj_id: int) -> Tensor:
        return self._velocities(obj_id)[..., :3]

    def _velocities(self, obj_id: int) -> Tensor:
        bodies = range(self._model.nbody)[self._objs[obj_id].bodies]
        found = np.zeros((self._num_envs, len(bodies), 6))
        for env, data in enumerate(self._datas):
            for row, body in enumerate(bodies):
                mujoco.mj_objectVelocity(self._model, data, mujoco.mjtObj.mjOBJ_XBODY, body, found[env, row], 0)
        return self._to_tensor(found)

    def get_contact_forces(self, obj_id: int) -> Tensor:
        return self._to_tensor(self._forces[0, :, self._objs[obj_id].bodies])

    def get_ground_contact_forces(self, obj_id: int) -> Tensor:
        return self._to_tensor(self._forces[1, :, self._objs[obj_id].bodies])

    # ------------------------------------------------------------------ writing

    def set_root_pos(self, env_ids: Tensor | None, obj_id: int, root_pos: Tensor) -> None:
        for env, row in self._rows(env_ids, root_pos):
            self._place(self._datas[env], self._objs[obj_id], pos=row)
            self._update(env)

    def set_root_rot(self, env_ids: Tensor | None, obj_id: int, root_rot: Tensor) -> None:
        obj, spin = self._objs[obj_id], self.get_root_ang_vel(obj_id)
        for env, row in self._rows(env_ids, root_rot):
            self._place(self._datas[env], obj, rot=row)
            self._update(env)
            if obj.is_free:
                self.set_root_ang_vel(torch.tensor([env]), obj_id, spin[env])

    def set_root_vel(self, env_ids: Tensor | None, obj_id: int, root_vel: Tensor) -> None:
        self._set_root_qvel(env_ids, obj_id, root_vel, 0)

    def set_root_ang_vel(self, env_ids: Tensor | None, obj_id: int, root_ang_vel: Tensor) -> None:
        rot = quat_conjugate(self.get_root_rot(obj_id)[self._envs(env_ids)])
        self._set_root_qvel(env_ids, obj_id, quat_rotate(rot, root_ang_vel), 3)

    def _set_root_qvel(self, env_ids: Tensor | None, obj_id: int, values: Tensor, first: int) -> None:
        obj = self._objs[obj_id]
        if not obj.is_free:
            raise ValueError(f"the root of {obj.spec.name!r} is fixed and has no velocity")
        start = obj.root_qvel + first
        self._set_qvel(env_ids, slice(start, start + 3), values)

    def set_dof_vel(self, env_ids: Tensor | None, obj_id: int, dof_vel: Tensor) -> None:
        self._set_qvel(env_ids, self._objs[obj_id].dof_qvel, dof_vel)

    def _set_qvel(self, env_ids: Tensor | None, where: slice, values: Tensor) -> None:
        for env, row in self._rows(env_ids, values):
            self._datas[env].qvel[where] = row
            self._update(env)

    def set_dof_pos(self, env_ids: Tensor | None, obj_id: int, dof_pos: Tensor) -> None:
        obj = self._objs[obj_id]
        for env, row in self._rows(env_ids, dof_pos):
            data = self._datas[env]
            data.qpos[obj.hinge_qpos] = row[obj.hinge_dofs]
            data.qpos[obj.ball_qpos] = exp_map_to_quat(torch.from_numpy(row[obj.ball_dofs])).numpy()
            self._update(env)

    def set_body_forces(self, env_ids: Tensor | None, obj_id: int, body_id: int, forces: Tensor) -> None:
        self._check_body(obj_id, body_id, "set_body_forces")
        for env, row in self._rows(env_ids, forces):
            self._datas[env].xfrc_applied[self._objs[obj_id].bodies.start + body_id, :3] = row

    def set_gravity(self, gravity: Sequence[float]) -> None:
        self._model.opt.gravity[:] = gravity

    def _envs(self, env_ids: Tensor | None) -> list[int]:
        return list(range(self._num_envs)) if env_ids is None else [int(env) for env in env_ids]

    def _rows(self, env_ids: Tensor | None, values: Tensor) -> list[tuple[int, np.ndarray]]:
        ids, given = self._envs(env_ids), values.double().numpy()
        return list(zip(ids, np.broadcast_to(given, (len(ids), given.shape[-1])), strict=True))

    def get_state(self) -> Tensor:
        state = np.zeros((self._num_envs, mujoco.mj_stateSize(self._model, PHYSICS)))
        for row, data in zip(state, self._datas, strict=True):
            mujoco.mj_getState(self._model, data, row, PHYSICS)
        return torch.from_numpy(state)

    def set_state(self, state: Tensor) -> None:
        if state.shape != self.get_state().shape:
            raise ConfigError(f"set_state: found {tuple(state.shape)}: a state of another scene")
        for row, data in zip(state.numpy(), self._datas, strict=True):
            mujoco.mj_setState(self._model, data, row, PHYSICS)
            mujoco.mj_fwdPosition(self._model, data)
            mujoco.mj_fwdVelocity(self._model, data)

    # ------------------------------------------------------------------ filming

    def body_poses(self, env_id: int) -> list[ActorPose]:
        data = self._datas[env_id]
        return [(data.xpos[obj.bodies].copy(), data.xquat[obj.bodies][:, XYZW]) for obj in self._objs]

    def _make_recorder(self, config: VideoConfig) -> VideoRecorder:
        return OwnRecorder(self, config)
