"""Asks a camera for a pose frame by frame: pure numpy, no engine and no GL behind it."""

from collections.abc import Mapping

import numpy as np

from mimickit.video.camera.cameras import CAMERA_MODES, make_camera
from mimickit.video.camera.framing import was_moved
from mimickit.video.camera.shot import CameraMode, CameraPose, Shot, SubjectSize
from mimickit.video.config import VideoConfig
from mimickit.video.snapshot import FloatArray

__all__ = ["CAMERA_MODES", "CameraMode", "CameraPose", "CameraRig", "Shot", "SubjectSize", "make_camera"]

_MIN_EYE_HEIGHT = 0.05  # m above the ground


class CameraRig:
    """Asks a camera mode for a pose frame by frame, and sees to it that the pose can be filmed."""

    def __init__(self, config: VideoConfig, camera: str | None = None, *, aspect: float | None = None) -> None:
        """camera: the mode of this view, default: the configured one; aspect: width of its picture by its height,
        default: the configured frame's. Raises ConfigError for a camera that can't be.
        """
        self._config = config
        self._name = config.camera if camera is None else camera
        self._mode = make_camera(self._name, config=config)
        width, height = config.even_size
        self._aspect = width / height if aspect is None else aspect
        self._last: tuple[float, FloatArray] | None = None

    def pose(
        self,
        *,
        time: float,
        root_pos: FloatArray,
        root_rot: FloatArray,
        size: SubjectSize,
        is_cut: bool,
        bodies: Mapping[str, tuple[FloatArray, FloatArray]] | None = None,
        subjects: FloatArray | None = None,
        aspect: float | None = None,
    ) -> CameraPose:
        """The camera of the frame at time (s); the arguments are as in Shot. subjects (S, 3) default to the root
        alone. Raises ValueError if a mode gives no numbers.
        """
        root = np.array(root_pos, dtype=np.float64)
        everyone = root[None] if subjects is None else np.array(subjects, dtype=np.float64)
        if everyone.ndim != 2 or everyone.shape[1] != 3 or len(everyone) < 1:
            raise ValueError(f"subjects: expected (S, 3) positions of one or more, found shape {everyone.shape}")
        is_start = is_cut or self._last is None
        dt, jumped = self._step(time, everyone)
        shot = Shot(
            time=time,
            dt=dt,
            is_cut=is_start or jumped,
            root_pos=root,
            root_rot=np.asarray(root_rot, dtype=np.float64),
            size=size,
            config=self._config,
            subjects=everyone,
            bodies={} if bodies is None else bodies,
            aspect=self._aspect if aspect is None else aspect,
            is_start=is_start,
        )
        pose = self._mode(shot)
        if not isinstance(pose, CameraPose):
            raise ValueError(f"camera {self._name!r}: expected a CameraPose, found {type(pose).__name__}")
        return _filmable(pose, self._name)

    def _step(self, time: float, places: FloatArray) -> tuple[float, bool]:
        """Seconds since the last frame, and whether since then the subject, or most of several, was moved."""
        last, self._last = self._last, (time, places)
        if last is None or time < last[0] or places.shape != last[1].shape:
            return 0.0, True
        dt = time - last[0]
        return dt, 2 * int(was_moved(places - last[1], dt).sum()) > len(places)


def _filmable(pose: CameraPose, name: str) -> CameraPose:
    """The pose with what no picture could be made of put right: an eye under ground or in its target, a
    parallel up.
    """
    try:
        points = np.array([pose.eye, pose.target, pose.up], dtype=np.float64)
        fov = float(pose.fov)
    except (TypeError, ValueError):
        points, fov = np.zeros(0), 0.0
    if points.shape != (3, 3) or not np.isfinite(points).all() or not 0.0 < fov < 180.0:
        raise ValueError(
            f"camera {name!r}: expected three finite points and a field of view of 0 to 180 degrees, found {pose}"
        )
    eye, target, up = points
    eye[2] = max(eye[2], _MIN_EYE_HEIGHT)
    look = target - eye
    if look @ look < 1e-12:
        look = np.array([0.0, 1.0, 0.0])
        target = eye + look
    if (look @ up) ** 2 >= (1.0 - 1e-6) * (look @ look) * (up @ up):  # within a thousandth of a radian
        up = np.array([0.0, 1.0, 0.0] if look[1] ** 2 < 0.8 * (look @ look) else [1.0, 0.0, 0.0])
    return CameraPose(eye, target, fov, up)
