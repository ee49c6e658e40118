"""The camera modes: who stands where, frame by frame. One's own is a function of a Shot, or a class of such."""

import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mimickit.util.keys import ConfigError, nearest
from mimickit.util.loading import load_object
from mimickit.video.camera.camera_path import CameraPath, load_camera_path
from mimickit.video.camera.follow_spring import FollowSpring, RotationSpring, TurnSpring
from mimickit.video.camera.framing import (
    Follower,
    default_distance,
    default_target,
    fit_distance,
    heading,
    swept,
    turned,
)
from mimickit.video.camera.shot import CameraMode, CameraPose, Shot
from mimickit.video.config import VideoConfig
from mimickit.video.snapshot import FloatArray, quat_to_matrix

_ZOOM_RATE = 3.0  # 1/s, of the spring on which the distance to several subjects follows
_TURN_RATE = 3.0  # rad/s at most, of a camera that goes behind its subject
_LOOK_RATE = 20.0  # 1/s, of the two lags that calm a head: 0.1 s behind, a trembling of 6 Hz is cut to a fifth
_ROOM = 0.7  # of the subject's height, around the root of each of several: in view once the distance has settled
_LOST = 0.25  # of the subject's height, around its root: closer to the picture's edge the camera backs off
_EYE_PLACE = np.array([0.09, 0.0, 0.11])  # of the subject's height, in the head's frame: before the forehead


class FollowCamera:
    """Follows its subjects from a direction. It has no lag behind a steady walk, swings softly into a change of pace,
    stands far enough away for all of them, and backs off where one would leave the picture.
    """

    azimuth: ClassVar[float] = 0.0
    """Of the eye, seen from the subject (degrees); 0 is ahead of it or +x, 90 to its left."""
    elevation: ClassVar[float] = 8.0
    """Of the eye, seen from the subject (degrees)."""
    up: ClassVar[tuple[float, float, float]] = (0.0, 0.0, 1.0)
    turns: ClassVar[bool] = False
    """Whether the direction changes: the distance is then such that it need not change with it."""

    def __init__(self) -> None:
        self._follower = Follower()
        self._zoom = FollowSpring(np.array([_ZOOM_RATE]))
        angles = math.radians(self.azimuth), math.radians(self.elevation)
        self._direction = np.array([
            math.cos(angles[1]) * math.cos(angles[0]), math.cos(angles[1]) * math.sin(angles[0]), math.sin(angles[1]),
        ])  # fmt: skip

    def __call__(self, shot: Shot) -> CameraPose:
        arm, aim = self.view(shot)
        place, config = self._follower.follow(shot), shot.config
        is_alone = len(self._follower.subjects) == 1
        if is_alone and not (config.position is None and config.target is None):
            return self._pose(shot, place + aim, arm)  # as it was asked for
        length = math.sqrt(arm @ arm)
        direction = arm / length if length > 1e-9 else self._direction
        distance = length if is_alone else self._settle(shot, aim, direction, length)
        points = self._follower.subjects - (place + aim)
        distance = max(distance, self._fit(shot, points, _LOST, direction))
        return self._pose(shot, place + aim, distance * direction)

    def view(self, shot: Shot) -> tuple[FloatArray, FloatArray]:
        """(3,) the eye seen from what it looks at, and that seen from the subjects' place on the ground (m)."""
        config, height = shot.config, shot.size.height
        aim = default_target(config, height)
        if config.position is not None:
            return np.array(config.position) - aim, aim
        return self.distance(shot) * self._direction, aim

    def distance(self, shot: Shot) -> float:
        """From the eye to a single subject (m)."""
        return default_distance(shot.size.height, shot.config.fov, shot.aspect)

    def _settle(self, shot: Shot, aim: FloatArray, direction: FloatArray, least: float) -> float:
        """The distance from which all subjects are in view, smoothed."""
        points = self._follower.subjects - (self._follower.goal + aim)
        wanted = np.array([max(least, self._fit(shot, swept(points) if self.turns else points, _ROOM, direction))])
        if self._follower.is_cut:
            self._zoom.jump(np.log(wanted))
        return float(np.exp(self._zoom.follow(np.log(wanted), shot.dt))[0])

    def _fit(self, shot: Shot, points: FloatArray, radius: float, direction: FloatArray) -> float:
        return fit_distance(
            points, radius * shot.size.height,
            direction=direction, up=np.array(self.up), fov=shot.config.fov, aspect=shot.aspect,
        )  # fmt: skip

    def _pose(self, shot: Shot, target: FloatArray, arm: FloatArray) -> CameraPose:
        return CameraPose(target + arm, target, shot.config.fov, np.array(self.up))


