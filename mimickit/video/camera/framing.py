"""How far away a camera must stand, and where its subjects are: what the camera modes that follow have in common."""

import math

import numpy as np
from numpy.typing import NDArray

from mimickit.video.camera.follow_spring import FollowSpring
from mimickit.video.camera.shot import Shot
from mimickit.video.config import VideoConfig
from mimickit.video.snapshot import FloatArray

_AIM_HEIGHT = 0.52  # of the subject's height: what the camera looks at
_BALL = 0.6  # of the subject's height, around its root: holds arms, head and feet, upright or lying
_FILL = 0.52  # share of the picture's height that a standing subject takes

_SMOOTH_RATE = 8.0  # 1/s, of the spring on which the camera follows sideways
_SMOOTH_RATE_UP = 2.5  # 1/s, upwards: a jump is seen against the ground, not followed
_CALM_BAND = 0.6  # of the subject's height: up and down within it is followed by half, beyond it wholly
_GLIDE_RATE = 4.0  # 1/s, at which the camera takes in one of several that was moved
_CUT_DISTANCE, _CUT_SPEED = 1.5, 20.0  # m and m/s between two frames, that no subject runs: it was moved
_APART, _TOGETHER = 60.0, 50.0  # m, diagonal of the box around all subjects: lets go of the others, takes them back
_SURE_HEADING = (0.1, 0.3)  # weights of a heading, below which it is none, above which it is trusted


class Follower:
    """Keeps to the middle of the box around the subjects, on a spring. One of several that is moved, at the end of its
    episode for instance, glides there as far as the camera is concerned. Those that are far from the first are let
    go, and taken back when they are near again, with a cut.
    """

    def __init__(self) -> None:
        self._spring = FollowSpring(np.array([_SMOOTH_RATE, _SMOOTH_RATE, _SMOOTH_RATE_UP]))
        self._glide = FollowSpring(np.zeros((1, 3)))
        self._last: FloatArray = np.zeros((1, 3))
        self._is_apart = False
        self.subjects: FloatArray = np.zeros((1, 3))
        """(N, 3) m, those that are to be in view."""
        self.goal: FloatArray = np.zeros(3)
        """(3,) m, where the place comes to rest."""
        self.is_cut = True

    def follow(self, shot: Shot) -> FloatArray:
        """(3,) the subjects' place on the ground, smoothed; z is how far the picture rises and sinks with them (m)."""
        self.subjects, self.is_cut = shot.subjects, shot.is_cut
        if len(shot.subjects) > 1:
            self.subjects = self._gliding(shot)
            box = np.ptp(self.subjects, axis=0)
            is_apart = math.hypot(box[0], box[1]) > (_TOGETHER if self._is_apart and not shot.is_cut else _APART)
            self.is_cut = self.is_cut or is_apart != self._is_apart
            self._is_apart = is_apart
            self.subjects = self.subjects[:1] if is_apart else self.subjects
        self.goal = self._middle(shot)
        if self.is_cut:
            self._spring.jump(self.goal)
        return self._spring.follow(self.goal, shot.dt)

    def _gliding(self, shot: Shot) -> FloatArray:
        """(S, 3) the subjects, with one that was moved still on its way."""
        if shot.is_cut:
            self._glide = FollowSpring(np.full_like(shot.subjects, _GLIDE_RATE))
        else:
            back = self._last - shot.subjects
            self._glide.push(back * was_moved(back, shot.dt)[:, None])
        self._last = shot.subjects
        return shot.subjects + self._glide.follow(np.zeros_like(shot.subjects), shot.dt)

    def _middle(self, shot: Shot) -> FloatArray:
        if len(self.subjects) > 1:
            middle: FloatArray = 0.5 * (self.subjects.min(axis=0) + self.subjects.max(axis=0))
            return middle - (0.0, 0.0, shot.size.root_height)
        x, y, z = self.subjects[0].tolist()
        rise, band = z - shot.size.root_height, _CALM_BAND * shot.size.height
        return np.array([x, y, rise - 0.5 * min(max(rise, -band), band)])


