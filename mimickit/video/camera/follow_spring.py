"""Springs on which cameras follow: for points, for an angle, for a rotation. The frame rate makes no difference."""

import math

import numpy as np

from mimickit.video.snapshot import FloatArray

_SUBSTEP = 1.0 / 240.0  # s, of the springs that have no closed solution: frame rates that divide it agree exactly

Quaternion = tuple[float, float, float, float]


class FollowSpring:
    """A critically damped spring on which one point follows another; exact at any frame rate.

    The point is tied to its goal by e'' + 2 w e' + w^2 e = 0 in the goal's own moving frame, so that a goal
    of constant velocity is followed without lag. Between two frames the goal is taken to move in a straight
    line, for which the equation has a closed solution.
    """

    def __init__(self, rate: FloatArray) -> None:
        self._rate = rate  # w, 1/s, of every number of the point: (N,), or any shape
        self.jump(np.zeros_like(rate))

    def jump(self, goal: FloatArray) -> None:
        """Stand at the goal (N,) at once."""
        self._goal = np.array(goal, dtype=np.float64)
        self._error = np.zeros_like(self._rate)
        self._error_rate = np.zeros_like(self._rate)
        self._velocity: FloatArray | None = None

    def push(self, by: FloatArray) -> None:
        """Move the point (N,), not its goal."""
        self._error = self._error + by

    def follow(self, goal: FloatArray, dt: float) -> FloatArray:
        """The point (N,) after dt seconds in which the goal went to where it is now."""
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


class TurnSpring:
    """An angle (radians) that follows another the short way round, never faster than its rate (rad/s).

    a'' = 2 w^2 sin((goal - a) / 2) - 2 w a': for small differences a critically damped spring; a goal that
    flips or spins pulls with no more than 2 w^2, against which the damping wins at w.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self.jump(0.0)

    def jump(self, goal: float) -> None:
        """Point at the goal at once."""
        self._angle = self._goal = goal
        self._speed, self._pull = 0.0, 1.0

    def follow(self, goal: float, pull: float, dt: float) -> float:
        """The angle after dt seconds in which the goal turned the short way to where it is now.

        pull, 0 to 1, is how much the goal can be trusted: at 0 the angle comes to rest wherever it is.
        """
        count = _substeps(dt)
        for step in range(1, count + 1):
            share, h = step / count, dt / count
            ahead = wrap(self._goal + share * wrap(goal - self._goal) - self._angle)
            strength = self._pull + share * (pull - self._pull)
            push = 2.0 * self._rate**2 * strength * math.sin(0.5 * ahead)
            self._speed = (self._speed + h * push) / (1.0 + 2.0 * self._rate * h)
            self._angle += h * self._speed
        self._goal, self._pull = goal, pull
        return self._angle


class RotationSpring:
    """A rotation (x y z w) that follows another through two equal lags in a row: no jerk, no overshoot."""

    def __init__(self, rate: float) -> None:
        self._rate = rate  # 1/s, of each lag
        self.jump(np.array([0.0, 0.0, 0.0, 1.0]))

    def jump(self, goal: FloatArray) -> None:
        """Stand at the goal (4,) at once."""
        self._goal = self._middle = self._rotation = _unit(goal)

    def follow(self, goal: FloatArray, dt: float) -> FloatArray:
        """The rotation (4,) after dt seconds in which the goal turned the short way to where it is now."""
        count, end = _substeps(dt), _unit(goal)
        blend = 1.0 - math.exp(-self._rate * dt / max(count, 1))
        for step in range(1, count + 1):
            self._middle = _slerp(self._middle, _slerp(self._goal, end, step / count), blend)
            self._rotation = _slerp(self._rotation, self._middle, blend)
        self._goal = end
        return np.array(self._rotation)


def wrap(angle: float) -> float:
    """The same angle from -pi to pi."""
    return math.remainder(angle, 2.0 * math.pi)


def _substeps(dt: float) -> int:
    return math.ceil(dt / _SUBSTEP - 1e-6) if dt > 0.0 else 0


def _unit(rot: FloatArray) -> Quaternion:
    x, y, z, w = (float(value) for value in rot)
    length = math.sqrt(x * x + y * y + z * z + w * w) or 1.0
    return x / length, y / length, z / length, w / length


def _slerp(a: Quaternion, b: Quaternion, share: float) -> Quaternion:
    """From a (share 0) to b (share 1) the short way."""
    dot = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]
    angle = math.acos(min(abs(dot), 1.0))
    if angle < 1e-6:
        of_a, of_b = 1.0 - share, share
    else:
        of_a, of_b = (math.sin(part * angle) / math.sin(angle) for part in (1.0 - share, share))
    of_b = math.copysign(of_b, dot)
    return (
        of_a * a[0] + of_b * b[0], of_a * a[1] + of_b * b[1], of_a * a[2] + of_b * b[2], of_a * a[3] + of_b * b[3],
    )  # fmt: skip
