"""What a policy is told about a character and its reference: pure functions on tensors.

Everything is expressed in the heading frame (the vertical frame that looks where the root looks) unless global_obs.
Shapes: n environments, B bodies, D dofs, K key bodies, T future steps.
"""

import math

import torch
from torch import Tensor

from mimickit.util.rotations import heading_quat_inv, quat_mul, quat_rotate, quat_to_tan_norm


def char_obs(
    *,
    root_pos: Tensor,
    root_rot: Tensor,
    root_vel: Tensor,
    root_ang_vel: Tensor,
    dof_pos: Tensor,
    dof_vel: Tensor,
    body_pos: Tensor,
    global_obs: bool,
    root_height_obs: bool,
) -> Tensor:
    """The character itself: [height 1], root rotation 6, velocities 6, dofs 2 D, body positions 3 (B - 1).

    root_* (n, 3 or 4), dof_* (n, D), body_pos (n, B, 3) with the root first.
    """
    frame = heading_quat_inv(root_rot)
    offsets = body_pos[:, 1:] - root_pos.unsqueeze(1)
    vectors = torch.cat((root_vel.unsqueeze(1), root_ang_vel.unsqueeze(1), offsets), dim=1)
    if not global_obs:
        vectors = quat_rotate(frame.unsqueeze(1), vectors)
        root_rot = quat_mul(frame, root_rot)
    parts = [quat_to_tan_norm(root_rot), vectors.flatten(1), dof_pos, dof_vel]
    if root_height_obs:
        parts.insert(0, root_pos[:, 2:3])
    return torch.cat(parts, dim=-1)


def target_obs(
    *,
    root_pos: Tensor,
    root_rot: Tensor,
    tar_root_pos: Tensor,
    tar_root_rot: Tensor,
    tar_dof_pos: Tensor,
    tar_key_pos: Tensor,
    global_obs: bool,
) -> Tensor:
    """The reference ahead (n, T (9 + D + 3 K)): root offset and rotation, dofs, key bodies about the target's root.

    root_pos (n, 3), root_rot (n, 4): the character's. tar_root_pos (n, T, 3), tar_root_rot (n, T, 4),
    tar_dof_pos (n, T, D), tar_key_pos (n, T, K, 3): the reference's, at the future steps.
    """
    root_offset = (tar_root_pos - root_pos.unsqueeze(1)).unsqueeze(2)
    offsets = torch.cat((root_offset, tar_key_pos - tar_root_pos.unsqueeze(2)), dim=2)
    if not global_obs:
        frame = heading_quat_inv(root_rot).unsqueeze(1)
        tar_root_rot = quat_mul(frame, tar_root_rot)
        offsets = quat_rotate(frame.unsqueeze(2), offsets)
    parts = (quat_to_tan_norm(tar_root_rot), tar_dof_pos, offsets.flatten(2))
    return torch.cat(parts, dim=-1).flatten(1)


def phase_obs(phase: Tensor, num_encoding: int) -> Tensor:
    """Sines and cosines (n, 2 num_encoding) of the phase (n,) in [0, 1) at 1, 2, 4 ... turns a clip."""
    turns = 2.0 * math.pi * 2.0 ** torch.arange(num_encoding, device=phase.device)
    angle = phase.unsqueeze(-1) * turns
    return torch.cat((torch.sin(angle), torch.cos(angle)), dim=-1)