def was_moved(steps: FloatArray, dt: float) -> NDArray[np.bool_]:
    """(S,) which of the steps (S, 3) m, made in dt seconds, are too long for one that moves by itself."""
    return np.asarray(np.einsum("ij,ij->i", steps, steps) > max(_CUT_DISTANCE, _CUT_SPEED * dt) ** 2)


def default_distance(height: float, fov: float, aspect: float) -> float:
    """From the eye to a subject (m) that takes half the picture's height, and whose arms fit into its width."""
    height = max(height, 0.2)
    tan = math.tan(math.radians(fov) / 2.0)
    return max(0.5 * height / _FILL / tan, _BALL * height / _sine(tan * min(aspect, 1.0)), 0.3)


def default_target(config: VideoConfig, height: float) -> FloatArray:
    """(3,) what the camera looks at, from the subject's place on the ground: configured, or the subject's middle."""
    return np.array([0.0, 0.0, _AIM_HEIGHT * max(height, 0.2)] if config.target is None else config.target)


def fit_distance(
    points: FloatArray, radius: float, *, direction: FloatArray, up: FloatArray, fov: float, aspect: float
) -> float:
    """How far from its target (m) an eye must stand for balls around points to be in view wholly.

    points (N, 3) m are relative to the target; direction (3,) is from the target to the eye, of unit length.
    """
    tan_up = math.tan(math.radians(fov) / 2.0)
    tan_across = tan_up * aspect
    dx, dy, dz = direction.tolist()
    ux, uy, uz = up.tolist()
    rx, ry, rz = dz * uy - dy * uz, dx * uz - dz * ux, dy * ux - dx * uy  # to the right: forward x up
    length = math.sqrt(rx * rx + ry * ry + rz * rz)
    if length < 1e-9:  # no picture has such an up; whichever is taken for it, the circle around it fits
        return float(np.linalg.norm(points, axis=-1).max() + radius) / min(_sine(tan_up), _sine(tan_across))
    rx, ry, rz = rx / length, ry / length, rz / length
    axes = ((rx, ry * dz - rz * dy, dx), (ry, rz * dx - rx * dz, dy), (rz, rx * dy - ry * dx, dz))
    seen = points @ np.array(axes)
    near = seen[:, 2]  # towards the eye
    across = np.abs(seen[:, 0]) / tan_across + near + radius / _sine(tan_across)
    return float(max(across.max(), (np.abs(seen[:, 1]) / tan_up + near).max() + radius / _sine(tan_up)))


def swept(points: FloatArray, steps: int = 24) -> FloatArray:
    """The points (N, 3) in all directions around the vertical, (steps * N, 3): who fits so fits while turning."""
    angle = np.arange(steps)[:, None] * (2.0 * math.pi / steps)
    reach = np.hypot(points[:, 0], points[:, 1])
    height = np.broadcast_to(points[:, 2], (steps, len(points)))
    return np.stack((np.cos(angle) * reach, np.sin(angle) * reach, height), axis=-1).reshape(-1, 3)


def turned(vector: FloatArray, angle: float) -> FloatArray:
    """A vector (3,) turned about the vertical by an angle (radians)."""
    cos, sin = math.cos(angle), math.sin(angle)
    x, y, z = vector.tolist()
    return np.array([cos * x - sin * y, sin * x + cos * y, z])


def heading(rot: FloatArray) -> tuple[float, float]:
    """Where a body (4,) x y z w faces on the ground: angle from +x (radians), and how sure that is, 0 to 1.

    The angle is that of the turn about the vertical which is left when the body is tilted upright the short way, so
    that it passes through lying unharmed. An upside-down body has none: where its x axis points is taken.
    """
    x, y, z, w = rot.tolist()
    square = max(x * x + y * y + z * z + w * w, 1e-12)
    weight = (z * z + w * w) / square  # of the tilt's half angle, the squared cosine
    low, high = _SURE_HEADING
    if weight > low:
        return 2.0 * math.atan2(z, w), min((weight - low) / (high - low), 1.0)
    return math.atan2(2.0 * (x * y + w * z), square - 2.0 * (y * y + z * z)), 0.0


def _sine(tangent: float) -> float:
    return tangent / math.hypot(1.0, tangent)
