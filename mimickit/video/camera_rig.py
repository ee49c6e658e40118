"""Where the camera is and what it looks at: pure numpy, no engine and no GL behind it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mimickit.util.keys import ConfigError, nearest
from mimickit.util.loading import load_object
from mimickit.video.config import VideoConfig

FloatArray = NDArray[np.float64]

# The default view: from the subject's right and front, so that what walks along +x crosses the picture and
# comes closer.
_AZIMUTH = math.radians(-62.0)  # of the eye, seen from the subject, from +x
_ELEVATION = math.radians(11.0)
_FILL = 0.52  # share of the picture's height that a standing subject takes
_AIM_HEIGHT = 0.52  # of the subject's height: what the camera looks at

_SMOOTH_RATE = 8.0  # 1/s, of the spring on which the camera follows sideways
_SMOOTH_RATE_UP = 2.5  # 1/s, upwards: a jump is seen against the ground, not followed
_CALM_BAND = 0.6  # of the subject's height: up and down within it is followed by half, beyond it wholly
_CUT_DISTANCE = 1.5  # m moved between two frames that no subject runs: the camera jumps along
_MIN_EYE_HEIGHT = 0.05  # m above the ground
_UP = (0.0, 0.0, 1.0)


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
    """First frame of the clip or of an episode, or the subject was moved: nothing to be smooth with."""
    root_pos: FloatArray
    """(3,) m, the subject's root body."""
    root_rot: FloatArray
    """(4,) x y z w."""
    size: "SubjectSize"
    """How big the subject is."""
    config: VideoConfig


CameraMode = Callable[[Shot], CameraPose]
"""A camera: called once a frame, in order. One that remembers is a class: its instance is made per clip."""


class CameraRig:
    """Asks a camera mode for a pose frame by frame, and sees to it that the pose can be filmed."""

    def __init__(self, config: VideoConfig) -> None:
        self._config = config
        self._mode = make_camera(config.camera)
        self._last: tuple[float, FloatArray] | None = None

    def pose(
        self, *, time: float, root_pos: FloatArray, root_rot: FloatArray, size: SubjectSize, is_cut: bool
    ) -> CameraPose:
        """The camera of the frame at time (s); the arguments are as in Shot. Raises ValueError if a mode
        gives no numbers.
        """
        moved = 0.0 if self._last is None else float(np.linalg.norm(root_pos - self._last[1]))
        dt = 0.0 if self._last is None else time - self._last[0]
        cut = is_cut or self._last is None or moved > max(_CUT_DISTANCE, 20.0 * dt)
        self._last = (time, np.array(root_pos, dtype=np.float64))
        shot = Shot(time, dt, cut, self._last[1], np.asarray(root_rot, np.float64), size, self._config)
        pose = self._mode(shot)
        if not isinstance(pose, CameraPose):
            raise ValueError(f"camera {self._config.camera!r}: expected a CameraPose, found {type(pose).__name__}")
        return _filmable(pose, self._config.camera)


class TrackCamera:
    """Follows the subject from a fixed side. It has no lag behind a steady walk and swings softly into a
    change of pace.
    """

    def __init__(self) -> None:
        self._spring = FollowSpring(np.array([_SMOOTH_RATE, _SMOOTH_RATE, _SMOOTH_RATE_UP]))

    def __call__(self, shot: Shot) -> CameraPose:
        return _relative_pose(shot, self.place(shot), default_offset(shot.config, shot.size.height))

    def place(self, shot: Shot) -> FloatArray:
        """(3,) the subject's place on the ground, smoothed; z is how far the picture rises and sinks with it
        (m).
        """
        rise = float(shot.root_pos[2]) - shot.size.root_height
        band = _CALM_BAND * shot.size.height
        goal = np.array([shot.root_pos[0], shot.root_pos[1], rise - 0.5 * min(max(rise, -band), band)])
        if shot.is_cut:
            self._spring.jump(goal)
        return self._spring.follow(goal, shot.dt)


class OrbitCamera(TrackCamera):
    """Follows the subject and walks around it, orbit_speed degrees a second."""

    def __call__(self, shot: Shot) -> CameraPose:
        eye, target = default_offset(shot.config, shot.size.height)
        angle = math.radians(shot.config.orbit_speed) * shot.time
        cos, sin = math.cos(angle), math.sin(angle)
        arm = eye - target
        turned = np.array([cos * arm[0] - sin * arm[1], sin * arm[0] + cos * arm[1], arm[2]])
        return _relative_pose(shot, self.place(shot), (target + turned, target))