class TrackCamera(FollowCamera):
    """Follows the subject from its right and front as it stands at the origin: what walks along +x crosses the picture
    and comes closer.
    """

    azimuth = -62.0
    elevation = 11.0


class OrbitCamera(TrackCamera):
    """Follows the subject and walks around it, orbit_speed degrees a second."""

    turns = True

    def view(self, shot: Shot) -> tuple[FloatArray, FloatArray]:
        arm, aim = super().view(shot)
        return turned(arm, math.radians(shot.config.orbit_speed) * shot.time), aim


class TopCamera(FollowCamera):
    """Looks straight down on the subject and follows it; the picture is a map, +x to the right and +y up."""

    elevation = 90.0
    up = (0.0, 1.0, 0.0)

    def __init__(self) -> None:
        super().__init__()
        self._direction = np.array([0.0, 0.0, 1.0])

    def distance(self, shot: Shot) -> float:
        return max(super().distance(shot), 1.5 * shot.size.height)  # above its head, also when it jumps


class FrontCamera(FollowCamera):
    """Looks the subject in the face: from ahead of where it faces when the clip or an episode begins. A configured
    position and target are turned with that heading: x is ahead of the subject, y to its left.
    """

    def __init__(self) -> None:
        super().__init__()
        self._heading = 0.0

    def view(self, shot: Shot) -> tuple[FloatArray, FloatArray]:
        arm, aim = super().view(shot)
        angle = self.heading(shot)
        return turned(arm, angle), turned(aim, angle)

    def heading(self, shot: Shot) -> float:
        """The direction (radians from +x) that the view is turned to."""
        if shot.is_start:
            self._heading = heading(shot.root_rot)[0]
        return self._heading


class SideCamera(FrontCamera):
    """Looks at the subject's right side, square to where it faces when the clip or an episode begins: what walks ahead
    goes from left to right.
    """

    azimuth = -90.0
    elevation = 5.0


class ChaseCamera(FrontCamera):
    """Goes behind the subject and turns with it, softly. Where the subject hangs upside down, the camera stays where
    it is.
    """

    azimuth = 180.0
    elevation = 16.0
    turns = True

    def __init__(self) -> None:
        super().__init__()
        self._spring = TurnSpring(_TURN_RATE)

    def heading(self, shot: Shot) -> float:
        angle, sureness = heading(shot.root_rot)
        if shot.is_cut:
            self._spring.jump(angle)
        return self._spring.follow(angle, sureness, shot.dt)


class StillCamera:
    """Stands where it is put; without a position, where it sees the subjects' place at the first frame."""

    def __init__(self) -> None:
        self._pose: CameraPose | None = None

    def __call__(self, shot: Shot) -> CameraPose:
        if self._pose is None:
            config, subjects = shot.config, shot.subjects.copy()
            subjects[:, 2] = shot.size.root_height
            free = replace(config, position=None, target=None)
            pose = TrackCamera()(replace(shot, is_cut=True, subjects=subjects, config=free))
            target = pose.target if config.target is None else np.array(config.target)
            eye = target + (pose.eye - pose.target) if config.position is None else np.array(config.position)
            self._pose = replace(pose, eye=eye, target=target)
        return self._pose


