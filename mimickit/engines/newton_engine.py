"""Newton (Warp) on a GPU, or on the CPU for small jobs: every environment is a world of one Newton model."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mimickit.engines.engine import ControlMode
from mimickit.engines.mujoco_scene import ObjectLayout, Scene
from mimickit.engines.newton.joints import Joints
from mimickit.engines.scene_engine import SceneEngine
from mimickit.engines.video_recorder import VideoRecorder
from mimickit.util.keys import ConfigError
from mimickit.util.rotations import quat_rotate
from mimickit.video.config import VideoConfig
from mimickit.video.snapshot import ActorPose, FloatArray

_log = logging.getLogger("mimickit.engines")
_OLDEST = (1, 8)  # Newton
_TOO_FAR = 1e10  # of a coordinate or a velocity: MuJoCo's own limit of what can't be meant


class NewtonEngine(SceneEngine):
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
        self._max_contacts = self._read_max_contacts(config)
        _require_newton(self._device)

    # ------------------------------------------------------------------ building

    def get_name(self) -> str:
        return "newton"

    def _build_sim(self, scene: Scene) -> None:
        from mimickit.engines.newton.sim import NewtonSim

        _log.info("building the Newton simulation; the first time, its kernels are compiled, which takes a minute")
        self._joints = [Joints(obj, self._device) for obj in self._objs]
        self._sim = NewtonSim(
            scene,
            num_envs=self._num_envs,
            device=self._device,
            timestep=self.get_sim_timestep(),
            substeps=self._sim_steps,
            explicit_pd=self._control_mode is ControlMode.PD_EXPLICIT,
            max_contacts=self._max_contacts,
        )
        self.set_gravity(scene.model.opt.gravity)
        self._time = torch.zeros(self._num_envs, dtype=torch.float64, device=self._device)
        self._pushed = False
        self._start_q, self._start_frames = self._make_start_state()

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

    def _command(self, obj_id: int, cmd: Tensor) -> None:
        obj = self._objs[obj_id]
        if self._control_mode is ControlMode.PD_EXPLICIT:
            self._sim.set_explicit_pd(obj, cmd, *self._pd_gains[obj_id])
        else:
            self._sim.ctrl[:, obj.actuators] = cmd.to(self._sim.ctrl)

    def _simulate(self) -> None:
        self._sim.step()
        self._stale = False
        self._time += self.get_timestep()
        if self._pushed:
            self._sim.body_f.zero_()
            self._pushed = False
        self._restart_failed()
        self._sim.room.check()

    def _restart_failed(self) -> None:
        sim = self._sim
        # a comparison with what is not a number is false; a command that is none would be clipped to a limit
        good = [(values.abs() < _TOO_FAR).all(dim=1) for values in (sim.q, sim.qd, sim.ctrl)]
        self._restart(~(good[0] & good[1] & good[2]))

    # ------------------------------------------------------------------ facts

    def get_sim_time(self, env_id: int) -> float:
        return float(self._time[env_id])

    def get_obj_mass(self, obj_id: int) -> float:
        masses = self._sim.model.body_mass.numpy()  # of all worlds, which are alike
        return float(masses[self._bodies(self._objs[obj_id])].sum())

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
            return self._none()
        return self._root_velocity(obj)[:, :3] - self._com_velocity(obj)

    def get_root_ang_vel(self, obj_id: int) -> Tensor:
        obj = self._objs[obj_id]
        if not obj.is_free:
            return self._none()
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
        self._check_body(obj_id, body_id, "set_body_forces")
        obj, ids = self._objs[obj_id], self._ids(env_ids)
        self._sim.body_f[ids, obj.bodies.start - 1 + body_id, :3] = self._own(forces)
        self._pushed = True

    def set_gravity(self, gravity: Sequence[float]) -> None:
        x, y, z = (float(g) for g in gravity)
        self._sim.set_gravity((x, y, z))

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
        self._check_state(state, expected)
        for part, values in zip(parts, state.split([part.shape[1] for part in parts], dim=1), strict=True):
            part.copy_(values)
        self._stale = True

    # ------------------------------------------------------------------ filming

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
        import newton
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"engine newton needs {error.name}, which is not installed: pip install -r requirements-newton.txt"
        ) from None
    if tuple(int(part) for part in newton.__version__.split(".")[:2]) < _OLDEST:
        raise ConfigError(
            f"engine newton: expected newton {_OLDEST[0]}.{_OLDEST[1]} or newer, found {newton.__version__}: "
            "pip install -r requirements-newton.txt, in a virtual environment of its own (another engine, such as "
            "isaac_lab, may need the one that is here)"
        )
    try:
        wp.get_device(device)
    except (ValueError, RuntimeError) as error:
        raise ConfigError(f"engine newton: device {device!r}: {error}") from None
