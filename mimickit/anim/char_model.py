"""Kinematics of a character in torch: dofs, joint rotations, body poses; vectorised over any leading shape.

Shapes: B bodies, J = B - 1 joints (joint j moves body j + 1), D dofs. Quaternions x y z w; m, rad, s.
"""

import itertools
import math
import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from mimickit.anim.mjcf import CharacterInfo, JointInfo, read_mjcf
from mimickit.anim.source import CharacterError
from mimickit.util.keys import nearest
from mimickit.util.rotations import (
    exp_map_to_quat,
    quat_conjugate,
    quat_identity,
    quat_mul,
    quat_rotate,
    quat_to_exp_map,
)

_MIN_RANGE = 1e-6  # rad, below which a dof has no room to move
_UNLIMITED = math.pi  # rad, the range on either side of zero that an unlimited dof is given


class CharModel:
    """A character's kinematic tree on a device."""

    def __init__(self, info: CharacterInfo, *, device: str | torch.device = "cpu") -> None:
        self._info = info
        self._device = torch.device(device)
        self._parents = [body.parent for body in info.bodies]
        self._ids = {body.name: i for i, body in enumerate(info.bodies)}
        self._dof_limits = self._tensor(_bounded_limits(info))
        self._dof_to_exp = self._tensor(_exp_map_matrix(info))
        levels = _tree_levels(self._parents)
        self._levels = [_Level(info, bodies, above, self._device) for above, bodies in itertools.pairwise(levels)]
        order = [b for level in levels for b in level]
        self._unsort = torch.tensor(np.argsort(order), device=self._device)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], device: str | torch.device = "cpu") -> "CharModel":
        """The character in a file (MJCF, URDF, USD, a description). Raises CharacterError."""
        return cls(read_mjcf(Path(path)), device=device)

    @property
    def info(self) -> CharacterInfo:
        """What the file says."""
        return self._info

    @property
    def device(self) -> torch.device:
        """Where the tensors live."""
        return self._device

    @property
    def body_names(self) -> list[str]:
        """Names of the bodies, depth-first, the root first."""
        return [body.name for body in self._info.bodies]

    @property
    def joints(self) -> tuple[JointInfo, ...]:
        """Joint j connects body j + 1 to its parent."""
        return self._info.joints

    @property
    def parents(self) -> list[int]:
        """Index of every body's parent, -1 for the root."""
        return list(self._parents)

    @property
    def num_bodies(self) -> int:
        """B."""
        return len(self._info.bodies)

    @property
    def num_joints(self) -> int:
        """J = B - 1."""
        return len(self._info.joints)

    @property
    def num_dofs(self) -> int:
        """D; the free root is not counted."""
        return self._info.num_dofs

    @property
    def dof_limits(self) -> Tensor:
        """Lower and upper bound of every dof (D, 2), rad, apart from each other.

        -pi and pi where the file sets none, which is also how MuJoCo takes equal ones without limited="true".
        """
        return self._dof_limits

    def body_id(self, name: str) -> int:
        """Index of the body. Raises KeyError naming the nearest known one."""
        if name not in self._ids:
            raise KeyError(f"{self._info.path}: no body {name!r}{nearest(name, self._ids)}")
        return self._ids[name]

    def dof_to_rot(self, dof: Tensor) -> Tensor:
        """Joint rotations (..., J, 4) of dofs (..., D); identity for fixed joints."""
        exp_map = (dof @ self._dof_to_exp).reshape(*dof.shape[:-1], self.num_joints, 3)
        return exp_map_to_quat(exp_map)

    def rot_to_dof(self, joint_rot: Tensor) -> Tensor:
        """Dofs (..., D) of joint rotations (..., J, 4), every angle within +-pi."""
        return quat_to_exp_map(joint_rot).flatten(-2) @ self._dof_to_exp.T

    def dof_vel(self, joint_rot0: Tensor, joint_rot1: Tensor, dt: float | Tensor) -> Tensor:
        """Mean dof velocities (..., D) rad/s between poses (..., J, 4), dt s (float or (..., 1)) apart.

        A ball joint's is the angular velocity in the child's frame (MuJoCo's qvel), a hinge's is about its
        axis.
        """
        step = quat_mul(quat_conjugate(joint_rot0), joint_rot1)
        return self.rot_to_dof(step) / dt

    def forward_kinematics(self, root_pos: Tensor, root_rot: Tensor, joint_rot: Tensor) -> tuple[Tensor, Tensor]:
        """Positions (..., B, 3) m and rotations (..., B, 4) of all bodies.

        root_pos (..., 3) m, root_rot (..., 4), joint_rot (..., J, 4); the leading shapes broadcast.
        """
        shape = np.broadcast_shapes(root_pos.shape[:-1], root_rot.shape[:-1], joint_rot.shape[:-2])
        joint_rot = joint_rot.expand(*shape, self.num_joints, 4)
        poses = [(root_pos.expand(*shape, 3).unsqueeze(-2), root_rot.expand(*shape, 4).unsqueeze(-2))]
        for level in self._levels:
            poses.append(level.place(poses[-1], joint_rot))
        pos, rot = (torch.cat(parts, -2).index_select(-2, self._unsort) for parts in zip(*poses, strict=True))
        return pos, rot

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.tensor(array, dtype=torch.float32, device=self._device)


