"""Newton's simulation of a scene: the model, its solver and the control step, captured once as a Warp graph.

Everything that lives here is a torch tensor that shares its memory with Newton's arrays.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import newton  # noqa: TID253  (this module is imported by the Newton engine alone)
import numpy as np
import torch
import warp as wp  # noqa: TID253
from torch import Tensor

from mimickit.engines.mujoco_scene import ObjectLayout, Scene
from mimickit.engines.newton.room import ContactRoom, constraint_rows, contact_room
from mimickit.engines.newton.scene import build_model
from mimickit.engines.warp_lock import GRAPH_LOCK, WARP_LOCK

_BALL_COORDS = 4


class NewtonSim:
    """num_envs worlds side by side, each at the place where MuJoCo's arrays have it (see newton/scene.py)."""

    def __init__(
        self,
        scene: Scene,
        *,
        num_envs: int,
        device: str,
        timestep: float,
        substeps: int,
        explicit_pd: bool,
        max_contacts: int = 0,
    ) -> None:
        """timestep in s, substeps of it in a control step; max_contacts in one environment, 0 for an estimate."""
        mj = scene.model
        self._timestep, self._substeps = timestep, substeps
        self.model = build_model(mj, num_envs, device)
        contacts = contact_room(mj, max_contacts, "newton")
        self._solver = newton.solvers.SolverMuJoCo(
            self.model,
            integrator="implicitfast",
            enable_multiccd=True,  # as MuJoCo does: several contacts between two flat faces
            nconmax=contacts,
            njmax=constraint_rows(mj, contacts),
            kinematic_switchable_roots=False,
        )
        self.room = ContactRoom(self._solver, "newton")
        self.state = self.model.state()
        self._control = self.model.control()
        self._sensor, self._observables, self._contacts = self._make_sensor(mj)
        self._bind(mj, num_envs)
        self._pd = _ExplicitPd(scene, self, num_envs) if explicit_pd and mj.nu else None
        with WARP_LOCK:
            self._graph = self._capture()

    def _make_sensor(self, mj: Any) -> tuple[Any, Any, Any]:
        """None for the sensor where nothing can touch anything."""
        kinds = newton.solvers.SolverMuJoCo.ObservableKind
        wanted = {kinds.QFRC_ACTUATOR}
        bodies = self.model.shape_body.numpy()
        if not (bodies >= 0).any():
            return None, self._solver.observables(kinds=wanted), None
        ground = int(np.flatnonzero(bodies < 0)[0])
        sensor = newton.sensors.SensorContact(
            self.model,
            sensing_bodies=list(range(self.model.body_count)),
            counterpart_shapes=[ground],
            request_contact_attributes=False,
        )
        pipeline = newton.CollisionPipeline(
            self.model, rigid_contact_max=self._solver.get_max_contact_count(), soft_contact_max=0
        )
        contacts = pipeline.contacts()
        wanted |= set(sensor.solver_observable_kinds)
        return sensor, self._solver.observables(kinds=wanted, contacts=contacts), contacts

    def _bind(self, mj: Any, n: int) -> None:
        state, data = self.state, self._solver.mjw_data
        state.body_f = wp.zeros(self.model.body_count, dtype=wp.spatial_vector, device=self.model.device)
        self.q = wp.to_torch(state.joint_q).view(n, -1)
        self.qd = wp.to_torch(state.joint_qd).view(n, -1)
        self.body_q = wp.to_torch(state.body_q).view(n, -1, 7)
        self.body_qd = wp.to_torch(state.body_qd).view(n, -1, 6)
        self.body_f = wp.to_torch(state.body_f).view(n, -1, 6)
        self.body_com = wp.to_torch(self.model.body_com).view(n, -1, 3)
        self.root_frames = wp.to_torch(self.model.joint_X_p).view(n, -1, 7)
        if self._sensor is None:
            self.total_force, self.ground_force = (torch.zeros_like(self.body_com) for _ in range(2))
        else:
            self.total_force = wp.to_torch(self._sensor.total_force).view(n, -1, 3)
            self.ground_force = wp.to_torch(self._sensor.force_matrix).view(n, -1, 3)
        self.dof_force = wp.to_torch(self._observables.qfrc_actuator).view(n, -1)
        self.warm_start = wp.to_torch(data.qacc_warmstart)[:, : mj.nv]
        own = getattr(getattr(self._control, "mujoco", None), "ctrl", None)
        self.ctrl = torch.zeros(n, 0, device=self.q.device) if own is None else wp.to_torch(own).view(n, -1)
        # the last row stands for what belongs to no world
        self._mask = wp.zeros(n + 1, dtype=wp.bool, device=self.model.device)
        self.reset_mask = wp.to_torch(self._mask)

    # ------------------------------------------------------------------ running

    def step(self) -> None:
        """One control step."""
        with self._on_device(), GRAPH_LOCK:
            wp.capture_launch(self._graph)

    def _capture(self) -> Any:
        """Every kernel is loaded by a step that doesn't count; then the launches of one step are written down."""
        kept = [
            (values, values.clone())
            for values in (self.q, self.qd, self.body_q, self.body_qd, self.ctrl, self.warm_start,
                           self.total_force, self.ground_force, self.dof_force)
        ]  # fmt: skip
        with self._on_device():
            self._launch_step()
        for values, before in kept:
            values.copy_(before)
        with wp.ScopedDevice(self.model.device), wp.ScopedCapture() as capture:
            self._launch_step()
        return capture.graph

    def _launch_step(self) -> None:
        for substep in range(self._substeps):
            if self._pd is not None:
                self._pd.launch()
            seen = self._observables if substep == self._substeps - 1 else None
            self._solver.step(
                self.state, self.state, self._control, self._contacts, self._timestep, observables=seen
            )
        if self._sensor is not None:
            self._sensor.update(self.state, self._contacts, observables=self._observables)

    def forward(self) -> None:
        """Body poses and velocities from the joints'."""
        with self._on_device():
            newton.eval_fk(self.model, self.state.joint_q, self.state.joint_qd, self.state)

    def forget(self) -> None:
        """Clear what the solver remembers of the worlds in reset_mask, and the mask."""
        with self._on_device():
            self._solver.reset(self.state, world_mask=self._mask, flags=0)
        self.reset_mask[:] = False

    def set_gravity(self, gravity: tuple[float, float, float]) -> None:
        """Gravity (m/s^2) of all worlds."""
        with self._on_device():
            self.model.set_gravity(gravity)
            self._solver.notify_model_changed(newton.ModelFlags.MODEL_PROPERTIES)

    def set_explicit_pd(self, obj: ObjectLayout, target: Tensor, kp: Tensor, kd: Tensor) -> None:
        """Targets (num_envs, D) rad of an object's drives and their gains (D,)."""
        if self._pd is not None:
            self._pd.set(obj, target, kp, kd)

    @property
    def pd_targets(self) -> Tensor:
        """(num_envs, nu) rad, empty where there are none."""
        return self.ctrl[:, :0] if self._pd is None else self._pd.target

    @contextlib.contextmanager
    def _on_device(self) -> Iterator[None]:
        """Warp's launches after what torch has under way, and torch's next after them; the two have streams of their
        own, because torch's default stream can't be captured.
        """
        device = self.model.device
        if not device.is_cuda:
            yield
            return
        torchs = wp.stream_from_torch(torch.cuda.current_stream(str(device)))
        device.stream.wait_stream(torchs)
        yield
        torchs.wait_stream(device.stream)


