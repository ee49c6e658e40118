"""Newton (Warp) on a GPU, or on the CPU for small jobs: every environment is a world of one Newton model."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mimickit.engines.engine import ControlMode, Engine, ObjType
from mimickit.engines.mujoco_scene import ObjectLayout, ObjectSpec, Scene, SceneBuilder
from mimickit.engines.newton_joints import Joints
from mimickit.engines.video_recorder import VideoRecorder
from mimickit.util.keys import ConfigError, as_int, nearest
from mimickit.util.rotations import quat_rotate
from mimickit.video.config import VideoConfig
from mimickit.video.snapshot import ActorPose, ActorSpec, FloatArray

_log = logging.getLogger("mimickit.engines")
_TOO_FAR = 1e10  # of a coordinate or a velocity: MuJoCo's own limit of what can't be meant


class NewtonEngine(Engine):
    """The Engine contract on Newton.

    What a user sets is written into Newton's joint coordinates and marks body poses as stale; the first getter that
    needs them brings them up to date. Contact and drive forces are those of the last physics step; of an environment
    that was reset they are zero.
    """

    EXTRA_KEYS = ("max_contacts",)

    def __init__(self, config: Mapping[str, Any], *, num_envs: int, **options: Any) -> None:
        """As Engine. max_contacts in config: room for contacts in one environment, 0 for an estimate. Raises
        ConfigError where newton is not installed or the device is not there.
        """
        super().__init__(config, num_envs=num_envs, **options)
        self._max_contacts = as_int(config.get("max_contacts", 0), "max_contacts", self._source)
        _require_newton(self._device)
        self._builder = SceneBuilder(num_envs)
        self._scene: Scene | None = None
        self._told_of_failure = False

    # ------------------------------------------------------------------ building

    def get_name(self) -> str:
        return "newton"

    def create_env(self) -> int:
        return self._builder.create_env()

    def create_obj(
        self,
        env_id: int,
        obj_type: ObjType,
        asset_file: str | Path,
        name: str,
        *,
        is_visual: bool = False,
        enable_self_collisions: bool = True,
        fix_root: bool = False,
        start_pos: Sequence[float] | np.ndarray | None = None,
        start_rot: Sequence[float] | np.ndarray | None = None,
        color: Sequence[float] | np.ndarray | None = None,
        disable_motors: bool = False,
    ) -> int:
        if self._scene is not None:
            raise RuntimeError("create_obj: the simulation is initialized; create all objects before initialize_sim()")
        spec = ObjectSpec(
            obj_type, Path(asset_file), name, is_visual, enable_self_collisions, fix_root, disable_motors
        )
        return self._builder.add(env_id, spec, start_pos, start_rot, color)

    def initialize_sim(self) -> None:
        from mimickit.engines.newton_sim import NewtonSim

        if self._scene is not None:
            raise RuntimeError("initialize_sim: called twice")
        _log.info("building the Newton simulation; the first time, its kernels are compiled, which takes a minute")
        self._scene = self._builder.build(self._control_mode, self.get_sim_timestep())
        self._objs = self._scene.objects
        self._joints = [Joints(obj, self._device) for obj in self._objs]
        self._sim = NewtonSim(
            self._scene,
            num_envs=self._num_envs,
            device=self._device,
            timestep=self.get_sim_timestep(),
            substeps=self._sim_steps,
            explicit_pd=self._control_mode is ControlMode.PD_EXPLICIT,
            max_contacts=self._max_contacts,
        )
        self.set_gravity(self._scene.model.opt.gravity)
        self._time = torch.zeros(self._num_envs, dtype=torch.float64, device=self._device)
        self._failed = torch.zeros(self._num_envs, dtype=torch.bool, device=self._device)
        self._pushed = False
        self._start_q, self._start_frames = self._make_start_state()
        self.reset_envs(None)

    def _make_start_state(self) -> tuple[Tensor, Tensor]:
        """Coordinates (num_envs, nq) and fixed roots' frames of all environments as they were created."""
        q, frames = self._sim.q.clone(), self._sim.root_frames.clone()
        for obj, starts in zip(self._objs, self._builder.start, strict=True):
            pose = np.stack([np.concatenate(start) for start in starts])
            place = torch.from_numpy(pose).to(q)
            if obj.is_free:
                q[:, obj.root_qpos : obj.root_qpos + 7] = place
            else:
                frames[:, obj.bodies.start - 1] = place
        return q, frames

    def reset_envs(self, env_ids: Tensor | None) -> None:
        sim, ids = self._sim, self._ids(env_ids)
        sim.q[ids], sim.qd[ids] = self._start_q[ids], 0.0
        sim.root_frames[ids] = self._start_frames[ids]
        for values in (sim.ctrl, sim.body_f, sim.total_force, sim.ground_force, sim.dof_force, self._time):
            values[ids] = 0.0
        sim.reset_mask[ids] = True
        sim.forget()
        self._stale = True

    # ------------------------------------------------------------------ stepping

    def set_cmd(self, obj_id: int, cmd: Tensor) -> None:
        obj = self._objs[obj_id]
        expected = (self._num_envs, obj.info.num_dofs)
        if tuple(cmd.shape) != expected:
            raise ValueError(f"set_cmd: object {obj.spec.name!r}: expected shape {expected}, found {tuple(cmd.shape)}")
        if obj.actuators.stop == obj.actuators.start:
            raise ValueError(f"set_cmd: object {obj.spec.name!r} has no drives (control mode "
                             f"{self._control_mode.value}, disable_motors or is_visual)")  # fmt: skip
        if self._control_mode is ControlMode.PD_EXPLICIT:
            kp, kd = (torch.from_numpy(self._per_dof(obj_id, gain)) for gain in ("stiffness", "damping"))
            self._sim.set_explicit_pd(obj, cmd.detach(), kp, kd)
        else:
            self._sim.ctrl[:, obj.actuators] = cmd.detach().to(self._sim.ctrl)

    def _simulate(self) -> None:
        self._sim.step()
        self._stale = False
        self._time += self.get_timestep()
        if self._pushed:
            self._sim.body_f.zero_()
            self._pushed = False
        self._restart_failed()

    def _restart_failed(self) -> None:
        """Find the simulations that diverged and put them back; the others have gone on undisturbed."""
        sim = self._sim
        # a comparison with what is not a number is false; a command that is none would be clipped to a limit
        good = [(values.abs() < _TOO_FAR).all(dim=1) for values in (sim.q, sim.qd, sim.ctrl)]
        self._failed = ~(good[0] & good[1] & good[2])
        if bool(self._failed.any()):
            ids = self._failed.nonzero()[:, 0]
            if not self._told_of_failure:
                self._told_of_failure = True
                _log.warning("%d of %d simulations diverged, the first of them %d, and were put back to their start "
                             "(said once; get_sim_failed() tells of each step)",
                             len(ids), self._num_envs, int(ids[0]))  # fmt: skip
            self.reset_envs(ids)

    def get_sim_failed(self) -> Tensor:
        return self._failed.clone()

    # ------------------------------------------------------------------ facts

    def get_sim_time(self, env_id: int) -> float:
        return float(self._time[env_id])

    def get_objs_per_env(self) -> int:
        return len(self._builder.objects)

    def get_obj_type(self, obj_id: int) -> ObjType:
        return self._builder.objects[obj_id].obj_type

    def get_obj_num_bodies(self, obj_id: int) -> int:
        return len(self._objs[obj_id].info.bodies)

    def get_obj_num_dofs(self, obj_id: int) -> int:
        return self._objs[obj_id].info.num_dofs

    def get_obj_body_names(self, obj_id: int) -> list[str]:
        return [body.name for body in self._objs[obj_id].info.bodies]

    def find_obj_body_id(self, obj_id: int, body_name: str) -> int:
        names = self.get_obj_body_names(obj_id)
        if body_name not in names:
            file = self._builder.objects[obj_id].asset_file
            raise ConfigError(f"{file}: no body {body_name!r}{nearest(body_name, names)}")
        return names.index(body_name)

    def get_obj_mass(self, obj_id: int) -> float:
        masses = self._sim.model.body_mass.numpy()  # of all worlds, which are alike
        return float(masses[self._bodies(self._objs[obj_id])].sum())

    def get_obj_dof_limits(self, obj_id: int) -> tuple[Tensor, Tensor]:
        limits = self._per_dof(obj_id, "limits").reshape(-1, 2)
        return self._to_tensor(limits[:, 0]), self._to_tensor(limits[:, 1])

    def get_obj_torque_limits(self, obj_id: int) -> Tensor:
        return self._to_tensor(self._per_dof(obj_id, "torque_limit"))

    def _per_dof(self, obj_id: int, name: str) -> np.ndarray:
        joints = self._objs[obj_id].info.joints
        return np.concatenate([np.zeros(0), *(np.ravel(getattr(joint, name)) for joint in joints if joint.dof_dim)])

    # ------------------------------------------------------------------ reading

    def get_root_pos(self, obj_id: int) -> Tensor:
        return self._root_pose(self._objs[obj_id])[:, :3].clone()

    def get_root_rot(self, obj_id: int) -> Tensor:
        return self._root_pose(self._objs[obj_id])[:, 3:].clone()

    def _root_pose(self, obj: ObjectLayout) -> Tensor:
        """A view (num_envs, 7) of where the root is."""
        if obj.is_free:
            return self._sim.q[:, obj.root_qpos : obj.root_qpos + 7]
        return self._sim.root_frames[:, obj.bodies.start - 1]

    def get_root_vel(self, obj_id: int) -> Tensor:
        obj = self._objs[obj_id]
        if not obj.is_free:
            return torch.zeros(self._num_envs, 3, device=self._device)
        return self._root_velocity(obj)[:, :3] - self._com_velocity(obj)

    def get_root_ang_vel(self, obj_id: int) -> Tensor:
        obj = self._objs[obj_id]
        if not obj.is_free:
            return torch.zeros(self._num_envs, 3, device=self._device)
        return self._root_velocity(obj)[:, 3:].clone()

    def _root_velocity(self, obj: ObjectLayout) -> Tensor:
        """A view (num_envs, 6) of the velocities of a free root's centre of mass and about it."""
        return self._sim.qd[:, obj.root_qvel : obj.root_qvel + 6]

    def _com_velocity(self, obj: ObjectLayout) -> Tensor:
        """(num_envs, 3) by how much the root's centre of mass is faster than its origin."""
        arm = quat_rotate(self._root_pose(obj)[:, 3:], self._sim.body_com[:, obj.bodies.start - 1])
        return torch.linalg.cross(self._root_velocity(obj)[:, 3:], arm)

    def get_dof_pos(self, obj_id: int) -> Tensor:
        return self._joints[obj_id].positions(self._sim.q)

    def get_dof_vel(self, obj_id: int) -> Tensor:
        return self._joints[obj_id].velocities(self._sim.q, self._sim.qd)

    def get_dof_forces(self, obj_id: int) -> Tensor:
        return self._joints[obj_id].velocities(self._sim.q, self._sim.dof_force)

    def get_body_pos(self, obj_id: int) -> Tensor:
        return self._body(obj_id)[..., :3].clone()

    def get_body_rot(self, obj_id: int) -> Tensor:
        return self._body(obj_id)[..., 3:].clone()

    def get_body_vel(self, obj_id: int) -> Tensor:
        rot = self._body(obj_id)[..., 3:]
        bodies = self._bodies(self._objs[obj_id])
        velocity = self._sim.body_qd[:, bodies]
        arm = quat_rotate(rot, self._sim.body_com[:, bodies])
        return velocity[..., :3] - torch.linalg.cross(velocity[..., 3:], arm)

    def get_body_ang_vel(self, obj_id: int) -> Tensor:
        self._flush()
        return self._sim.body_qd[:, self._bodies(self._objs[obj_id]), 3:].clone()

    def get_contact_forces(self, obj_id: int) -> Tensor:
        return self._sim.total_force[:, self._bodies(self._objs[obj_id])].clone()

    def get_ground_contact_forces(self, obj_id: int) -> Tensor:
        return self._sim.ground_force[:, self._bodies(self._objs[obj_id])].clone()

    def _body(self, obj_id: int) -> Tensor:
        """A view (num_envs, B, 7) of an object's body poses."""
        self._flush()
        return self._sim.body_q[:, self._bodies(self._objs[obj_id])]

    @staticmethod
    def _bodies(obj: ObjectLayout) -> slice:
        """Newton has no body for the world."""
        return slice(obj.bodies.start - 1, obj.bodies.stop - 1)

    def _flush(self) -> None:
        """Bring body poses up to date with what was set."""
        if self._stale:
            self._sim.forward()
            self._stale = False

    # ------------------------------------------------------------------ writing

    def set_root_pos(self, env_ids: Tensor | None, obj_id: int, root_pos: Tensor) -> None:
        self._root_pose(self._objs[obj_id])[self._ids(env_ids), :3] = self._own(root_pos)
        self._stale = True

    def set_root_rot(self, env_ids: Tensor | None, obj_id: int, root_rot: Tensor) -> None:
        obj, ids = self._objs[obj_id], self._ids(env_ids)
        vel = self.get_root_vel(obj_id)[ids]  # the origin's, which a turn leaves as it is
        self._root_pose(obj)[ids, 3:] = self._own(root_rot)
        if obj.is_free:
            self._root_velocity(obj)[ids, :3] = vel + self._com_velocity(obj)[ids]
        self._stale = True

    def set_root_vel(self, env_ids: Tensor | None, obj_id: int, root_vel: Tensor) -> None:
        obj, ids = self._free(obj_id, "set_root_vel"), self._ids(env_ids)
        self._root_velocity(obj)[ids, :3] = self._own(root_vel) + self._com_velocity(obj)[ids]
        self._stale = True

    def set_root_ang_vel(self, env_ids: Tensor | None, obj_id: int, root_ang_vel: Tensor) -> None:
        obj, ids = self._free(obj_id, "set_root_ang_vel"), self._ids(env_ids)
        vel = self.get_root_vel(obj_id)[ids]
        self._root_velocity(obj)[ids, 3:] = self._own(root_ang_vel)
        self._root_velocity(obj)[ids, :3] = vel + self._com_velocity(obj)[ids]
        self._stale = True

    def set_dof_pos(self, env_ids: Tensor | None, obj_id: int, dof_pos: Tensor) -> None:
        ids = self._ids(env_ids)
        vel = self.get_dof_vel(obj_id)[ids]  # in the child's frame, which a turn leaves as it is
        self._joints[obj_id].set_positions(self._sim.q, ids, self._own(dof_pos))
        self.set_dof_vel(ids, obj_id, vel)

    def set_dof_vel(self, env_ids: Tensor | None, obj_id: int, dof_vel: Tensor) -> None:
        self._joints[obj_id].set_velocities(self._sim.q, self._sim.qd, self._ids(env_ids), self._own(dof_vel))
        self._stale = True

    def set_body_forces(self, env_ids: Tensor | None, obj_id: int, body_id: int, forces: Tensor) -> None:
        obj, ids = self._objs[obj_id], self._ids(env_ids)
        if not 0 <= body_id < len(obj.info.bodies):
            raise ValueError(f"set_body_forces: body_id {body_id}: {obj.spec.name!r} has {len(obj.info.bodies)} bodies")
        self._sim.body_f[ids, obj.bodies.start - 1 + body_id, :3] = self._own(forces)
        self._pushed = True

    def set_gravity(self, gravity: Sequence[float]) -> None:
        x, y, z = (float(g) for g in gravity)
        self._sim.set_gravity((x, y, z))

    def _free(self, obj_id: int, what: str) -> ObjectLayout:
        obj = self._objs[obj_id]
        if not obj.is_free:
            raise ValueError(f"{what}: the root of {obj.spec.name!r} is fixed and has no velocity")
        return obj

    def _ids(self, env_ids: Tensor | None) -> Tensor:
        if env_ids is None:
            return torch.arange(self._num_envs, device=self._device)
        return torch.as_tensor(env_ids, device=self._device)

    def _own(self, values: Tensor) -> Tensor:
        return values.detach().to(self._sim.q)

    def _parts(self) -> list[Tensor]:
        """All that the simulations go on from, (num_envs, ...) each, as views."""
        sim = self._sim
        frames = [sim.root_frames[:, obj.bodies.start - 1] for obj in self._objs if not obj.is_free]
        return [sim.q, sim.qd, sim.ctrl, sim.pd_targets, sim.warm_start, self._time[:, None], *frames]

    def get_state(self) -> Tensor:
        return torch.cat([part.to(torch.float64) for part in self._parts()], dim=1)

    def set_state(self, state: Tensor) -> None:
        parts = self._parts()
        expected = (self._num_envs, sum(part.shape[1] for part in parts))
        if tuple(state.shape) != expected:
            raise ConfigError(f"set_state: expected {expected}, found {tuple(state.shape)}: "
                              "a state of another scene or number of environments")  # fmt: skip
        for part, values in zip(parts, state.split([part.shape[1] for part in parts], dim=1), strict=True):
            part.copy_(values)
        self._stale = True

    # ------------------------------------------------------------------ filming

    def stage_actors(self, env_id: int) -> list[ActorSpec]:
        if self._scene is None:
            raise RuntimeError("call initialize_sim() before a recording")
        return [
            ActorSpec(name=obj.name, asset_file=obj.asset_file, color=self._color(obj_id, env_id))
            for obj_id, obj in enumerate(self._builder.objects)
        ]

    def _color(self, obj_id: int, env_id: int) -> list[float] | None:
        color = self._builder.colors[obj_id][env_id]
        return None if color is None else [float(c) for c in color]

    def body_poses(self, env_id: int) -> list[ActorPose]:
        self._flush()
        poses: FloatArray = self._sim.body_q[env_id].cpu().numpy().astype(np.float64)
        own = [poses[self._bodies(obj)] for obj in self._objs]
        return [(pose[:, :3].copy(), pose[:, 3:].copy()) for pose in own]

    def _make_recorder(self, config: VideoConfig) -> VideoRecorder:
        from mimickit.engines.newton_recorder import NewtonRecorder

        return NewtonRecorder(self, config, self._device)


def _require_newton(device: str) -> None:
    try:
        import warp as wp

        wp.config.log_level = wp.LOG_WARNING  # what the run says is ours
        import newton  # noqa: F401
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"engine newton needs {error.name}, which is not installed: pip install -r requirements-newton.txt"
        ) from None
    try:
        wp.get_device(device)
    except (ValueError, RuntimeError) as error:
        raise ConfigError(f"engine newton: device {device!r}: {error}") from None
