"""A motion while it is being converted: poses at times, not yet frames of a clip."""

from dataclasses import dataclass

import torch
from torch import Tensor

from mimickit.anim.char_model import CharModel
from mimickit.anim.clip_table import continuous_quats, turn_between
from mimickit.anim.motion import LoopMode, Motion, make_motion
from mimickit.util.rotations import (
    quat_mul,
    quat_normalize,
    quat_rotate,
    quat_to_exp_map,
    yaw_quat,
)


@dataclass(frozen=True)
class Poses:
    """T poses; float64, so that many small steps lose nothing."""

    times: Tensor  # (T,) s, rising from 0
    root_pos: Tensor  # (T, 3) m
    rots: Tensor  # (T, 1 + J, 4) x y z w: the root's rotation, then the joints'

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, rows: list[int]) -> "Poses":
        return Poses(self.times[rows], self.root_pos[rows], self.rots[rows])

    @property
    def length(self) -> float:
        """Seconds from the first pose to the last."""
        return float(self.times[-1] - self.times[0])


@dataclass(frozen=True)
class Cycle:
    """What one round of a loop adds to the root: time, way in the ground plane, turn about the vertical."""

    length: float  # s
    origin: Tensor  # (3,) m, root at the start, height 0
    step: Tensor  # (3,) m, height 0
    turn: float  # rad

    @classmethod
    def of(cls, poses: Poses, *, straight: bool) -> "Cycle":
        """From first to last pose; `straight` takes a turn between them for noise."""
        flat = torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)
        turn = 0.0 if straight else float(turn_between(poses.rots[0, 0], poses.rots[-1, 0]))
        step = (poses.root_pos[-1] - poses.root_pos[0]) * flat
        return cls(poses.length, poses.root_pos[0] * flat, step, turn)

    def next(self, poses: Poses) -> Poses:
        """The same poses a cycle later."""
        yaw = yaw_quat(torch.tensor(self.turn, dtype=torch.float64))
        root_pos = quat_rotate(yaw, poses.root_pos - self.origin) + self.origin + self.step
        rots = poses.rots.clone()
        rots[:, 0] = quat_mul(yaw, poses.rots[:, 0])
        return Poses(poses.times + self.length, root_pos, rots)


def join(parts: list[Poses]) -> Poses:
    """One motion after the other."""
    return Poses(
        torch.cat([part.times for part in parts]),
        torch.cat([part.root_pos for part in parts]),
        continuous_quats(torch.cat([part.rots for part in parts])),
    )


def resample(poses: Poses, times: Tensor) -> Poses:
    """Poses at other times (N,), by cubic Hermite curves through the given ones (Catmull-Rom for uneven
    times).

    Quaternions are interpolated as numbers and scaled to unit length, which differs little from a spherical
    curve between neighbours as near as frames of a motion are.
    """
    rots = continuous_quats(poses.rots)
    values = torch.cat((poses.root_pos, rots.flatten(1)), dim=1)
    step = (poses.times[1:] - poses.times[:-1]).unsqueeze(1)
    slope = (values[1:] - values[:-1]) / step
    inner = (slope[:-1] * step[1:] + slope[1:] * step[:-1]) / (step[:-1] + step[1:])
    tangents = torch.cat((slope[:1], inner, slope[-1:]))
    low = (torch.searchsorted(poses.times, times, right=True) - 1).clamp(0, len(poses) - 2)
    width = step[low]
    u = ((times - poses.times[low]).unsqueeze(1) / width).clamp(0.0, 1.0)
    u2, u3 = u * u, u * u * u
    mixed = (
        (2.0 * u3 - 3.0 * u2 + 1.0) * values[low]
        + (u3 - 2.0 * u2 + u) * width * tangents[low]
        + (3.0 * u2 - 2.0 * u3) * values[low + 1]
        + (u3 - u2) * width * tangents[low + 1]
    )
    return Poses(times, mixed[:, :3], quat_normalize(mixed[:, 3:].reshape(len(times), -1, 4)))


def to_motion(poses: Poses, char: CharModel, *, loop_mode: LoopMode, fps: float, source: str) -> Motion:
    """A clip of evenly spaced poses, beginning above the origin of the ground plane."""
    start = poses.root_pos[0] * torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)
    root = torch.cat((poses.root_pos - start, quat_to_exp_map(poses.rots[:, 0])), dim=1)
    dofs = char.rot_to_dof(poses.rots[:, 1:].float())
    return make_motion(loop_mode, fps, torch.cat((root.float(), dofs), dim=1).numpy(), source=source)
