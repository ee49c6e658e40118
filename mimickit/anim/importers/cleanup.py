"""Mending of recorded motion: jumps smoothed out, loops closed, feet lifted out of the ground."""

import torch
from torch import Tensor

from mimickit.anim.char_model import CharModel
from mimickit.anim.importers.ground import lowest_points
from mimickit.anim.importers.poses import Cycle, Poses, continuous, join
from mimickit.util.rotations import exp_map_to_quat, quat_conjugate, quat_mul, quat_to_exp_map


def smooth_jumps(poses: Poses, jumps: list[int], window: float) -> Poses:
    """Poses without the jumps between pose s - 1 and pose s, for every s in `jumps`.

    What pose s differs by from where pose s - 1 was heading is halved between the two sides, and either half
    fades out over `window` seconds, with no slope at its ends, so that no velocity is added at the jump
    itself.
    """
    for s in jumps:
        poses = _smooth_jump(poses, s, window)
    return poses


def _smooth_jump(poses: Poses, s: int, window: float) -> Poses:
    times, pos, rots = poses.times, poses.root_pos, continuous(poses.rots)
    before, after = times[s - 1] - times[s - 2], times[s + 1] - times[s]
    gap = times[s] - times[s - 1]
    pos_rate = 0.5 * ((pos[s - 1] - pos[s - 2]) / before + (pos[s + 1] - pos[s]) / after)
    rot_rate = 0.5 * (_turn(rots[s - 2], rots[s - 1]) / before + _turn(rots[s], rots[s + 1]) / after)
    pos_jump = pos[s] - pos[s - 1] - pos_rate * gap
    rot_jump = _turn(quat_mul(rots[s - 1], exp_map_to_quat(rot_rate * gap)), rots[s])
    distance = torch.where(times >= times[s], times - times[s], times[s - 1] - times)
    u = (distance / window).clamp(0.0, 1.0)
    share = 0.5 * (1.0 - u * u * (3.0 - 2.0 * u)) * torch.where(times >= times[s], -1.0, 1.0)
    return Poses(
        times,
        pos + share.unsqueeze(1) * pos_jump,
        quat_mul(rots, exp_map_to_quat(share.view(-1, 1, 1) * rot_jump)),
    )


def _turn(a: Tensor, b: Tensor) -> Tensor:
    """Exponential map from rotation a to b, in a's frame."""
    return quat_to_exp_map(quat_mul(quat_conjugate(a), b))


def unroll(poses: Poses, cycle: Cycle) -> Poses:
    """Three cycles of a loop; its last pose, which is the first of the next cycle, is left out."""
    once = poses[: len(poses) - 1]
    twice = cycle.next(once)
    return join([once, twice, cycle.next(twice)])


def lift_off_ground(poses: Poses, char: CharModel, *, depth: float, window: float, loop: bool) -> Poses:
    """Poses of which no part reaches deeper than `depth` m below the ground.

    The root is raised by a smooth curve: at every time the most that is needed within `window` seconds,
    averaged over as long (Hann), so never less than what is needed then and without jitter. Evenly spaced
    poses only.
    """
    need = (-depth - lowest_points(poses, char)).clamp_min(0.0)
    if float(need.max()) == 0.0:
        return poses
    half = max(1, round(window / float(poses.times[1] - poses.times[0])))
    if loop:  # the first and the last pose are the same
        need = need[:-1]
        rows = torch.arange(-2 * half, len(need) + 2 * half) % len(need)
    else:
        rows = torch.arange(-2 * half, len(need) + 2 * half).clamp(0, len(need) - 1)
    most = need[rows].unfold(0, 2 * half + 1, 1).amax(-1)
    weights = torch.hann_window(2 * half + 3, periodic=False, dtype=need.dtype)[1:-1]
    lift = (most.unfold(0, 2 * half + 1, 1) * (weights / weights.sum())).sum(-1)
    lift = torch.cat((lift, lift[:1])) if loop else lift
    up = torch.tensor([0.0, 0.0, 1.0], dtype=need.dtype)
    return Poses(poses.times, poses.root_pos + lift.unsqueeze(1) * up, poses.rots)
