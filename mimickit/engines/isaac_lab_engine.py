"""Isaac Lab on a GPU, or on the CPU for small jobs: with Newton physics and no Kit, or with PhysX inside Kit."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mimickit.engines.engine import ControlMode
from mimickit.engines.isaac_lab.api import open_api
from mimickit.engines.isaac_lab.names import NEWTON
from mimickit.engines.mujoco_scene import Scene
from mimickit.engines.scene_engine import SceneEngine
from mimickit.engines.video_recorder import VideoRecorder
from mimickit.util.keys import as_float
from mimickit.util.rotations import exp_map_to_quat, quat_conjugate, quat_mul, quat_to_exp_map
from mimickit.video.config import VideoConfig
from mimickit.video.snapshot import ActorPose

_log = logging.getLogger("mimickit.engines")
_TOO_FAR = 1e10  # of a coordinate or a velocity: MuJoCo's own limit of what can't be meant
_AT_ONCE = (ControlMode.NONE, ControlMode.POS)  # nothing has to be worked out between physics steps
_PHYSX_SPACING = 5.0  # m


class IsaacLabEngine(SceneEngine):
    """The Engine contract on Isaac Lab, which has one simulation in a process.

    With Newton physics environments lie on top of each other in worlds of their own (env_spacing 0), where numbers are
    most exact; with PhysX they stand side by side. Contact and drive forces are those of the last physics step; of an
    environment that was reset they are zero.
    """

    EXTRA_KEYS = ("max_contacts", "physics")

    def __init__(self, config: Mapping[str, Any], *, num_envs: int, **options: Any) -> None:
        """As Engine. max_contacts in config: room for contacts in one environment, 0 for an estimate; physics: newton,
        physx, or auto for what the installed Isaac Lab has. Raises ConfigError where Isaac Lab is not installed or
        the device is not there.
        """
        super().__init__(config, num_envs=num_envs, **options)
        self._max_contacts = self._read_max_contacts(config)
        self._api = open_api(str(config.get("physics", "auto")), self._device, self._source)
        spacing = 0.0 if self._api.physics == NEWTON else _PHYSX_SPACING
        self._spacing = as_float(config.get("env_spacing", spacing), "env_spacing", self._source)

    # ------------------------------------------------------------------ building

    def get_name(self) -> str:
        return "isaac_lab"

    def _build_sim(self, scene: Scene) -> None:
        from mimickit.engines.isaac_lab.sim import IsaacLabSim, Physics

        _log.info("building Isaac Lab's simulation; the first time, its kernels are compiled: a minute or two")
        physics: Physics
        mode, at_once = self._control_mode, 1
        if self._api.physics == NEWTON:
            from mimickit.engines.isaac_lab.newton_physics import NewtonPhysics

            at_once = self._sim_steps if mode in _AT_ONCE else 1
            physics = NewtonPhysics(scene, mode, substeps=at_once, max_contacts=self._max_contacts)
        else:
            from mimickit.engines.isaac_lab.physx_physics import PhysxPhysics

            physics = PhysxPhysics(self._api, scene)
        self._advances = self._sim_steps // at_once
        dt = self.get_sim_timestep() * at_once
        self._sim = IsaacLabSim(
            scene, self._api, physics, num_envs=self._num_envs, spacing=self._spacing, dt=dt, mode=mode
        )
        self._physics = physics
        self._make_buffers()

    def _make_buffers(self) -> None:
        n, device = self._num_envs, self._device
        self._time = torch.zeros(n, dtype=torch.float64, device=device)
        self._pushed: set[int] = set()
        dofs = [obj.info.num_dofs for obj in self._objs]
        bodies = [len(obj.info.bodies) for obj in self._objs]
        self._cmd = [torch.zeros(n, d, device=device) for d in dofs]
        self._drive_force = [torch.zeros(n, d, device=device) for d in dofs]
        self._push, self._total_force, self._ground_force = (
            [torch.zeros(n, b, 3, device=device) for b in bodies] for _ in range(3)
        )
        self._torque_limit = [self.get_obj_torque_limits(i) for i in range(len(dofs))]
        self._start = [
            torch.from_numpy(np.stack([np.concatenate(start) for start in starts])).to(device, torch.float32)
            for starts in self._builder.start
        ]

    def reset_envs(self, env_ids: Tensor | None) -> None:
        ids = self._ids(env_ids)
        none = torch.zeros(len(ids), 6, device=self._device)
        for item, start, cmd in zip(self._sim.objects, self._start, self._cmd, strict=True):
            cmd[ids] = 0.0
            item.set_root_pose(ids, start[ids])
            if item.obj.is_free:
                item.set_root_vel(ids, none)
            item.set_dof_pos(ids, cmd[ids])
            item.set_dof_vel(ids, cmd[ids])
        for values in (*self._drive_force, *self._push, *self._total_force, *self._ground_force, self._time):
            values[ids] = 0.0

    # ------------------------------------------------------------------ stepping

    def _command(self, obj_id: int, cmd: Tensor) -> None:
        self._cmd[obj_id].copy_(cmd)

    def _simulate(self) -> None:
        for _ in range(self._advances):
            self._drive()
            self._sim.advance()
        for obj_id in self._pushed:
            self._push[obj_id].zero_()
        self._pushed.clear()
        self._time += self.get_timestep()
        for obj_id, item in enumerate(self._sim.objects):
            self._total_force[obj_id], self._ground_force[obj_id] = item.contact_forces()
            if not self._has_torques and self._has_drives(obj_id):
                self._drive_force[obj_id] = self._physics.drive_forces(obj_id)
        self._restart_failed()
        self._physics.check()

    @property
    def _has_torques(self) -> bool:
        """Whether the drives' torques are worked out here, and not by the solver."""
        return self._control_mode in (ControlMode.TORQUE, ControlMode.PD_EXPLICIT)

    def _has_drives(self, obj_id: int) -> bool:
        return self._objs[obj_id].actuators.stop > self._objs[obj_id].actuators.start

    def _drive(self) -> None:
        """Hand on commands and pushes for the next step of the simulation."""
        for obj_id in self._pushed:
            self._sim.objects[obj_id].push(self._push[obj_id])
        for obj_id, item in enumerate(self._sim.objects):
            if not self._has_drives(obj_id):
                continue
            if self._has_torques:
                self._drive_force[obj_id] = self._torques(obj_id)
                item.command("effort", self._drive_force[obj_id])
            else:
                item.command("position" if self._control_mode is ControlMode.POS else "velocity", self._cmd[obj_id])

    def _torques(self, obj_id: int) -> Tensor:
        """(num_envs, D) N m within the limits."""
        torque, limit = self._cmd[obj_id], self._torque_limit[obj_id]
        if self._control_mode is ControlMode.PD_EXPLICIT:
            item, (kp, kd) = self._sim.objects[obj_id], self._pd_gains[obj_id]
            now = item.dof_pos()
            error, balls = torque - now, item.balls
            turn = quat_mul(quat_conjugate(exp_map_to_quat(now[:, balls])), exp_map_to_quat(torque[:, balls]))
            error[:, balls] = quat_to_exp_map(turn)
            torque = kp * error - kd * item.dof_vel()
        return torque.clamp(-limit, limit)

    def _restart_failed(self) -> None:
        # a comparison with what is not a number is false; a command that is none would be clipped to a limit
        good = [(values.abs() < _TOO_FAR).all(dim=1) for values in (*self._physics.is_sound(), *self._cmd)]
        self._restart(~torch.stack(good).all(dim=0))

    # ------------------------------------------------------------------ facts

    def get_sim_time(self, env_id: int) -> float:
        return float(self._time[env_id])

    def get_obj_mass(self, obj_id: int) -> float:
        return self._sim.objects[obj_id].mass()

    # ------------------------------------------------------------------ reading

    def get_root_pos(self, obj_id: int) -> Tensor:
        return self._sim.objects[obj_id].root_pose()[:, :3]

    def get_root_rot(self, obj_id: int) -> Tensor:
        return self._sim.objects[obj_id].root_pose()[:, 3:]

    def get_root_vel(self, obj_id: int) -> Tensor:
        return self._root_vel(obj_id)[:, :3]

    def get_root_ang_vel(self, obj_id: int) -> Tensor:
        return self._root_vel(obj_id)[:, 3:]

    def _root_vel(self, obj_id: int) -> Tensor:
        item = self._sim.objects[obj_id]
        return item.root_vel() if item.obj.is_free else torch.zeros(self._num_envs, 6, device=self._device)

    def get_dof_pos(self, obj_id: int) -> Tensor:
        return self._sim.objects[obj_id].dof_pos()

    def get_dof_vel(self, obj_id: int) -> Tensor:
        return self._sim.objects[obj_id].dof_vel()

    def get_dof_forces(self, obj_id: int) -> Tensor:
        return self._drive_force[obj_id].clone()

    def get_body_pos(self, obj_id: int) -> Tensor:
        return self._sim.objects[obj_id].body_pose()[..., :3]

    def get_body_rot(self, obj_id: int) -> Tensor:
        return self._sim.objects[obj_id].body_pose()[..., 3:]

    def get_body_vel(self, obj_id: int) -> Tensor:
        return self._sim.objects[obj_id].body_vel()[..., :3]

    def get_body_ang_vel(self, obj_id: int) -> Tensor:
        return self._sim.objects[obj_id].body_vel()[..., 3:]

    def get_contact_forces(self, obj_id: int) -> Tensor:
        return self._total_force[obj_id].clone()

    def get_ground_contact_forces(self, obj_id: int) -> Tensor:
        return self._ground_force[obj_id].clone()

    # ------------------------------------------------------------------ writing

    def set_root_pos(self, env_ids: Tensor | None, obj_id: int, root_pos: Tensor) -> None:
        self._set_root_pose(env_ids, obj_id, slice(0, 3), root_pos)

    def set_root_rot(self, env_ids: Tensor | None, obj_id: int, root_rot: Tensor) -> None:
        self._set_root_pose(env_ids, obj_id, slice(3, 7), root_rot)

    def _set_root_pose(self, env_ids: Tensor | None, obj_id: int, part: slice, values: Tensor) -> None:
        item, ids = self._sim.objects[obj_id], self._ids(env_ids)
        pose = item.root_pose()[ids]
        velocity = self._root_vel(obj_id)[ids]  # the origin's, which a turn leaves as it is
        pose[:, part] = self._own(values)
        item.set_root_pose(ids, pose)
        if item.obj.is_free:
            item.set_root_vel(ids, velocity)

    def set_root_vel(self, env_ids: Tensor | None, obj_id: int, root_vel: Tensor) -> None:
        self._set_root_vel(env_ids, obj_id, slice(0, 3), root_vel, "set_root_vel")

    def set_root_ang_vel(self, env_ids: Tensor | None, obj_id: int, root_ang_vel: Tensor) -> None:
        self._set_root_vel(env_ids, obj_id, slice(3, 6), root_ang_vel, "set_root_ang_vel")

    def _set_root_vel(self, env_ids: Tensor | None, obj_id: int, part: slice, values: Tensor, what: str) -> None:
        self._free(obj_id, what)
        ids = self._ids(env_ids)
        velocity = self._root_vel(obj_id)[ids]
        velocity[:, part] = self._own(values)
        self._sim.objects[obj_id].set_root_vel(ids, velocity)

    def set_dof_pos(self, env_ids: Tensor | None, obj_id: int, dof_pos: Tensor) -> None:
        item, ids = self._sim.objects[obj_id], self._ids(env_ids)
        velocity = item.dof_vel()[ids]  # in the child's frame, which a turn leaves as it is
        item.set_dof_pos(ids, self._own(dof_pos).expand(len(ids), -1))
        item.set_dof_vel(ids, velocity)

    def set_dof_vel(self, env_ids: Tensor | None, obj_id: int, dof_vel: Tensor) -> None:
        ids = self._ids(env_ids)
        self._sim.objects[obj_id].set_dof_vel(ids, self._own(dof_vel).expand(len(ids), -1))

    def set_body_forces(self, env_ids: Tensor | None, obj_id: int, body_id: int, forces: Tensor) -> None:
        self._check_body(obj_id, body_id, "set_body_forces")
        self._push[obj_id][self._ids(env_ids), body_id] = self._own(forces)
        self._pushed.add(obj_id)

    def set_gravity(self, gravity: Sequence[float]) -> None:
        x, y, z = (float(g) for g in gravity)
        self._physics.set_gravity((x, y, z))

    def _own(self, values: Tensor) -> Tensor:
        return values.detach().to(self._device, torch.float32)

    def _parts(self) -> list[Tensor]:
        """All that the simulations go on from, (num_envs, ...) each: fixed roots' places, our own, the physics'."""
        fixed = [item.root_pose() for item in self._sim.objects if not item.obj.is_free]
        return [*fixed, *self._cmd, self._time[:, None], *self._physics.parts()]

    def get_state(self) -> Tensor:
        return torch.cat([part.to(torch.float64) for part in self._parts()], dim=1)

    def set_state(self, state: Tensor) -> None:
        parts = self._parts()
        self._check_state(state, (self._num_envs, sum(part.shape[1] for part in parts)))
        split = state.to(self._device).split([part.shape[1] for part in parts], dim=1)
        values = [new.to(old) for new, old in zip(split, parts, strict=True)]
        ids = self._ids(None)
        for item in self._sim.objects:
            if not item.obj.is_free:
                item.set_root_pose(ids, values.pop(0))
        for cmd in self._cmd:
            cmd.copy_(values.pop(0))
        self._time.copy_(values.pop(0)[:, 0])
        self._physics.restore(values)

    # ------------------------------------------------------------------ filming

    def body_poses(self, env_id: int) -> list[ActorPose]:
        poses = [item.body_pose()[env_id].cpu().numpy().astype(np.float64) for item in self._sim.objects]
        return [(pose[:, :3].copy(), pose[:, 3:].copy()) for pose in poses]

    def _make_recorder(self, config: VideoConfig) -> VideoRecorder:
        if self._api.physics == NEWTON:
            from mimickit.engines.isaac_lab_recorder import IsaacLabRecorder

            return IsaacLabRecorder(self, config, self._device)
        from mimickit.engines.isaac_lab.rtx import RtxFilmer
        from mimickit.engines.live_recorder import LiveRecorder

        return LiveRecorder(self, config, RtxFilmer(self._sim.context, self._sim.origins))

    def close(self) -> None:
        super().close()
        if self._scene is not None:
            self._sim.close()
