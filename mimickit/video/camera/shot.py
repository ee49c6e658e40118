"""What a camera is told of a frame, and what it answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from mimickit.video.config import VideoConfig
from mimickit.video.snapshot import FloatArray


@dataclass(frozen=True)
class CameraPose:
    """Where the camera stands for one frame."""

    eye: FloatArray  # (3,) m
    target: FloatArray  # (3,) m
    fov: float  # vertical field of view, degrees
    up: FloatArray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))  # (3,) what is up in the picture


@dataclass(frozen=True)
class SubjectSize:
    """How big a subject is in the pose of its file."""

    height: float
    """From its lowest to its highest point, or half its length if that is more (m)."""
    root_height: float
    """Of the root body above the lowest point (m)."""


@dataclass(frozen=True)
class Shot:
    """What a camera mode is told of a frame."""

    time: float
    """Seconds since the first frame of the clip."""
    dt: float
    """Seconds since the frame before, 0 at the first."""
    is_cut: bool
    """First frame of the clip or of an episode, or the subject, or most of several, was moved: nothing to be smooth
    with."""
    root_pos: FloatArray
    """(3,) m, the subject's root body."""
    root_rot: FloatArray
    """(4,) x y z w."""
    size: SubjectSize
    """How big the subject is."""
    config: VideoConfig
    subjects: FloatArray
    """(S, 3) m, the roots of all that are to stay in view; the first is the subject."""
    bodies: Mapping[str, tuple[FloatArray, FloatArray]]
    """Position (3,) m and rotation (4,) x y z w of the subject's bodies by name, the root first; may be empty."""
    aspect: float
    """Width of the picture by its height."""
    is_start: bool
    """First frame of the clip or of an episode."""


CameraMode = Callable[[Shot], CameraPose]
"""A camera: called once a frame, in order. One that remembers is a class: its instance is made per clip."""
