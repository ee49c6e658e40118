"""One object of the scene as Isaac Lab holds it, read and written in the Engine contract's order, frames and units.

Isaac Lab has orders of its own for bodies and joints, which depend on the physics: they are mapped by name. A ball
joint's position is the exponential map in both; its velocity and torque are in the parent's frame in Isaac Lab, in the
child's frame in the contract. Positions are relative to the environments' origins here.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from mimickit.engines.isaac_lab.api import Api
from mimickit.engines.isaac_lab.usd import joint_names, usd_names
from mimickit.engines.mujoco_scene import ObjectLayout
from mimickit.util.keys import ConfigError
from mimickit.util.rotations import exp_map_to_quat, quat_conjugate, quat_rotate, quat_to_exp_map


def dof_names(obj: ObjectLayout) -> list[str]:
    """What Isaac Lab calls the dofs, in the contract's order."""
    names = zip(obj.info.joints, joint_names(obj), strict=True)
    return [
        name if joint.dof_dim == 1 else f"{name}:{axis}" for joint, name in names for axis in range(joint.dof_dim)
    ]


class SimObject:
    """An asset of the scene; n is len(ids), B bodies, D dofs."""

    def __init__(self, api: Api, obj: ObjectLayout, asset: Any, contacts: Sequence[Any], origins: Tensor) -> None:
        """contacts: its contact sensors, none for what touches nothing; origins: (num_envs, 3) m."""
        self._api, self.obj, self.asset, self._contacts, self._origins = api, obj, asset, contacts, origins
        device = api.device
        bodies = usd_names(body.name for body in obj.info.bodies)
        self._bodies = _positions(bodies, asset.body_names, obj, "bodies").to(device)
        self.joint_names = joint_names(obj)
        self._num_dofs = obj.info.num_dofs
        found = list(asset.joint_names) if self._num_dofs else []
        self.dofs = _positions(dof_names(obj), found, obj, "joints").to(device)
        self._back = torch.argsort(self.dofs)
        self._back_bodies = torch.argsort(self._bodies)
        self.balls = torch.from_numpy(obj.ball_dofs).to(device)  # (balls, 3)
        self._frame: Tensor | None = None
        if contacts:
            sensed = [name for sensor in contacts for name in self._api.sensed_bodies(sensor)]
            self._touched = _positions(bodies, sensed, obj, "contact sensors").to(device)

    def place_by(self, frame: Tensor, moved: Callable[[], None]) -> None:
        """A fixed root stands where a view (num_envs, 7) of the physics says; moved() is called after a change."""
        self._frame, self._moved = frame, moved

    # ------------------------------------------------------------------ reading

    def root_pose(self) -> Tensor:
        """(num_envs, 7)."""
        if self._frame is None:
            pose = self._api.to_xyzw(self._api.tensor(self.asset.data.root_link_pose_w))
        else:
            pose = self._frame.clone()
        pose[:, :3] -= self._origins
        return pose

    def root_vel(self) -> Tensor:
        """(num_envs, 6): of the root's origin, linear first."""
        return self._api.tensor(self.asset.data.root_link_vel_w).clone()

    def dof_pos(self) -> Tensor:
        """(num_envs, D)."""
        if not self._num_dofs:
            return torch.zeros(len(self._origins), 0, device=self._api.device)
        return self._api.tensor(self.asset.data.joint_pos)[:, self.dofs]

    def dof_vel(self) -> Tensor:
        """(num_envs, D)."""
        if not self._num_dofs:
            return torch.zeros(len(self._origins), 0, device=self._api.device)
        return self.to_child(self._api.tensor(self.asset.data.joint_vel)[:, self.dofs])

    def body_pose(self) -> Tensor:
        """(num_envs, B, 7)."""
        pose = self._api.to_xyzw(self._api.tensor(self.asset.data.body_link_pose_w)[:, self._bodies])
        pose[..., :3] -= self._origins[:, None]
        return pose

    def body_vel(self) -> Tensor:
        """(num_envs, B, 6): of the bodies' origins, linear first."""
        return self._api.tensor(self.asset.data.body_link_vel_w)[:, self._bodies]

    def contact_forces(self) -> tuple[Tensor, Tensor]:
        """(num_envs, B, 3) each: all contacts', and the ground's."""
        if not self._contacts:
            none = torch.zeros(len(self._origins), len(self._bodies), 3, device=self._api.device)
            return none, none.clone()
        data = [sensor.data for sensor in self._contacts]
        total = torch.cat([self._api.tensor(of.net_forces_w) for of in data], dim=1)
        ground = torch.cat([self._api.tensor(of.force_matrix_w)[:, :, 0] for of in data], dim=1)
        return total[:, self._touched], ground[:, self._touched]

    def mass(self) -> float:
        """Of all bodies (kg)."""
        return float(self._api.tensor(self.asset.data.body_mass)[0].sum())

    # ------------------------------------------------------------------ writing

    def set_root_pose(self, ids: Tensor, pose: Tensor) -> None:
        """(n, 7)."""
        pose = pose.clone()
        pose[:, :3] += self._origins[ids]
        if self._frame is None:
            self._api.write_root_pose(self.asset, pose, ids.int())
        else:
            self._frame[ids] = pose
            self._moved()

    def set_root_vel(self, ids: Tensor, velocity: Tensor) -> None:
        """(n, 6): of the root's origin, linear first."""
        self._api.write_root_velocity(self.asset, velocity.contiguous(), ids.int())

    def set_dof_pos(self, ids: Tensor, position: Tensor) -> None:
        """(n, D)."""
        if not self._num_dofs:
            return
        position = position.clone()
        balls = position[:, self.balls]
        position[:, self.balls] = quat_to_exp_map(exp_map_to_quat(balls))  # what is read back is at most pi long
        self._api.write_joint_position(self.asset, position[:, self._back], ids.int())

    def set_dof_vel(self, ids: Tensor, velocity: Tensor) -> None:
        """(n, D); positions are those that the simulation has."""
        if self._num_dofs:
            turned = self.to_parent(velocity, ids)
            self._api.write_joint_velocity(self.asset, turned[:, self._back], ids.int())

    def command(self, kind: str, values: Tensor) -> None:
        """(num_envs, D) position (exponential map), velocity or effort (child's frame) of all drives."""
        if kind != "position":
            values = self.to_parent(values)
        self._api.command(self.asset, kind, values[:, self._back])

    def push(self, forces: Tensor) -> None:
        """(num_envs, B, 3) N on the centres of mass, world frame, until the next write to the sim."""
        self._api.push(self.asset, forces[:, self._back_bodies])

    # ------------------------------------------------------------------ frames of ball joints

    def to_child(self, values: Tensor) -> Tensor:
        """Vectors (num_envs, D) of ball joints, out of the parents' frames, in place."""
        if len(self.balls):
            turn = quat_conjugate(self._ball_quats())
            values[:, self.balls] = quat_rotate(turn, values[:, self.balls])
        return values

    def to_parent(self, values: Tensor, ids: Tensor | None = None) -> Tensor:
        """A copy of vectors (n, D), those of ball joints in the parents' frames."""
        if not len(self.balls):
            return values
        turn, values = self._ball_quats(), values.clone()
        values[:, self.balls] = quat_rotate(turn if ids is None else turn[ids], values[:, self.balls])
        return values

    def _ball_quats(self) -> Tensor:
        """(num_envs, balls, 4)."""
        return exp_map_to_quat(self.dof_pos()[:, self.balls])


def _positions(names: Sequence[str], found: Sequence[str], obj: ObjectLayout, what: str) -> Tensor:
    """Where each name is in what was found. Raises ConfigError."""
    if sorted(names) != sorted(found):
        raise ConfigError(
            f"{obj.spec.asset_file}: Isaac Lab's {what} are not the character's: expected {list(names)}, found "
            f"{list(found)}"
        )
    return torch.tensor([list(found).index(name) for name in names], dtype=torch.int64)
