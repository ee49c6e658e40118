"""Which states become frames, and what lies between them in slow motion."""

from collections.abc import Sequence

import numpy as np
import pytest

from mimickit.video.frame_clock import FrameClock, Reel, between
from mimickit.video.snapshot import Moment, Snapshot
from tests.video.films import pendulum_pose


def moments(count: int, *, dt: float, cuts: Sequence[int] = (0,), speed: float = 1.0) -> list[Moment]:
    """A pendulum that goes along x at speed m/s, and jumps 10 m at every cut but the first."""
    found = []
    for index in range(count):
        jump = 10.0 * sum(1 for cut in cuts if 0 < cut <= index)
        pose = pendulum_pose(x=speed * index * dt + jump)
        found.append((Snapshot(index * dt, 0, index, [pose], is_cut=index in cuts),))
    return found


def shown(clock: FrameClock, given: Sequence[Moment]) -> list[Snapshot]:
    reel = Reel(clock)
    return [frame[0] for moment in given for frame in reel.feed(moment)]


@pytest.mark.parametrize("fps", [30.0, 15.0, 20.0, 12.5, 29.97, 1.0])
def test_at_a_lower_rate_frames_are_states_evenly_spread_in_real_time(fps: float) -> None:
    clock = FrameClock(1 / 30, fps)
    frames = shown(clock, moments(91, dt=1 / 30))
    assert len(frames) == clock.count(91) == int(3.0 * fps + 1e-6) + 1
    for index, frame in enumerate(frames):
        assert frame.time == pytest.approx(frame.step / 30)
        assert index / fps - 1e-6 <= frame.time <= index / fps + 1 / 30


@pytest.mark.parametrize(("speed", "count"), [(0.25, 121), (0.5, 61), (0.3, 101), (2.0, 16), (1.0, 31)])
def test_speed_changes_the_duration_and_the_motion_stays_even(speed: float, count: int) -> None:
    clock = FrameClock(1 / 30, 30.0, speed)
    frames = shown(clock, moments(31, dt=1 / 30))
    assert len(frames) == clock.count(31) == count
    places = np.array([frame.poses[0][0][0, 0] for frame in frames])
    if speed <= 1.0:
        np.testing.assert_allclose(np.diff(places), speed / 30, atol=1e-9)
    np.testing.assert_allclose([frame.time for frame in frames], places, atol=1e-9)


def test_a_cut_is_not_mixed_over_and_is_on_the_first_frame_that_shows_it() -> None:
    frames = shown(FrameClock(1 / 30, 30.0, 0.3), moments(20, dt=1 / 30, cuts=(0, 7)))
    places = np.array([frame.poses[0][0][0, 0] for frame in frames])
    (jump,) = np.flatnonzero(np.diff(places) > 5.0) + 1
    assert [i for i, frame in enumerate(frames) if frame.is_cut] == [0, jump]
    assert not np.any((places > 0.25) & (places < 10.2))


def test_a_cut_on_a_state_that_is_skipped_is_on_the_next_frame() -> None:
    frames = shown(FrameClock(1 / 30, 10.0), moments(20, dt=1 / 30, cuts=(0, 7)))
    assert [frame.step for frame in frames if frame.is_cut] == [0, 9]


def test_rotations_are_mixed_on_the_shorter_arc() -> None:
    half = np.sqrt(0.5)
    pos, _ = pendulum_pose()
    first = Snapshot(0.0, 0, 0, [(pos, np.tile([0.0, 0.0, 0.0, 1.0], (3, 1)))])
    second = Snapshot(1.0, 0, 1, [(pos, np.tile([-0.0, -0.0, -half, -half], (3, 1)))])  # 90 degrees about z, negated
    middle = between(first, second, 0.5).poses[0][1]
    np.testing.assert_allclose(middle, np.tile([0, 0, np.sin(np.pi / 8), np.cos(np.pi / 8)], (3, 1)), atol=1e-9)


@pytest.mark.parametrize("clock", [FrameClock(1 / 30, 30.0), FrameClock(1 / 30, 12.5), FrameClock(1 / 60, 30.0, 0.2)])
def test_the_count_of_states_and_of_frames_agree(clock: FrameClock) -> None:
    for frames in range(1, 50):
        states = clock.states_of(frames)
        assert clock.count(states) >= frames
        assert states == 0 or clock.count(states - 1) < frames