class _ExplicitPd:
    """Torques of PD drives that are computed before every physics step, inside the graph."""

    def __init__(self, scene: Scene, sim: NewtonSim, num_envs: int) -> None:
        rows: list[tuple[int, int, int, int]] = []  # first actuator, coordinate, dof, whether it is a ball joint
        for obj in scene.objects:
            if obj.actuators.stop > obj.actuators.start:
                rows += _drive_rows(obj)
        device = sim.model.device
        self._sim, self._num_envs, self._num_joints = sim, num_envs, len(rows)
        self._rows = wp.array(np.array(rows, dtype=np.int32), dtype=wp.vec4i, device=device)
        num_drives = sim.ctrl.shape[1]
        self._arrays = [wp.zeros((num_envs, num_drives), dtype=wp.float32, device=device) for _ in range(2)]
        self._gains = [wp.zeros(num_drives, dtype=wp.float32, device=device) for _ in range(2)]
        self.target = wp.to_torch(self._arrays[0])
        state, control = sim.state, sim._control
        self._joint_q = state.joint_q.reshape((num_envs, -1))
        self._joint_qd = state.joint_qd.reshape((num_envs, -1))
        self._ctrl = control.mujoco.ctrl.reshape((num_envs, -1))

    def set(self, obj: ObjectLayout, target: Tensor, kp: Tensor, kd: Tensor) -> None:
        self.target[:, obj.actuators] = target.to(self.target)
        for array, gain in zip(self._gains, (kp, kd), strict=True):
            wp.to_torch(array)[obj.actuators] = gain.to(self.target)

    def launch(self) -> None:
        wp.launch(
            _explicit_pd,
            dim=(self._num_envs, self._num_joints),
            inputs=[self._rows, self._joint_q, self._joint_qd, self._arrays[0], *self._gains],
            outputs=[self._ctrl],
            device=self._sim.model.device,
        )


