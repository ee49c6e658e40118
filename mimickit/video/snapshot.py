"""The unit of filming: where every body of every actor stands at one moment, as plain numpy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
ActorPose = tuple[FloatArray, FloatArray]
"""Positions (B, 3) in m and rotations (B, 4), x y z w, of an actor's bodies, depth-first as in its file."""

POS_STEPS = 1e5  # a metre: poses are kept to 10 micrometres
ROT_STEPS = 32767.0  # of a quaternion's component
FORCE_STEPS = 2.0  # a newton


@dataclass(frozen=True)
class ActorSpec:
    """Who is on stage: a character file and how it is painted."""

    name: str
    asset_file: Path | str
    """The character's or object's: MJCF, URDF, USD or a description."""
    asset_text: str | None = None
    """Its text as anim.char_file.source_of() gives it, where the file may not be at hand any more."""
    asset_files: Mapping[str, Path | bytes] = field(default_factory=dict, repr=False, compare=False)
    """And the files that the text refers to."""
    color: Sequence[float] | None = None
    """RGB or RGBA in 0..1 for all of its geoms; None keeps the colours of the file."""
    alpha: float = 1.0
    """Opacity, 1 solid."""
    ghost_color: Sequence[float] | None = None
    """RGBA of its ghost; None is the ghosts' own."""
    is_ghost: bool = False
    """Drawn translucent in the ghost's colour and without a shadow of its own weight in the picture."""

    def __post_init__(self) -> None:
        if self.color is not None:
            object.__setattr__(self, "color", tuple(float(c) for c in self.color))


@dataclass
class Snapshot:
    """One moment of one environment. Positions are relative to the environment's origin."""

    time: float
    """Seconds since the first frame of the clip."""
    env_id: int
    step: int
    """Control steps since the first frame of the clip."""
    poses: list[ActorPose]
    """One per actor."""
    ghosts: list[ActorPose] = field(default_factory=list)
    """Reference poses: ghost i wears the body of actor i."""
    is_cut: bool = False
    """First frame of an episode: the subject may have jumped, and the camera jumps with it."""
    contacts: list[FloatArray] = field(default_factory=list)
    """Force of the ground on every body (B, 3) in N, one array per actor; empty where nobody knows."""
    annotations: dict[str, Any] = field(default_factory=dict)
    """What is known about the moment: episode, episode_time (s since it began), episode_return, reward, ..."""


Moment = tuple[Snapshot, ...]
"""All filmed environments at one time."""


def copy_poses(poses: Sequence[tuple[Any, Any]]) -> list[ActorPose]:
    """Independent float64 copies of (pos (B, 3), rot (B, 4)) pairs, which may be arrays or tensors."""
    return [(_copy(pos), _copy(rot)) for pos, rot in poses]


def rounded(moment: Moment) -> Moment:
    """The moment on the grid in which a trace keeps it: a live film and a film of the trace are the same."""
    return tuple(
        replace(
            snapshot,
            poses=[_rounded_pose(pose) for pose in snapshot.poses],
            ghosts=[_rounded_pose(pose) for pose in snapshot.ghosts],
            contacts=[on_grid(bounded_force(force), FORCE_STEPS) for force in snapshot.contacts],
        )
        for snapshot in moment
    )


def bounded_force(force: FloatArray) -> FloatArray:
    """A force (..., 3) N, its components at most what a trace can hold."""
    limit = np.iinfo(np.int16).max / FORCE_STEPS
    return np.clip(force, -limit, limit)


def _rounded_pose(pose: ActorPose) -> ActorPose:
    return on_grid(pose[0], POS_STEPS), on_grid(pose[1], ROT_STEPS)


def on_grid(values: FloatArray, steps: float) -> FloatArray:
    """The nearest multiples of 1 / steps."""
    return np.asarray(np.rint(values * steps) / steps)


def _copy(values: Any) -> FloatArray:
    if isinstance(values, np.ndarray):
        return np.array(values, dtype=np.float64)
    return np.array(values.detach().cpu().numpy() if hasattr(values, "detach") else values, dtype=np.float64)


def quat_to_matrix(quat: FloatArray) -> FloatArray:
    """Rotation matrices (..., 3, 3) of quaternions (..., 4), x y z w, which need not be of unit length."""
    x, y, z, w = np.moveaxis(quat / np.linalg.norm(quat, axis=-1, keepdims=True), -1, 0)
    rows = np.stack(
        (
            1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
            2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
            2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
        ),
        axis=-1,
    )  # fmt: skip
    return rows.reshape(*quat.shape[:-1], 3, 3)


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """values with numpy and tensor scalars turned into Python numbers, as JSON can hold them."""
    return {str(key): value.item() if hasattr(value, "item") else value for key, value in values.items()}
