"""The humanoid clips of DeepMimic (Peng et al. 2018), JSON, as the pybullet wheel carries them.

File: {"Loop": "wrap" | "none", "Frames": [[duration s, root position 3, root rotation 4, chest 4, neck 4,
right hip 4, right knee 1, right ankle 4, right shoulder 4, right elbow 1, left hip 4, left knee 1, left ankle
4, left shoulder 4, left elbow 1], ...]}, quaternions w x y z, the last duration unused.

Its axes are x forward, y up, z right, so vectors and vector parts of quaternions map (x, y, z) -> (x, -z, y).
Its skeleton is the 15-body humanoid's, but its arms hang at rest where ours point sideways.
"""

import json
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from mimickit.anim.char_model import CharModel
from mimickit.anim.clip_table import continuous_quats
from mimickit.anim.importers.cleanup import lift_off_ground, smooth, smooth_jumps, unroll
from mimickit.anim.importers.poses import Cycle, Poses, to_motion
from mimickit.anim.motion import LoopMode, Motion, MotionError
from mimickit.util.rotations import axis_angle_to_quat, quat_mul, quat_normalize

FRAME_SIZE = 44
_FPS = 60.0  # wanted; the clip's own length decides the exact figure
_UP, _RIGHT = (0.0, 0.0, 1.0), (0.0, -1.0, 0.0)
_ARM_AT_REST = math.pi / 2.0  # rad about x, from hanging to sideways; negative on the left

# our joint, first column, and for a hinge the axis about which its angle turns
_BALLS = {
    "abdomen": 8, "neck": 12, "right_hip": 16, "right_ankle": 21, "right_shoulder": 25,
    "left_hip": 30, "left_ankle": 35, "left_shoulder": 39,
}  # fmt: skip
_HINGES = {
    "right_knee": (20, _RIGHT),
    "right_elbow": (29, _UP),
    "left_knee": (34, _RIGHT),
    "left_elbow": (43, (0.0, 0.0, -1.0)),
}


@dataclass(frozen=True)
class ClipOptions:
    """How a clip is mended on its way. The seam of a wrapped clip is always smoothed."""

    loop_mode: LoopMode
    gaps: tuple[tuple[int, int], ...] = ()  # source frames [first, end) left out and bridged; (s, s): a jump before s
    straight: bool = True  # a wrapped clip's heading is the same in every cycle
    blend: float = 0.2  # s, over which a gap or seam is smoothed on either side
    smooth: float = 0.0  # s, over which all poses are averaged on either side
    depth: float = 0.01  # m, below ground that is left alone
    lift_window: float = 0.1  # s, over which a lift off the ground fades in and out


def import_clip(text: str, char: CharModel, options: ClipOptions, *, source: str) -> Motion:
    """A clip for our humanoid from the file's text. Raises MotionError naming the source."""
    poses = parse_clip(text, char, source=source)
    loop = options.loop_mode == LoopMode.WRAP
    length = poses.length
    count = max(1, round(length * _FPS))
    times = torch.linspace(0.0, length, count + 1, dtype=torch.float64)
    dropped = {frame for first, end in options.gaps for frame in range(first, end)}
    last = len(poses) - 1
    kept = [frame for frame in range(last if loop else last + 1) if frame not in dropped]
    jumps = [kept.index(end) for _, end in options.gaps if end in kept]
    cycle = Cycle.of(poses, straight=options.straight)
    poses = poses[kept]
    if loop:
        size = len(kept)
        poses = unroll(poses, cycle)
        jumps = sorted({size, 2 * size} | {jump + k * size for jump in jumps for k in range(3)})
        times = times + length
    poses = smooth_jumps(poses, jumps, options.blend)
    poses = smooth(poses, times, options.smooth)
    poses = lift_off_ground(poses, char, depth=options.depth, window=options.lift_window, loop=loop)
    return to_motion(poses, char, loop_mode=options.loop_mode, fps=count / length, source=source)


def parse_clip(text: str, char: CharModel, *, source: str) -> Poses:
    """The file's poses in our axes, at the file's times."""
    rows = _read_rows(text, source)
    times = torch.cat((torch.zeros(1, dtype=torch.float64), torch.cumsum(rows[:-1, 0], dim=0)))
    rots = torch.zeros(len(rows), 1 + char.num_joints, 4, dtype=torch.float64)
    rots[..., 3] = 1.0
    rots[:, 0] = _rotation(rows[:, 4:8])
    for j, joint in enumerate(char.joints):
        if joint.name in _BALLS:
            first = _BALLS[joint.name]
            rots[:, 1 + j] = _rotation(rows[:, first : first + 4])
        elif joint.name in _HINGES:
            column, axis = _HINGES[joint.name]
            axes = torch.tensor(axis, dtype=torch.float64).expand(len(rows), 3)
            rots[:, 1 + j] = axis_angle_to_quat(axes, rows[:, column])
        elif joint.dof_dim:
            raise MotionError(f"{char.info.path}: joint {joint.name} is not one of the DeepMimic humanoid's")
        if joint.name.endswith("_shoulder"):
            angle = _ARM_AT_REST if joint.name.startswith("right") else -_ARM_AT_REST
            hang = axis_angle_to_quat(torch.tensor([1.0, 0.0, 0.0]).double(), torch.tensor(angle).double())
            rots[:, 1 + j] = quat_mul(rots[:, 1 + j], hang)
    return Poses(times, _vector(rows[:, 1:4]), continuous_quats(rots))


def _read_rows(text: str, source: str) -> Tensor:
    try:
        frames = json.loads(text)["Frames"]
        rows = torch.tensor(frames, dtype=torch.float64)
    except (ValueError, TypeError, KeyError) as error:
        raise MotionError(f"{source}: expected DeepMimic JSON with rows of numbers in Frames: {error}") from None
    if rows.dim() != 2 or rows.shape[1] != FRAME_SIZE or len(rows) < 2:
        raise MotionError(
            f"{source}: Frames: expected 2 rows or more of {FRAME_SIZE} numbers, found {tuple(rows.shape)}"
        )
    if not bool(torch.isfinite(rows).all()) or float(rows[:-1, 0].min()) <= 0.0:
        raise MotionError(f"{source}: Frames: expected finite numbers and durations above 0")
    return rows


def _vector(columns: Tensor) -> Tensor:
    x, y, z = columns.unbind(-1)
    return torch.stack((x, -z, y), dim=-1)


def _rotation(columns: Tensor) -> Tensor:
    w, x, y, z = columns.unbind(-1)
    return quat_normalize(torch.stack((x, -z, y, w), dim=-1))
