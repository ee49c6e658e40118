"""One clip as rows that can be looked up: rotations, and velocities by finite differences."""

import math

import torch
from torch import Tensor

from mimickit.anim.char_model import CharModel
from mimickit.anim.motion import ROOT_SIZE, LoopMode, Motion
from mimickit.util.rotations import (
    exp_map_to_quat,
    quat_conjugate,
    quat_mul,
    quat_rotate,
    quat_to_exp_map,
    yaw_quat,
)

_MIN_ANGLE = 1e-3  # rad; below it slerp is linear to the last digit, and its sine too small a divisor


class ClipTable:
    """Rows of one clip of T frames, for a character of J joints and D dofs; on the CPU.

    linear (T, 9 + D): root position m, root velocity m/s, root angular velocity rad/s (both world), dof
        velocities rad/s.
    rots (T, 1 + J, 4): rotation of the root, then of the joints; signs such that neighbours are near.
    angles (T, 1 + J): rad between a row of rots and the next, as vectors in four dimensions.
    turn () rad, step (3,) m: what a cycle of a wrapped clip adds to the root's heading and place; 0 if
    clamped. origin (3,) m: where the root is at the start, height 0.
    """

    def __init__(self, motion: Motion, char: CharModel) -> None:
        frames = torch.from_numpy(motion.frames).double()
        root_pos = frames[:, :3]
        root_rot = exp_map_to_quat(frames[:, 3:ROOT_SIZE])
        joint_rot = char.dof_to_rot(frames[:, ROOT_SIZE:].float()).double()
        wraps = motion.loop_mode == LoopMode.WRAP
        turn = turn_between(root_rot[0], root_rot[-1]) * wraps
        across = yaw_quat(turn) if wraps else None  # takes the first cycle's directions to the second's
        vel = _frame_velocities((root_pos[1:] - root_pos[:-1]) * motion.fps, wraps, across)
        spin = quat_to_exp_map(quat_mul(root_rot[1:], quat_conjugate(root_rot[:-1]))) * motion.fps
        ang_vel = _frame_velocities(spin, wraps, across)
        dof_steps = char.dof_vel(joint_rot[:-1].float(), joint_rot[1:].float(), 1.0 / motion.fps).double()
        dof_vel = _frame_velocities(dof_steps, wraps, None)
        flat = torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)
        self.turn = turn.float()
        self.step = ((root_pos[-1] - root_pos[0]) * flat * wraps).float()
        self.origin = (root_pos[0] * flat).float()
        self.linear = torch.cat((root_pos, vel, ang_vel, dof_vel), dim=-1).float()
        rots = continuous_quats(torch.cat((root_rot.unsqueeze(1), joint_rot), dim=1))
        chords = (rots[1:] - rots[:-1]).norm(dim=-1)
        angles = 2.0 * torch.asin((0.5 * chords).clamp_max(1.0))
        self.rots = rots.float()
        self.angles = torch.cat((angles, angles.new_zeros(1, angles.shape[1]))).clamp_min(_MIN_ANGLE).float()


def turn_between(a: Tensor, b: Tensor) -> Tensor:
    """Turn () rad within +-pi about the vertical from a to b, also where headings are undefined."""
    between = quat_mul(b, quat_conjugate(a))
    turn = 2.0 * torch.atan2(between[2], between[3])
    return torch.remainder(turn + math.pi, 2.0 * math.pi) - math.pi


def _frame_velocities(steps: Tensor, wraps: bool, across: Tensor | None) -> Tensor:
    """Velocities at T frames (T, K) from those between them (T - 1, K): the mean of the steps on either side.

    At the ends of a wrapped clip the step on the other side is that of the neighbouring cycle, turned by
    `across`.
    """
    if len(steps) == 0:
        return steps.new_zeros(1, steps.shape[-1])
    before, after = steps[:1], steps[-1:]
    if wraps:
        before, after = steps[-1:], steps[:1]
        if across is not None:
            before, after = quat_rotate(quat_conjugate(across), before), quat_rotate(across, after)
    return 0.5 * (torch.cat((before, steps)) + torch.cat((steps, after)))


def continuous_quats(rots: Tensor) -> Tensor:
    """Quaternions (T, K, 4) with signs chosen so that each is the nearer one to its predecessor."""
    flips = torch.where((rots[1:] * rots[:-1]).sum(-1) < 0.0, -1.0, 1.0).to(rots.dtype)
    signs = torch.cat((torch.ones_like(rots[:1, :, 0]), torch.cumprod(flips, dim=0)))
    return rots * signs.unsqueeze(-1)
