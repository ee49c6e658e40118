"""How far a character is from its reference: the reward of DeepMimic (Peng et al. 2018, section 5.3) and plain errors.

Pure functions on tensors. n environments, B bodies, J joints, D dofs, K key bodies; m, rad, s.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from mimickit.util.rotations import quat_diff_angle


@dataclass(frozen=True)
class CharState:
    """The state of a character or of its reference."""

    root_pos: Tensor  # (n, 3)
    root_rot: Tensor  # (n, 4)
    root_vel: Tensor  # (n, 3) world
    root_ang_vel: Tensor  # (n, 3) world
    joint_rot: Tensor  # (n, J, 4)
    dof_vel: Tensor  # (n, D)
    body_pos: Tensor  # (n, B, 3)
    body_rot: Tensor  # (n, B, 4)


@dataclass(frozen=True)
class RewardConfig:
    """Weights and scales of the reward's five terms; the weights sum to its greatest value."""

    pose_w: float = 0.5  # joint rotations
    vel_w: float = 0.1  # dof velocities
    root_pose_w: float = 0.15  # root position and rotation
    root_vel_w: float = 0.1  # root velocities
    key_pos_w: float = 0.15  # key bodies relative to the root
    pose_scale: float = 0.25  # 1 / rad^2
    vel_scale: float = 0.01  # s^2 / rad^2
    root_pose_scale: float = 5.0  # 1 / m^2
    root_vel_scale: float = 1.0  # s^2 / m^2
    key_pos_scale: float = 10.0  # 1 / m^2

    @property
    def bound(self) -> float:
        """The greatest reward of a step."""
        return self.pose_w + self.vel_w + self.root_pose_w + self.root_vel_w + self.key_pos_w


def tracking_reward(
    char: CharState, ref: CharState, *, joint_w: Tensor, dof_w: Tensor, key_ids: Tensor, config: RewardConfig
) -> Tensor:
    """Reward (n,): the sum of w exp(-scale err) over pose, dof velocity, root pose, root velocity and key positions.

    joint_w (J,) and dof_w (D,) weigh the joints' share in the first two; key_ids (K,) are body indices.
    """
    c = config
    pose_err = (quat_diff_angle(char.joint_rot, ref.joint_rot).square() * joint_w).sum(-1)
    vel_err = ((char.dof_vel - ref.dof_vel).square() * dof_w).sum(-1)
    root_pos_err = (char.root_pos - ref.root_pos).square().sum(-1)
    root_rot_err = quat_diff_angle(char.root_rot, ref.root_rot).square()
    root_vel_err = (char.root_vel - ref.root_vel).square().sum(-1)
    root_ang_err = (char.root_ang_vel - ref.root_ang_vel).square().sum(-1)
    reward = c.pose_w * torch.exp(-c.pose_scale * pose_err) + c.vel_w * torch.exp(-c.vel_scale * vel_err)
    reward += c.root_pose_w * torch.exp(-c.root_pose_scale * (root_pos_err + 0.1 * root_rot_err))
    reward += c.root_vel_w * torch.exp(-c.root_vel_scale * (root_vel_err + 0.1 * root_ang_err))
    if len(key_ids):
        key = char.body_pos[:, key_ids] - char.root_pos.unsqueeze(1)
        ref_key = ref.body_pos[:, key_ids] - ref.root_pos.unsqueeze(1)
        key_err = (key - ref_key).square().sum((-1, -2))
        reward += c.key_pos_w * torch.exp(-c.key_pos_scale * key_err)
    return reward


def tracking_errors(char: CharState, ref: CharState) -> dict[str, Tensor]:
    """Mean errors by name, (n,) each, the unit in the name."""
    body = char.body_pos - char.root_pos.unsqueeze(1)
    ref_body = ref.body_pos - ref.root_pos.unsqueeze(1)
    return {
        "root_pos_err_m": (char.root_pos - ref.root_pos).norm(dim=-1),
        "root_rot_err_rad": quat_diff_angle(char.root_rot, ref.root_rot),
        "body_pos_err_m": (body - ref_body).norm(dim=-1).mean(-1),
        "body_rot_err_rad": quat_diff_angle(char.body_rot, ref.body_rot).mean(-1),
        "dof_vel_err_rad_per_s": (char.dof_vel - ref.dof_vel).abs().mean(-1),
        "root_vel_err_m_per_s": (char.root_vel - ref.root_vel).norm(dim=-1),
        "root_ang_vel_err_rad_per_s": (char.root_ang_vel - ref.root_ang_vel).norm(dim=-1),
    }