class _Level:
    """Bodies at one depth of the tree, placed together. n of them, parents one level up."""

    def __init__(self, info: CharacterInfo, bodies: list[int], parent_level: list[int], device: torch.device) -> None:
        self.bodies = bodies
        joints = [info.joints[b - 1] for b in bodies]
        parent_ids = [parent_level.index(info.bodies[b].parent) for b in bodies]
        self._parent_ids = torch.tensor(parent_ids, device=device)
        self._joint_ids = torch.tensor([b - 1 for b in bodies], device=device)
        self._pos = _stack([info.bodies[b].pos for b in bodies], device)
        self._anchor = _stack([joint.pos for joint in joints], device) if any(j.pos.any() for j in joints) else None
        rest = _stack([info.bodies[b].quat for b in bodies], device)
        self._rest = None if torch.equal(rest, quat_identity(len(bodies), device=device)) else rest

    def place(self, parents: tuple[Tensor, Tensor], joint_rot: Tensor) -> tuple[Tensor, Tensor]:
        """Poses ((..., n, 3), (..., n, 4)) of the bodies, given those of the whole level above."""
        parent_pos = parents[0].index_select(-2, self._parent_ids)
        parent_rot = parents[1].index_select(-2, self._parent_ids)
        pos = parent_pos + quat_rotate(parent_rot, self._pos)
        rest_rot = parent_rot if self._rest is None else quat_mul(parent_rot, self._rest)
        rot = quat_mul(rest_rot, joint_rot.index_select(-2, self._joint_ids))
        if self._anchor is not None:  # the body turns about its anchor, which stays where it is at rest
            pos = pos + quat_rotate(rest_rot, self._anchor) - quat_rotate(rot, self._anchor)
        return pos, rot


def _stack(rows: list[np.ndarray], device: torch.device) -> Tensor:
    return torch.tensor(np.stack(rows), dtype=torch.float32, device=device)


def _tree_levels(parents: list[int]) -> list[list[int]]:
    """Body indices by depth, the root's level first."""
    depth: list[int] = []
    for parent in parents:
        depth.append(depth[parent] + 1 if parent >= 0 else 0)
    return [[b for b, d in enumerate(depth) if d == level] for level in range(max(depth) + 1)]


def _exp_map_matrix(info: CharacterInfo) -> np.ndarray:
    """(D, 3 J): dofs @ matrix are the exponential maps of all joints."""
    matrix = np.zeros((info.num_dofs, 3 * len(info.joints)))
    for j, joint in enumerate(info.joints):
        matrix[joint.dof_start : joint.dof_start + joint.dof_dim, 3 * j : 3 * j + 3] = joint.axes
    return matrix


def _bounded_limits(info: CharacterInfo) -> np.ndarray:
    """(D, 2) limits, infinite ones replaced. Raises CharacterError on a dof that has no room to move."""
    limits = np.zeros((info.num_dofs, 2))
    for joint in info.joints:
        rows = np.clip(joint.limits, -_UNLIMITED, _UNLIMITED) if np.isinf(joint.limits).any() else joint.limits
        if joint.dof_dim and (rows[:, 1] - rows[:, 0]).min() < _MIN_RANGE:
            names = ", ".join(joint.source_joints)
            raise CharacterError(
                f"{info.path}: joint {names}: expected a lower limit below the upper, found {rows.tolist()}"
            )
        limits[joint.dof_start : joint.dof_start + joint.dof_dim] = rows
    return limits