class StillCamera:
    """Stands where it is put; without a position, where it sees the subject's place at the first frame."""

    def __init__(self) -> None:
        self._pose: CameraPose | None = None

    def __call__(self, shot: Shot) -> CameraPose:
        if self._pose is None:
            config = shot.config
            place = np.array([shot.root_pos[0], shot.root_pos[1], 0.0])
            eye, target = default_offset(config, shot.size.height)
            self._pose = CameraPose(
                eye=place + eye if config.position is None else np.array(config.position),
                target=place + target if config.target is None else np.array(config.target),
                fov=config.fov,
                up=np.array(_UP),
            )
        return self._pose


class FollowSpring:
    """A critically damped spring on which one point follows another; exact at any frame rate.

    The point is tied to its goal by e'' + 2 w e' + w^2 e = 0 in the goal's own moving frame, so that a goal
    of constant velocity is followed without lag. Between two frames the goal is taken to move in a straight
    line, for which the equation has a closed solution.
    """

    def __init__(self, rate: FloatArray) -> None:
        self._rate = rate  # (3,) w, 1/s
        self.jump(np.zeros(3))

    def jump(self, goal: FloatArray) -> None:
        """Stand at the goal (3,) at once."""
        self._goal = np.array(goal, dtype=np.float64)
        self._error = np.zeros(3)
        self._error_rate = np.zeros(3)
        self._velocity: FloatArray | None = None

    def follow(self, goal: FloatArray, dt: float) -> FloatArray:
        """The point (3,) after dt seconds in which the goal went to where it is now."""
        if dt > 0.0:
            velocity = (goal - self._goal) / dt
            if self._velocity is not None:
                self._error_rate = self._error_rate - (velocity - self._velocity)
            decay = np.exp(-self._rate * dt)
            slope = self._error_rate + self._rate * self._error
            self._error_rate = (self._error_rate - self._rate * slope * dt) * decay
            self._error = (self._error + slope * dt) * decay
            self._velocity = velocity
        self._goal = np.array(goal, dtype=np.float64)
        return self._goal + self._error


CAMERA_MODES: dict[str, Callable[[], CameraMode]] = {
    "track": TrackCamera,
    "still": StillCamera,
    "orbit": OrbitCamera,
}


def make_camera(name: str) -> CameraMode:
    """A new camera of a mode named in CAMERA_MODES or given as package.module:function (or class). Raises
    ConfigError.
    """
    if name in CAMERA_MODES:
        return CAMERA_MODES[name]()
    if ":" not in name:
        raise ConfigError(f"video: camera: found {name!r}{nearest(name, CAMERA_MODES)}; or package.module:function")
    found = load_object(name, "video: camera")
    camera: CameraMode = found() if isinstance(found, type) else found
    if not callable(camera):
        raise ConfigError(f"video: camera: {name!r}: expected a function of a Shot, found {type(camera).__name__}")
    return camera


def default_offset(config: VideoConfig, height: float) -> tuple[FloatArray, FloatArray]:
    """Eye and target (3,) relative to the subject's place on the ground: the configured ones, or fitted to
    its height.
    """
    height = max(height, 0.2)
    target = np.array([0.0, 0.0, _AIM_HEIGHT * height]) if config.target is None else np.array(config.target)
    if config.position is not None:
        return np.array(config.position), target
    distance = height / _FILL / (2.0 * math.tan(math.radians(config.fov) / 2.0))
    distance = max(distance, 0.3)
    arm = [
        math.cos(_ELEVATION) * math.cos(_AZIMUTH),
        math.cos(_ELEVATION) * math.sin(_AZIMUTH),
        math.sin(_ELEVATION),
    ]
    return target + distance * np.array(arm), target


def _relative_pose(shot: Shot, place: FloatArray, offset: tuple[FloatArray, FloatArray]) -> CameraPose:
    return CameraPose(place + offset[0], place + offset[1], shot.config.fov, np.array(_UP))


def _filmable(pose: CameraPose, name: str) -> CameraPose:
    """The pose with what no picture could be made of put right: an eye under ground or in its target, a
    parallel up.
    """
    eye, target = np.array(pose.eye, dtype=np.float64), np.array(pose.target, dtype=np.float64)
    up = np.array(pose.up, dtype=np.float64)
    if not (eye.shape == target.shape == up.shape == (3,) and np.all(np.isfinite([eye, target, up]))):
        raise ValueError(f"camera {name!r}: expected three finite points, found {pose}")
    eye[2] = max(eye[2], _MIN_EYE_HEIGHT)
    look = target - eye
    if np.linalg.norm(look) < 1e-6:
        target = eye + np.array([0.0, 1.0, 0.0])
        look = target - eye
    if np.linalg.norm(np.cross(look / np.linalg.norm(look), up)) < 1e-3 * max(float(np.linalg.norm(up)), 1e-9):
        up = np.array([0.0, 1.0, 0.0]) if abs(look[1]) < 0.9 * np.linalg.norm(look) else np.array([1.0, 0.0, 0.0])
    return CameraPose(eye, target, float(pose.fov), up)
