"""The springs on which cameras follow, against their equations."""

import math

import numpy as np
import pytest

from mimickit.video.camera.follow_spring import FollowSpring, RotationSpring, TurnSpring, wrap
from tests.video.camera_checks import UPRIGHT, rotation


def test_the_spring_is_the_solution_of_its_equation() -> None:
    """Against 2000 small steps of e'' + 2 w e' + w^2 e = 0 from the error that a change of pace leaves."""
    rate, dt = np.array([4.0, 8.0, 2.0]), 0.5
    spring = FollowSpring(rate)
    spring.jump(np.zeros(3))
    spring.follow(np.zeros(3), dt)
    found = spring.follow(np.array([1.0, 2.0, 3.0]), dt) - np.array([1.0, 2.0, 3.0])
    error, speed, h = np.zeros(3), -np.array([1.0, 2.0, 3.0]) / dt, dt / 2000
    for _ in range(2000):
        middle = speed + 0.5 * h * (-2 * rate * speed - rate**2 * error)
        speed = speed + h * (-2 * rate * middle - rate**2 * (error + 0.5 * h * speed))
        error = error + h * middle
    assert np.allclose(found, error, atol=1e-5)


def turn(goals: np.ndarray, rate: float = 3.0, dt: float = 1 / 30, pull: float = 1.0) -> np.ndarray:
    spring = TurnSpring(rate)
    spring.jump(float(goals[0]))
    return np.array([spring.follow(float(goal), pull, dt) for goal in goals])


@pytest.mark.parametrize("flip", [math.pi, -math.pi, 3.0, 100.0])
def test_an_angle_that_flips_is_followed_no_faster_than_the_rate_without_overshoot(flip: float) -> None:
    angles = turn(np.concatenate(([0.0], np.full(150, flip))))
    speed = np.abs(np.diff(angles)) * 30
    assert speed.max() < 3.0
    assert np.abs(np.diff(speed)).max() < 2 * 3.0**2 / 30 + 1e-9  # starts softly
    assert wrap(angles[-1] - flip) == pytest.approx(0.0, abs=1e-3)
    assert abs(angles[-1]) <= math.pi + 1e-9  # the short way, and not beyond


def test_an_angle_that_spins_or_trembles_is_not_chased() -> None:
    spin = turn(np.arange(300) * 0.9)  # 1550 degrees a second
    assert np.abs(np.diff(spin)).max() * 30 < 3.0
    tremble = turn(np.where(np.arange(300) % 2, 0.0, math.pi))
    assert np.abs(np.diff(tremble)).max() * 30 < 3.0


def test_an_angle_without_pull_comes_to_rest() -> None:
    spring = TurnSpring(3.0)
    for _ in range(10):
        spring.follow(2.0, 1.0, 1 / 30)
    angles = np.array([spring.follow(2.0, 0.0, 1 / 30) for _ in range(120)])
    assert angles[-1] < 1.5
    assert np.diff(angles)[-30:] == pytest.approx(0.0, abs=1e-6)


def look(rots: list[np.ndarray], dt: float = 1 / 30, rate: float = 20.0) -> np.ndarray:
    spring = RotationSpring(rate)
    spring.jump(rots[0])
    return np.array([spring.follow(rot, dt) for rot in rots])


def yaw(rots: np.ndarray) -> np.ndarray:
    return np.unwrap(2.0 * np.arctan2(rots[..., 2], rots[..., 3]))


def test_a_rotation_at_rest_and_the_same_one_negated_stay() -> None:
    rot = rotation("x", 70.0)
    assert np.allclose(look([rot, -rot, rot, 3.0 * rot]), rot)


def test_a_steady_turn_is_followed_two_lags_behind() -> None:
    found = yaw(look([rotation("z", 6.0 * i) for i in range(90)]))  # 180 degrees a second
    assert found[-1] == pytest.approx(math.radians(6.0 * 89) - math.pi * 2 / 20.0, abs=0.02)


def test_a_turn_that_stops_is_followed_without_overshoot() -> None:
    found = yaw(look([UPRIGHT] + [rotation("z", 120.0)] * 60))
    assert (np.diff(found) >= -1e-12).all()
    assert found[-1] == pytest.approx(math.radians(120.0), abs=1e-6)


@pytest.mark.parametrize("dt", [1 / 24, 1 / 30, 1 / 50, 1 / 60, 1 / 120])
def test_angles_and_rotations_do_not_depend_on_the_frame_rate(dt: float) -> None:
    """A turn of changing direction, straight between the frames of the slowest, seen at other rates."""

    def goal(t: np.ndarray) -> np.ndarray:
        return np.interp(t, [0.0, 0.5, 1.0, 1.5, 2.0], [0.0, 2.5, -1.0, 0.0, 3.0])

    t = np.arange(0.0, 2.0 + 1e-9, dt)
    fine = np.arange(0.0, 2.0 + 1e-9, 1 / 480)
    for found, exact in (
        (turn(goal(t), dt=dt), turn(goal(fine), dt=1 / 480)),
        (yaw(look([rotation("z", math.degrees(a)) for a in goal(t)], dt)),
         yaw(look([rotation("z", math.degrees(a)) for a in goal(fine)], 1 / 480))),
    ):  # fmt: skip
        assert np.allclose(found, np.interp(t, fine, exact), atol=0.02)
