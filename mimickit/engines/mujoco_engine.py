"""MuJoCo on the CPU: every environment is one simulation of a mujoco.batch.Batch, stepped on its thread pool."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
import torch
from mujoco.batch import Batch, SimulationError
from torch import Tensor

from mimickit.engines.engine import ControlMode
from mimickit.engines.mujoco_scene import ObjectLayout, Scene
from mimickit.engines.scene_engine import SceneEngine
from mimickit.engines.video_recorder import VideoRecorder
from mimickit.util.keys import as_int
from mimickit.util.mujoco_import import quiet_warnings
from mimickit.util.rotations import exp_map_to_quat, quat_conjugate, quat_mul, quat_rotate, quat_to_exp_map
from mimickit.video.config import VideoConfig

_log = logging.getLogger("mimickit.engines")
_XYZW = np.array([1, 2, 3, 0])  # takes MuJoCo's w x y z to x y z w
_WXYZ = np.array([3, 0, 1, 2])  # and back
_BAD = [int(getattr(mujoco.mjtWarning, f"mjWARN_BAD{what}")) for what in ("QPOS", "QVEL", "QACC", "CTRL")]
_STAGE_VEL = mujoco.mjtStage.mjSTAGE_VEL.value
_STAGE_ACC = mujoco.mjtStage.mjSTAGE_ACC.value


class MujocoEngine(SceneEngine):
    """The Engine contract on mujoco.batch.

    What a user sets is written into the simulations' state rows and marks them as dirty; the first getter that needs a
    derived quantity (or the next step) runs MuJoCo's forward pass for the dirty simulations alone.
    """

    EXTRA_KEYS = ("num_threads",)

    def __init__(self, config: Mapping[str, Any], *, num_envs: int, **options: Any) -> None:
        """As Engine. num_threads in config: threads that step the simulations, 0 for all cores."""
        super().__init__(config, num_envs=num_envs, **options)
        self._num_threads = as_int(config.get("num_threads", 0), "num_threads", self._source)

    # ------------------------------------------------------------------ building

    def get_name(self) -> str:
        return "mujoco"

    def _build_sim(self, scene: Scene) -> None:
        quiet_warnings()
        self._body_mass = scene.model.body_mass.copy()
        self._batch = Batch(scene.model, self._num_envs, self._num_threads, persistent=True)
        self._bind_state()
        self._dirty = np.zeros(self._num_envs, dtype=bool)
        self._bad = np.zeros(self._num_envs, dtype=bool)
        self._warnings_seen = self._batch.warning[:, _BAD, 1].copy()
        self._pushed = False
        self._cache: dict[tuple[str, int], Tensor] = {}
        self._pd_targets: dict[int, Tensor] = {}
        self._start_state = self._make_start_state()

    def _make_start_state(self) -> np.ndarray:
        """State rows (num_envs, S) of all environments as they were created."""
        self._batch.reset(stage=mujoco.mjtStage.mjSTAGE_NONE.value)
        for obj, starts in zip(self._objs, self._builder.start, strict=True):
            pos, rot = (np.stack(parts) for parts in zip(*starts, strict=True))
            if obj.is_free:
                self._qpos[:, obj.root_qpos : obj.root_qpos + 3] = pos
                self._qpos[:, obj.root_qpos + 3 : obj.root_qpos + 7] = rot[:, _WXYZ]
            else:
                self._mocap_pos[:, obj.mocap_id] = pos
                self._mocap_quat[:, obj.mocap_id] = rot[:, _WXYZ]
        return self._batch.state.copy()

    def _bind_state(self) -> None:
        b = self._batch
        self._qpos, self._qvel, self._ctrl, self._time = b.bind("qpos"), b.bind("qvel"), b.bind("ctrl"), b.bind("time")
        self._xfrc = b.bind("xfrc_applied")
        self._mocap_pos, self._mocap_quat = b.bind("mocap_pos"), b.bind("mocap_quat")
        self._xpos, self._xquat, self._cvel = b.bind("xpos"), b.bind("xquat"), b.bind("cvel")
        self._subtree_com, self._sensors = b.bind("subtree_com"), b.bind("sensordata")
        self._actuator_force = b.bind("actuator_force")

    def reset_envs(self, env_ids: Tensor | None) -> None:
        ids = self._rows(env_ids)
        self._batch.state[ids] = self._start_state[ids]
        self._touch(ids)

    # ------------------------------------------------------------------ stepping

    def _command(self, obj_id: int, cmd: Tensor) -> None:
        if self._control_mode is ControlMode.PD_EXPLICIT:
            self._pd_targets[obj_id] = cmd.to("cpu", torch.float32)
        else:
            self._ctrl[:, self._objs[obj_id].actuators] = cmd.cpu().numpy()

    def _simulate(self) -> None:
        self._flush()
        self._bad[:] = False
        if self._control_mode is ControlMode.PD_EXPLICIT:
            for _ in range(self._sim_steps):
                self._apply_explicit_pd()
                self._advance(1)
        else:
            self._advance(self._sim_steps)
        if self._pushed:
            self._xfrc[:] = 0.0
            self._pushed = False
        self._restart_failed()

    def _advance(self, steps: int) -> None:
        try:
            self._batch.step(nstep=steps, stage=_STAGE_VEL)
        except SimulationError as error:
            self._bad[error.ids] = True
        self._cache.clear()

    def _restart_failed(self) -> None:
        self._bad |= (self._batch.warning[:, _BAD, 1] > self._warnings_seen).any(axis=1)
        self._bad |= ~(np.isfinite(self._qpos).all(axis=1) & np.isfinite(self._qvel).all(axis=1))
        if self._bad.any():
            self._batch.reset(np.flatnonzero(self._bad), stage=mujoco.mjtStage.mjSTAGE_NONE.value)  # its warnings too
        self._restart(torch.from_numpy(self._bad.copy()).to(self._device))
        self._warnings_seen[:] = self._batch.warning[:, _BAD, 1]

    def _apply_explicit_pd(self) -> None:
        for obj_id, target in self._pd_targets.items():
            obj = self._objs[obj_id]
            kp, kd = (gain.cpu() for gain in self._pd_gains[obj_id])
            dof_pos = self._dof_pos(obj)
            error = target - dof_pos
            if len(obj.ball_dofs):
                now = exp_map_to_quat(dof_pos[:, obj.ball_dofs])
                goal = exp_map_to_quat(target[:, obj.ball_dofs])
                error[:, obj.ball_dofs] = quat_to_exp_map(quat_mul(quat_conjugate(now), goal))
            vel = torch.from_numpy(self._qvel[:, obj.dof_qvel].astype(np.float32))
            self._ctrl[:, obj.actuators] = (kp * error - kd * vel).numpy()

    # ------------------------------------------------------------------ facts

    def get_sim_time(self, env_id: int) -> float:
        return float(self._time[env_id])

    def get_obj_mass(self, obj_id: int) -> float:
        return float(self._body_mass[self._objs[obj_id].bodies].sum())

    # ------------------------------------------------------------------ reading

    def get_root_pos(self, obj_id: int) -> Tensor:
        obj = self._objs[obj_id]
        if obj.is_free:
            return self._to_tensor(self._qpos[:, obj.root_qpos : obj.root_qpos + 3])
        return self._to_tensor(self._mocap_pos[:, obj.mocap_id])

    def get_root_rot(self, obj_id: int) -> Tensor:
        obj = self._objs[obj_id]
        if obj.is_free:
            return self._to_tensor(self._qpos[:, obj.root_qpos + 3 + _XYZW])
        return self._to_tensor(self._mocap_quat[:, obj.mocap_id][:, _XYZW])

    def get_root_vel(self, obj_id: int) -> Tensor:
        obj = self._objs[obj_id]
        if not obj.is_free:
            return self._none()
        return self._to_tensor(self._qvel[:, obj.root_qvel : obj.root_qvel + 3])

    def get_root_ang_vel(self, obj_id: int) -> Tensor:
        obj = self._objs[obj_id]
        if not obj.is_free:
            return self._none()
        local = self._to_tensor(self._qvel[:, obj.root_qvel + 3 : obj.root_qvel + 6])
        return quat_rotate(self.get_root_rot(obj_id), local)

    def get_dof_pos(self, obj_id: int) -> Tensor:
        return self._cached("dof_pos", obj_id, self._dof_pos).to(self._device)

    def _dof_pos(self, obj: ObjectLayout) -> Tensor:
        dof = torch.empty(self._num_envs, obj.info.num_dofs)
        if len(obj.hinge_dofs):
            dof[:, obj.hinge_dofs] = torch.from_numpy(self._qpos[:, obj.hinge_qpos].astype(np.float32))
        if len(obj.ball_dofs):
            quat = torch.from_numpy(self._qpos[:, obj.ball_qpos].astype(np.float32))
            dof[:, obj.ball_dofs] = quat_to_exp_map(quat)
        return dof

    def get_dof_vel(self, obj_id: int) -> Tensor:
        return self._to_tensor(self._qvel[:, self._objs[obj_id].dof_qvel])

    def get_dof_forces(self, obj_id: int) -> Tensor:
        obj = self._objs[obj_id]
        self._flush()
        if obj.actuators.stop == obj.actuators.start:
            return torch.zeros(self._num_envs, obj.info.num_dofs, device=self._device)
        return self._to_tensor(self._actuator_force[:, obj.actuators])

    def get_body_pos(self, obj_id: int) -> Tensor:
        return self._derived("body_pos", obj_id, lambda obj: self._to_tensor(self._xpos[:, obj.bodies]))

    def get_body_rot(self, obj_id: int) -> Tensor:
        return self._derived("body_rot", obj_id, lambda obj: self._to_tensor(self._xquat[:, obj.bodies][..., _XYZW]))

    def get_body_vel(self, obj_id: int) -> Tensor:
        return self._derived("body_vel", obj_id, self._body_vel)

    def _body_vel(self, obj: ObjectLayout) -> Tensor:
        """MuJoCo's cvel is taken about the object's centre of mass; move it to each body's origin."""
        arm = self._xpos[:, obj.bodies] - self._subtree_com[:, obj.bodies.start, None]
        ang, lin = self._cvel[:, obj.bodies, :3], self._cvel[:, obj.bodies, 3:]
        return self._to_tensor(lin + np.cross(ang, arm))

    def get_body_ang_vel(self, obj_id: int) -> Tensor:
        return self._derived("body_ang_vel", obj_id, lambda obj: self._to_tensor(self._cvel[:, obj.bodies, :3]))

    def get_contact_forces(self, obj_id: int) -> Tensor:
        return self._derived("contact", obj_id, lambda obj: self._forces(obj, obj.total_force))

    def get_ground_contact_forces(self, obj_id: int) -> Tensor:
        return self._derived("ground_contact", obj_id, lambda obj: self._forces(obj, obj.ground_force))

    def _forces(self, obj: ObjectLayout, where: slice) -> Tensor:
        if where.stop == where.start:
            return torch.zeros(self._num_envs, len(obj.info.bodies), 3, device=self._device)
        # the sensor gives the force that the body exerts; asked for is the one it feels
        return self._to_tensor(-self._sensors[:, where].reshape(self._num_envs, -1, 3))

    def _derived(self, name: str, obj_id: int, read: Callable[[ObjectLayout], Tensor]) -> Tensor:
        self._flush()
        return self._cached(name, obj_id, read)

    def _cached(self, name: str, obj_id: int, read: Callable[[ObjectLayout], Tensor]) -> Tensor:
        """A copy that is the caller's own, so that no write to it reaches the simulation or another reader."""
        key = (name, obj_id)
        if key not in self._cache:
            self._cache[key] = read(self._objs[obj_id])
        return self._cache[key].clone()

    # ------------------------------------------------------------------ writing

    def set_root_pos(self, env_ids: Tensor | None, obj_id: int, root_pos: Tensor) -> None:
        obj, ids = self._objs[obj_id], self._rows(env_ids)
        if obj.is_free:
            self._qpos[ids, obj.root_qpos : obj.root_qpos + 3] = _numpy(root_pos)
        else:
            self._mocap_pos[ids, obj.mocap_id] = _numpy(root_pos)
        self._touch(ids)

    def set_root_rot(self, env_ids: Tensor | None, obj_id: int, root_rot: Tensor) -> None:
        obj, ids = self._objs[obj_id], self._rows(env_ids)
        spin = self.get_root_ang_vel(obj_id)  # the world's, which a turn of the root leaves as it is
        if obj.is_free:
            self._qpos[ids, obj.root_qpos + 3 : obj.root_qpos + 7] = _numpy(root_rot)[..., _WXYZ]
            self.set_root_ang_vel(env_ids, obj_id, spin if env_ids is None else spin[env_ids])
        else:
            self._mocap_quat[ids, obj.mocap_id] = _numpy(root_rot)[..., _WXYZ]
        self._touch(ids)

    def set_root_vel(self, env_ids: Tensor | None, obj_id: int, root_vel: Tensor) -> None:
        obj, ids = self._free(obj_id, "set_root_vel"), self._rows(env_ids)
        self._qvel[ids, obj.root_qvel : obj.root_qvel + 3] = _numpy(root_vel)
        self._touch(ids)

    def set_root_ang_vel(self, env_ids: Tensor | None, obj_id: int, root_ang_vel: Tensor) -> None:
        obj, ids = self._free(obj_id, "set_root_ang_vel"), self._rows(env_ids)
        rot = torch.from_numpy(self._qpos[ids][:, obj.root_qpos + 3 + _XYZW])
        local = quat_rotate(quat_conjugate(rot), root_ang_vel.detach().cpu().double())
        self._qvel[ids, obj.root_qvel + 3 : obj.root_qvel + 6] = local.numpy()
        self._touch(ids)

    def set_dof_pos(self, env_ids: Tensor | None, obj_id: int, dof_pos: Tensor) -> None:
        obj, ids = self._objs[obj_id], self._rows(env_ids)
        dof = dof_pos.detach().cpu().double()
        if len(obj.hinge_dofs):
            self._qpos[ids[:, None], obj.hinge_qpos] = dof[..., obj.hinge_dofs].numpy()
        if len(obj.ball_dofs):
            self._qpos[ids[:, None, None], obj.ball_qpos] = exp_map_to_quat(dof[..., obj.ball_dofs]).numpy()
        self._touch(ids)

    def set_dof_vel(self, env_ids: Tensor | None, obj_id: int, dof_vel: Tensor) -> None:
        obj, ids = self._objs[obj_id], self._rows(env_ids)
        self._qvel[ids, obj.dof_qvel] = _numpy(dof_vel)
        self._touch(ids)

    def set_body_forces(self, env_ids: Tensor | None, obj_id: int, body_id: int, forces: Tensor) -> None:
        self._check_body(obj_id, body_id, "set_body_forces")
        obj, ids = self._objs[obj_id], self._rows(env_ids)
        self._xfrc[ids, obj.bodies.start + body_id, :3] = _numpy(forces)
        self._pushed = True

    def set_gravity(self, gravity: Sequence[float]) -> None:
        self._batch.expand("opt.gravity")[:] = np.asarray(gravity, dtype=np.float64).reshape(3)
        self._touch(np.arange(self._num_envs))

    def _rows(self, env_ids: Tensor | None) -> np.ndarray:
        if env_ids is None:
            return np.arange(self._num_envs)
        return np.asarray(env_ids.detach().cpu().numpy() if isinstance(env_ids, Tensor) else env_ids, dtype=np.int64)

    def _touch(self, ids: np.ndarray) -> None:
        self._dirty[ids] = True
        self._cache.clear()

    def _flush(self) -> None:
        """Bring derived quantities up to date with what was set."""
        if self._dirty.any():
            ids = np.flatnonzero(self._dirty)
            self._dirty[:] = False
            self._cache.clear()
            self._batch.forward(ids.astype(np.int32), stage=_STAGE_ACC)

    def get_state(self) -> Tensor:
        return torch.from_numpy(self._batch.state.copy())

    def set_state(self, state: Tensor) -> None:
        self._check_state(state, self._batch.state.shape)
        self._batch.state[:] = state.numpy()
        self._dirty[:] = False
        self._cache.clear()
        # up to velocities only: accelerations would overwrite the solver's warm start
        self._batch.forward(stage=_STAGE_VEL)

    # ------------------------------------------------------------------ filming

    def body_poses(self, env_id: int) -> list[tuple[np.ndarray, np.ndarray]]:
        self._flush()
        return [
            (self._xpos[env_id, obj.bodies].copy(), self._xquat[env_id, obj.bodies][:, _XYZW]) for obj in self._objs
        ]

    def body_contacts(self, env_id: int) -> list[np.ndarray]:
        self._flush()
        forces = ((-self._sensors[env_id, obj.ground_force].reshape(-1, 3), obj.info.bodies) for obj in self._objs)
        return [force if len(force) else np.zeros((len(bodies), 3)) for force, bodies in forces]  # no sensors: no touch

    def _make_recorder(self, config: VideoConfig) -> VideoRecorder:
        from mimickit.engines.mujoco_recorder import MujocoRecorder

        return MujocoRecorder(self, config)


def _numpy(values: Tensor) -> np.ndarray:
    return values.detach().cpu().numpy().astype(np.float64)
