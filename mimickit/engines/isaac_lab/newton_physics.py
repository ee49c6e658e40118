"""What the Isaac Lab engine asks of Newton physics beyond Isaac Lab's own calls."""

from typing import Any

import torch
import warp as wp  # noqa: TID253  (this module is imported by the Isaac Lab engine alone)
from torch import Tensor

from mimickit.engines.engine import ControlMode
from mimickit.engines.isaac_lab.object import SimObject
from mimickit.engines.isaac_lab.scene import asset_name
from mimickit.engines.isaac_lab.usd import joint_names, usd_names
from mimickit.engines.mujoco_scene import Scene
from mimickit.engines.newton.constraints import add_equalities, add_ground_excludes, can_couple, warn_of_pairs
from mimickit.engines.newton.room import ContactRoom, constraint_rows, contact_room

_ONE_DOMAIN = 1  # collision bits mean the same on all shapes, and so are kept
_AFTER_ISAAC_LABS = 100  # order of a callback


class NewtonPhysics:
    """Newton's MuJoCo solver, with the options of the scene's model. All substeps are one step of the simulation."""

    def __init__(self, scene: Scene, mode: ControlMode, *, substeps: int, max_contacts: int = 0) -> None:
        """substeps: physics steps in one step of the simulation; max_contacts in one environment, 0 for an estimate."""
        self._scene, self._mode, self._substeps, self._max_contacts = scene, mode, substeps, max_contacts

    def config(self) -> Any:
        """A NewtonCfg."""
        import mujoco
        from isaaclab_newton.physics import MJWarpSolverCfg, NewtonCfg, NewtonShapeCfg

        from mimickit.engines.isaac_lab.manager import NewtonGraphManager

        mj, cone = self._scene.model, mujoco.mjtCone.mjCONE_ELLIPTIC
        contacts = contact_room(mj, self._max_contacts, "isaac_lab")
        solver = MJWarpSolverCfg(
            class_type=NewtonGraphManager,
            njmax=constraint_rows(mj, contacts),
            nconmax=contacts,
            integrator="implicitfast",  # what the scene has; stiff drives diverge with "euler"
            iterations=int(mj.opt.iterations),
            ls_iterations=int(mj.opt.ls_iterations),
            cone="elliptic" if mj.opt.cone == cone else "pyramidal",
            impratio=float(mj.opt.impratio),
            enable_multiccd=True,  # as MuJoCo does: several contacts between two flat faces
        )
        return NewtonCfg(num_substeps=self._substeps, default_shape_cfg=NewtonShapeCfg(gap=0.0), solver_cfg=solver)

    def prepare(self, sim: Any) -> None:
        """Before the scene is built."""
        from isaaclab.physics import PhysicsEvent
        from isaaclab_newton.physics import NewtonBuilderCfg, NewtonManager

        self._manager, self._sim = NewtonManager, sim
        NewtonManager.request_extended_state_attribute("mujoco:qfrc_actuator")

        def finish(_event: Any) -> None:
            builder = sim.get_or_create_backend(NewtonBuilderCfg(physics_cfg=sim.cfg.physics))
            self._finish(builder)
            self._couple(builder)

        self._callback = NewtonManager.register_callback(
            finish, PhysicsEvent.MODEL_INIT, order=_AFTER_ISAAC_LABS, wrap_weak_ref=False
        )

    def _finish(self, builder: Any) -> None:
        """Where the builder does otherwise than the scene's model: collision bits of several files mean the same, and
        a drive is one actuator, whose force limit holds for the sum of both gains' parts.
        """
        from newton import JointTargetMode

        domain = builder.custom_attributes["mujoco:collision_mask_domain"]
        contype = builder.custom_attributes["mujoco:contype"]
        for shape in contype.values or {}:
            domain.values[shape] = _ONE_DOMAIN
        merged, wanted = int(JointTargetMode.POSITION_VELOCITY), int(JointTargetMode.POSITION)
        if self._mode is ControlMode.POS:
            builder.joint_target_mode[:] = [wanted if mode == merged else mode for mode in builder.joint_target_mode]

    def _couple(self, builder: Any) -> None:
        """What USD has no word for: equality constraints, and who passes through the ground."""
        mj = self._scene.model
        warn_of_pairs(mj)
        bodies = {label: index for index, label in enumerate(builder.body_label)}
        joints = {label: index for index, label in enumerate(builder.joint_label)}
        body_paths, joint_paths = self._paths()
        envs = range(builder.world_count)
        add_ground_excludes(builder, mj, lambda body: [bodies[body_paths[body].format(env)] for env in envs])
        for env in envs if can_couple(mj) else ():
            add_equalities(
                builder, mj, world=env,
                # the world is at another place in every environment
                body_of=lambda body: bodies[body_paths[body].format(env)] if body else None,  # noqa: B023
                joint_of=lambda joint: joints[joint_paths[int(mj.jnt_bodyid[joint])].format(env)],  # noqa: B023
            )  # fmt: skip

    def _paths(self) -> tuple[dict[int, str], dict[int, str]]:
        """Where bodies, and the joints that lead to them, are in the stage, by MuJoCo's ids of the bodies; {} stands
        for the environment.
        """
        bodies: dict[int, str] = {}
        joints: dict[int, str] = {}
        for obj in self._scene.objects:
            folder, ids = f"/World/envs/env_{{}}/{asset_name(obj)}", range(self._scene.model.nbody)[obj.bodies]
            names = usd_names(body.name for body in obj.info.bodies)
            bodies |= {body: f"{folder}/{name}" for body, name in zip(ids, names, strict=True)}
            joints |= {
                body: f"{folder}/joints/{name}" for body, name in zip(ids[1:], joint_names(obj), strict=True)
            }  # fmt: skip
        return bodies, joints

    def bind(self, objects: list[SimObject]) -> None:
        """When the simulation is built."""
        state, model = self._manager.get_state_0(), self._manager.get_model()
        n = int(objects[0].asset.num_instances)
        self._q = wp.to_torch(state.joint_q).view(n, -1)
        self._qd = wp.to_torch(state.joint_qd).view(n, -1)
        self._drive_force = wp.to_torch(state.mujoco.qfrc_actuator).view(n, -1)
        self._room = ContactRoom(self._manager._solver, "isaac_lab")
        self._warm_start = wp.to_torch(self._manager._solver.mjw_data.qacc_warmstart)[:, : self._scene.model.nv]
        starts, parents = model.joint_qd_start.numpy(), model.joint_parent.numpy()
        labels = list(model.joint_label)
        self._objects = objects
        frames = wp.to_torch(model.joint_X_p).view(n, -1, 7)
        for item in objects:
            # Isaac Lab 3.0 writes the place of a fixed root into a copy
            if not item.obj.is_free and len(item.obj.info.bodies) > 1:
                root = next(i for i in self._joints_of(item, labels).values() if parents[i] < 0)
                item.place_by(frames[:, root], self._roots_moved)
        self._columns = [self._dof_columns(item, labels, starts) for item in objects]

    def _dof_columns(self, item: SimObject, labels: list[str], starts: Any) -> Tensor:
        """Of the object's dofs in the flat array of an environment."""
        found: list[int] = []
        joints = self._joints_of(item, labels)
        for joint, name in zip(item.obj.info.joints, item.joint_names, strict=True):
            if joint.dof_dim:
                index = joints[name]
                found += range(int(starts[index]), int(starts[index]) + joint.dof_dim)
        return torch.tensor(found, dtype=torch.int64, device=self._q.device)

    @staticmethod
    def _joints_of(item: SimObject, labels: list[str]) -> dict[str, int]:
        """The joints of the object in the first environment by their names."""
        start = f"/World/envs/env_0/{asset_name(item.obj)}/"
        return {label.rsplit("/", 1)[-1]: i for i, label in enumerate(labels) if label.startswith(start)}

    def _roots_moved(self) -> None:
        from newton import ModelFlags

        self._manager._solver.notify_model_changed(ModelFlags.JOINT_PROPERTIES)
        self._manager.invalidate_fk()

    def drive_forces(self, index: int) -> Tensor:
        """(num_envs, D) N m of an object's drives in the last physics step."""
        return self._objects[index].to_child(self._drive_force[:, self._columns[index]])

    def check(self) -> None:
        """Say what could not be simulated as it was asked."""
        self._room.check()

    def is_sound(self) -> list[Tensor]:
        """What has to be numbers, and no great ones: (num_envs, ...) each."""
        return [self._q, self._qd]

    def parts(self) -> list[Tensor]:
        """What the simulations go on from, (num_envs, ...) views, the solver's memory last."""
        return [self._q, self._qd, self._warm_start]

    def restore(self, parts: list[Tensor]) -> None:
        """Put back what parts() gave, when all else is set."""
        for own, values in zip(self.parts(), parts, strict=True):
            own.copy_(values)
        self._manager.invalidate_fk()
        self._manager.forward()  # makes the solver forget
        self._warm_start.copy_(parts[-1])

    def set_gravity(self, gravity: tuple[float, float, float]) -> None:
        """Gravity (m/s^2) of all environments."""
        from newton import ModelFlags

        self._manager.get_model().set_gravity(gravity)
        self._manager.add_model_change(ModelFlags.MODEL_PROPERTIES)
