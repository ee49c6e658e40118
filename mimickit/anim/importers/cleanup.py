"""Mending of recorded motion: jumps smoothed out, loops closed, feet lifted out of the ground."""

import torch
from torch import Tensor

from mimickit.anim.char_model import CharModel
from mimickit.anim.clip_table import continuous_quats
from mimickit.anim.importers.ground import lowest_points
from mimickit.anim.importers.poses import Cycle, Poses, join, resample
from mimickit.util.rotations import exp_map_to_quat, quat_conjugate, quat_mul, quat_normalize, quat_to_exp_map

_LIFT_ROUNDS = 500
_LIFT_TOLERANCE = 1e-4  # m


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
    times, pos, rots = poses.times, poses.root_pos, continuous_quats(poses.rots)
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


def unroll(once: Poses, cycle: Cycle) -> Poses:
    """Three cycles of a loop of which one is given, without the pose that is the first of the next cycle."""
    twice = cycle.next(once)
    return join([once, twice, cycle.next(twice)])


def smooth(poses: Poses, times: Tensor, window: float) -> Poses:
    """Poses at evenly spaced times, each the mean over `window` s on either side (Hann); 0 only resamples.

    Where the motion doesn't reach far enough, its first or last pose stands in.
    """
    step = float(times[1] - times[0])
    half = round(window / step)
    if half == 0:
        return resample(poses, times)
    margin = step * torch.arange(1, half + 1, dtype=times.dtype)
    dense = resample(poses, torch.cat((times[0] - margin.flip(0), times, times[-1] + margin)))
    values = torch.cat((dense.root_pos, continuous_quats(dense.rots).flatten(1)), dim=1)
    mean = (values.unfold(0, 2 * half + 1, 1) * _hann(half)).sum(-1)
    return Poses(times, mean[:, :3], quat_normalize(mean[:, 3:].reshape(len(times), -1, 4)))


def lift_off_ground(poses: Poses, char: CharModel, *, depth: float, window: float, loop: bool) -> Poses:
    """Poses of which no part reaches deeper than `depth` m below the ground, but for a tenth of a millimetre.

    The root is raised by a sum of smooth humps (Hann, `window` s to either side): what is still lacking is
    spread by that hump and added, again and again. No jitter, and little lift where none is needed. Evenly
    spaced poses only.
    """
    need = (-depth - lowest_points(poses, char)).clamp_min(0.0)
    need = need[:-1] if loop else need  # the last pose of a loop is its first
    half = max(1, round(window / float(poses.times[1] - poses.times[0])))
    rows = torch.arange(-half, len(need) + half)
    rows = rows % len(need) if loop else rows.clamp(0, len(need) - 1)
    lift = torch.zeros_like(need)
    for _ in range(_LIFT_ROUNDS):
        lacking = (need - lift).clamp_min(0.0)
        if float(lacking.max()) < _LIFT_TOLERANCE:
            break
        lift = lift + (lacking[rows].unfold(0, 2 * half + 1, 1) * _hann(half)).sum(-1)
    lift = torch.cat((lift, lift[:1])) if loop else lift
    up = torch.tensor([0.0, 0.0, 1.0], dtype=need.dtype)
    return Poses(poses.times, poses.root_pos + lift.unsqueeze(1) * up, poses.rots)


def _hann(half: int) -> Tensor:
    """2 half + 1 weights that add up to 1, none of them 0."""
    weights = torch.hann_window(2 * half + 3, periodic=False, dtype=torch.float64)[1:-1]
    return weights / weights.sum()