class FirstPersonCamera:
    """Sees what a body sees: from before its forehead, along its x axis, with its z axis up. The look is calmed, not
    the place. A configured position is that of the eye in the body's frame, a target what it looks at there.
    """

    def __init__(self) -> None:
        self._spring = RotationSpring(_LOOK_RATE)

    def __call__(self, shot: Shot) -> CameraPose:
        config = shot.config
        pos, rot = _body(shot)
        eye = _EYE_PLACE * shot.size.height if config.position is None else np.array(config.position)
        look = np.array([1.0, 0.0, 0.0]) if config.target is None else np.array(config.target) - eye
        if shot.is_cut:
            self._spring.jump(rot)
        calm = quat_to_matrix(self._spring.follow(rot, shot.dt))
        place = pos + quat_to_matrix(rot) @ eye
        return CameraPose(place, place + calm @ look, config.fov, calm[:, 2])


class DollyCamera:
    """Goes along the key poses of the camera_path, easing out of the first and into the last."""

    def __init__(self, path: CameraPath | None = None) -> None:
        self._path = path
        self._follower = Follower()

    @classmethod
    def read(cls, config: VideoConfig) -> "DollyCamera":
        """A dolly on the configured path. Raises ConfigError."""
        if config.camera_path is None:
            raise ConfigError("video: camera_path is missing: expected the YAML of a dolly's key poses")
        return cls(load_camera_path(config.camera_path, config.fov))

    def __call__(self, shot: Shot) -> CameraPose:
        if self._path is None:
            self._path = self.read(shot.config)._path
            assert self._path is not None
        eye, target, fov = self._path.at(shot.time)
        place = self._follower.follow(shot) if self._path.is_relative else np.zeros(3)
        return CameraPose(place + eye, place + target, fov)


CAMERA_MODES: dict[str, Callable[[], CameraMode]] = {
    "track": TrackCamera,
    "still": StillCamera,
    "orbit": OrbitCamera,
    "side": SideCamera,
    "front": FrontCamera,
    "top": TopCamera,
    "chase": ChaseCamera,
    "first_person": FirstPersonCamera,
    "dolly": DollyCamera,
}


def make_camera(name: str, *, config: VideoConfig | None = None) -> CameraMode:
    """A new camera of a mode named in CAMERA_MODES or given as package.module:function (or class).

    With a config, the file of a dolly's path is read and checked now, not at the first frame. Raises ConfigError.
    """
    if name == "dolly" and config is not None:
        return DollyCamera.read(config)
    if name in CAMERA_MODES:
        return CAMERA_MODES[name]()
    if ":" not in name:
        raise ConfigError(f"video: camera: found {name!r}{nearest(name, CAMERA_MODES)}; or package.module:function")
    found = load_object(name, "video: camera")
    if isinstance(found, type):
        _expect_call(found, 0, f"{name!r}: expected a class that is made without arguments")
    camera: CameraMode = found() if isinstance(found, type) else found
    if not callable(camera):
        raise ConfigError(f"video: camera: {name!r}: expected a function of a Shot, found {type(camera).__name__}")
    _expect_call(camera, 1, f"{name!r}: expected a function of one argument, a Shot, that returns a CameraPose")
    return camera


def _expect_call(function: Callable[..., Any], num_args: int, expected: str) -> None:
    """Raise ConfigError where a function can't be called with so many arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of one that is not written in Python nobody knows
        return
    try:
        signature.bind(*[None] * num_args)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        raise ConfigError(f"video: camera: {expected}; found {name}{signature}: {error}") from None


def _body(shot: Shot) -> tuple[FloatArray, FloatArray]:
    """Position and rotation of the body through whose eyes we look."""
    name, bodies = shot.config.body, shot.bodies
    if name is not None:
        if name not in bodies:
            known = nearest(name, bodies) if bodies else "; the names of the subject's bodies are not known here"
            raise ConfigError(f"video: body: found {name!r}{known}")
        return bodies[name]
    heads = [key for key in bodies if "head" in key.lower()]
    exact = [key for key in heads if key.lower() == "head"]
    for key in [*exact, *heads, *bodies]:
        return bodies[key]
    return shot.root_pos, shot.root_rot