def _drive_rows(obj: ObjectLayout) -> list[tuple[int, int, int, int]]:
    first, dof0 = obj.actuators.start, obj.dof_qvel.start
    hinges = [(first + d, q, dof0 + d, 0) for d, q in zip(obj.hinge_dofs, obj.hinge_qpos, strict=True)]
    balls = [(first + d[0], q.min(), dof0 + d[0], 1) for d, q in zip(obj.ball_dofs, obj.ball_qpos, strict=True)]
    return [tuple(int(v) for v in row) for row in (*hinges, *balls)]  # type: ignore[misc]


@wp.func
def _rotation(exp_map: wp.vec3) -> wp.quat:
    angle = wp.length(exp_map)
    return wp.quat_from_axis_angle(wp.normalize(exp_map), angle)


@wp.func
def _exp_map(turn: wp.quat) -> wp.vec3:
    """The shorter way round."""
    axis = wp.vec3(turn[0], turn[1], turn[2])
    sine, cosine = wp.length(axis), turn[3]
    if cosine < 0.0:
        axis = -axis
        cosine = -cosine
    return wp.normalize(axis) * (2.0 * wp.atan2(sine, cosine))


@wp.kernel
def _explicit_pd(
    rows: wp.array[wp.vec4i],
    joint_q: wp.array2d[wp.float32],
    joint_qd: wp.array2d[wp.float32],
    target: wp.array2d[wp.float32],
    kp: wp.array[wp.float32],
    kd: wp.array[wp.float32],
    ctrl: wp.array2d[wp.float32],
) -> None:
    env, joint = wp.tid()
    row = rows[joint]
    a, q, d = row[0], row[1], row[2]
    if row[3] == 0:
        ctrl[env, a] = kp[a] * (target[env, a] - joint_q[env, q]) - kd[a] * joint_qd[env, d]
    else:
        now = wp.quat(joint_q[env, q], joint_q[env, q + 1], joint_q[env, q + 2], joint_q[env, q + 3])
        goal = _rotation(wp.vec3(target[env, a], target[env, a + 1], target[env, a + 2]))
        error = _exp_map(wp.quat_inverse(now) * goal)
        # Newton's ball velocity is in the parent's frame, drives and gains are the child's
        spin = wp.quat_rotate_inv(now, wp.vec3(joint_qd[env, d], joint_qd[env, d + 1], joint_qd[env, d + 2]))
        for i in range(3):
            ctrl[env, a + i] = kp[a + i] * error[i] - kd[a + i] * spin[i]
