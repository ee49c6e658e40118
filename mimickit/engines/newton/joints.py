"""Joint coordinates between the Engine contract and Newton.

A ball joint is an exponential map (rad) and an angular velocity (rad/s) in the child body's frame to the contract, a
quaternion (x y z w) and an angular velocity in the parent's frame to Newton. q is (num_envs, nq), qd and forces are
(num_envs, nv), ids (n,) environments.
"""

import numpy as np
import torch
from torch import Tensor

from mimickit.engines.mujoco_scene import ObjectLayout
from mimickit.util.rotations import exp_map_to_quat, quat_conjugate, quat_rotate, quat_to_exp_map


class Joints:
    """The joints of one object."""

    def __init__(self, obj: ObjectLayout, device: str) -> None:
        def indices(values: np.ndarray) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(values)).to(device)

        self._num_dofs, self._dofs = obj.info.num_dofs, obj.dof_qvel
        self._hinges, self._hinge_coords = indices(obj.hinge_dofs), indices(obj.hinge_qpos)
        self._balls = indices(obj.ball_dofs)  # (balls, 3)
        self._ball_coords = indices(np.sort(obj.ball_qpos, axis=1))  # (balls, 4), x y z w lie in this order

    def positions(self, q: Tensor) -> Tensor:
        """(num_envs, D) rad."""
        dof = q.new_empty(len(q), self._num_dofs)
        dof[:, self._hinges] = q[:, self._hinge_coords]
        dof[:, self._balls] = quat_to_exp_map(q[:, self._ball_coords])
        return dof

    def set_positions(self, q: Tensor, ids: Tensor, dof: Tensor) -> None:
        """Write (n, D) or (D,) rad."""
        dof = dof.expand(len(ids), -1)
        q[ids[:, None], self._hinge_coords] = dof[:, self._hinges]
        q[ids[:, None, None], self._ball_coords] = exp_map_to_quat(dof[:, self._balls])

    def velocities(self, q: Tensor, qd: Tensor) -> Tensor:
        """(num_envs, D) rad/s out of qd, or N m out of the forces on its dofs."""
        dof = qd[:, self._dofs].clone()
        dof[:, self._balls] = quat_rotate(quat_conjugate(q[:, self._ball_coords]), dof[:, self._balls])
        return dof

    def set_velocities(self, q: Tensor, qd: Tensor, ids: Tensor, dof: Tensor) -> None:
        """Write (n, D) or (D,) rad/s; positions are those in q."""
        dof = dof.expand(len(ids), -1).clone()
        dof[:, self._balls] = quat_rotate(q[ids[:, None, None], self._ball_coords], dof[:, self._balls])
        qd[ids, self._dofs] = dof
