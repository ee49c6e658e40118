"""What the tests of cameras share: a subject, and where a point is seen in the picture."""

import math
from typing import Any

import numpy as np

from mimickit.video.camera.camera_rig import CameraPose, CameraRig, SubjectSize
from mimickit.video.stage.stage import camera_axes

SIZE = SubjectSize(height=1.6, root_height=0.88)
UPRIGHT = np.array([0.0, 0.0, 0.0, 1.0])
PLACE = np.array([0.0, 0.0, 0.88])
ASPECT = 854 / 480


def follow(
    rig: CameraRig,
    path: np.ndarray,
    dt: float = 1 / 30,
    *,
    cut: int = 0,
    rot: np.ndarray = UPRIGHT,
    **more: Any,
) -> list[CameraPose]:
    """The cameras of a subject on a path (F, 3); rot (4,) or (F, 4), subjects (S, 3) or (F, S, 3)."""
    rots = np.broadcast_to(rot, (len(path), 4))
    subjects = more.pop("subjects", None)
    if subjects is not None:
        subjects = np.broadcast_to(subjects, (len(path), *subjects.shape[-2:]))
    return [
        rig.pose(
            time=i * dt, root_pos=place, root_rot=rots[i], size=SIZE, is_cut=i == cut,
            subjects=None if subjects is None else subjects[i], **more,
        )
        for i, place in enumerate(path)
    ]  # fmt: skip


def on_picture(camera: CameraPose, points: np.ndarray, aspect: float = ASPECT) -> np.ndarray:
    """(..., 2) where points (..., 3) are seen, -1 to 1 across and up; the depth must be positive."""
    forward, up = camera_axes(camera)
    rays = points - camera.eye
    depth = rays @ forward
    assert depth.min() > 0.0
    half = math.tan(math.radians(camera.fov) / 2.0) * depth
    return np.stack((rays @ np.cross(forward, up) / (half * aspect), rays @ up / half), axis=-1)


def ends_of(roots: np.ndarray) -> np.ndarray:
    """(..., 6, 3) head, feet, and what an arm or a stride reaches to all sides of subjects (..., 3)."""
    reach = 0.45 * SIZE.height
    ends = [[0, 0, 0.72], [0, 0, -0.88], [reach, 0, 0], [-reach, 0, 0], [0, reach, 0], [0, -reach, 0]]
    return roots[..., None, :] + np.array(ends)


def rotation(axis: str, degrees: float) -> np.ndarray:
    """(4,) x y z w, about one of the axes x, y, z."""
    quat = np.zeros(4)
    quat["xyz".index(axis)] = math.sin(math.radians(degrees) / 2.0)
    quat[3] = math.cos(math.radians(degrees) / 2.0)
    return quat


def times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The rotation b, then a, both (4,) x y z w."""
    return np.array([
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    ])  # fmt: skip
