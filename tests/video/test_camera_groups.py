"""Several subjects in one picture."""

import math

import numpy as np
import pytest

from mimickit.video.camera.camera_rig import CameraPose, CameraRig
from mimickit.video.config import VideoConfig
from tests.video.camera_checks import ASPECT, PLACE, SIZE, ends_of, follow, on_picture, rotation

FOLLOWING = ("track", "orbit", "side", "front", "top", "chase")


def assert_seen(camera: CameraPose, subjects: np.ndarray, aspect: float = ASPECT) -> None:
    assert np.abs(on_picture(camera, ends_of(subjects), aspect)).max() < 1.0


def distance(camera: CameraPose) -> float:
    return float(np.linalg.norm(camera.eye - camera.target))


@pytest.mark.parametrize("mode", FOLLOWING)
@pytest.mark.parametrize("seed", range(12))
def test_all_are_in_view_wherever_they_stand(mode: str, seed: int) -> None:
    """At the first frame and settled, in a picture of any shape; an orbit all the way round."""
    rng = np.random.default_rng(seed)
    subjects = PLACE + rng.uniform(-1.0, 1.0, (int(rng.integers(2, 7)), 3)) * rng.uniform(1.0, 19.0)
    subjects[:, 2] = rng.uniform(0.5, 2.0, len(subjects))
    aspect = math.exp(rng.uniform(-1.2, 1.2))
    config = VideoConfig(camera=mode, fov=rng.uniform(10.0, 110.0), orbit_speed=180.0)
    rot = rotation("z", rng.uniform(-180.0, 180.0))
    path = np.tile(subjects[0], (60, 1))
    for camera in follow(CameraRig(config, aspect=aspect), path, rot=rot, subjects=subjects):
        assert_seen(camera, subjects, aspect)


@pytest.mark.parametrize("mode", FOLLOWING)
def test_a_group_is_filmed_from_as_near_as_may_be(mode: str) -> None:
    """One alone and several in one place are filmed alike; apart, somebody is near the edge of the picture."""
    (alone,) = follow(CameraRig(VideoConfig(camera=mode)), PLACE[None])
    (same,) = follow(CameraRig(VideoConfig(camera=mode)), PLACE[None], subjects=np.tile(PLACE, (3, 1)))
    assert same.eye == pytest.approx(alone.eye)
    apart = PLACE + np.array([[0, 0, 0], [9, 0, 0], [0, -9, 0], [9, -9, 0]])
    (camera,) = follow(CameraRig(VideoConfig(camera=mode)), PLACE[None], subjects=apart)
    assert camera.target[:2] == pytest.approx([4.5, -4.5])
    assert np.abs(on_picture(camera, apart)).max() > (0.6 if mode in ("orbit", "chase") else 0.75)


@pytest.mark.parametrize("mode", FOLLOWING)
def test_two_that_part_are_kept_in_view_and_the_camera_backs_off_softly(mode: str) -> None:
    """One stands, the other runs away at 6 m/s from standing, then stops: roots in view all the time."""
    t = np.arange(150) / 30
    run = np.clip(t - 1.0, 0.0, 2.0)[:, None] * 6.0 * np.array([0.8, 0.6, 0.0])
    subjects = np.stack([np.tile(PLACE, (150, 1)), PLACE + np.array([1.0, 1.0, 0.0]) + run], axis=1)
    cameras = follow(CameraRig(VideoConfig(camera=mode)), subjects[:, 0], subjects=subjects)
    for camera, pair in zip(cameras, subjects, strict=True):
        assert np.abs(on_picture(camera, pair)).max() < 1.0
    assert_seen(cameras[29], subjects[29])
    assert_seen(cameras[-1], subjects[-1])
    change = np.diff([distance(camera) for camera in cameras]) * 30
    assert np.abs(change).max() < 25.0  # m/s
    assert np.abs(np.diff(change)).max() < 4.0  # m/s in a frame
    assert change[-10:] == pytest.approx(0.0, abs=0.2)


def test_a_group_that_walks_together_has_no_lag() -> None:
    walk = np.arange(60)[:, None, None] * np.array([0.05, 0.02, 0.0])
    subjects = walk + PLACE + np.array([[0.0, 0.0, 0.0], [2.0, 3.0, 0.0]])
    cameras = follow(CameraRig(VideoConfig()), subjects[:, 0], subjects=subjects)
    for camera, pair in zip(cameras, subjects, strict=True):
        assert camera.target[:2] == pytest.approx(pair.mean(axis=0)[:2], abs=1e-9)
        assert distance(camera) == pytest.approx(distance(cameras[0]), abs=1e-9)


def test_one_that_is_very_far_away_is_let_go_and_taken_back() -> None:
    """It goes 70 m away and returns, at 30 m/s (in frames of 1/30 s no jump): two cuts, at 60 and at 50 m."""
    x = np.concatenate((np.arange(71), np.arange(71)[::-1])).astype(float)
    other = PLACE + x[:, None] * np.array([1.0, 0.0, 0.0])
    subjects = np.stack([np.tile(PLACE, (len(x), 1)), other], axis=1)
    cameras = follow(CameraRig(VideoConfig(camera="side")), subjects[:, 0], subjects=subjects)
    (alone,) = follow(CameraRig(VideoConfig(camera="side")), PLACE[None])
    with_other = [bool(camera.target[0] > 1.0) for camera in cameras]
    assert [i for i in range(5, len(x) - 5) if with_other[i] != with_other[i - 1]] == [61, 71 + 20]
    for i in range(61, 91):
        assert cameras[i].eye == pytest.approx(alone.eye)
    (fresh,) = follow(CameraRig(VideoConfig(camera="side")), PLACE[None], subjects=subjects[91])
    assert cameras[91].eye == pytest.approx(fresh.eye)
    assert_seen(cameras[-1], subjects[-1])


@pytest.mark.parametrize("mode", FOLLOWING)
@pytest.mark.parametrize("who", [0, 1])
def test_one_that_is_moved_is_taken_in_softly(mode: str, who: int) -> None:
    """Its episode ended, that of the other did not: no cut, no jump, and soon both are in view."""
    subjects = np.tile(PLACE + np.array([[0.0, 0.0, 0.0], [2.0, 1.0, 0.0]]), (150, 1, 1))
    subjects[10:, who] += np.array([8.0, 5.0, 0.0])
    cameras = follow(CameraRig(VideoConfig(camera=mode, orbit_speed=0.0)), subjects[:, 0], subjects=subjects)
    assert_seen(cameras[9], subjects[9])
    for points in ([c.eye for c in cameras], [c.target for c in cameras]):
        speed = np.linalg.norm(np.diff(points, axis=0), axis=-1) * 30
        assert speed.max() < 40.0  # m/s
        assert np.abs(np.diff(speed)).max() < 20.0  # m/s in a frame
    assert_seen(cameras[55], subjects[55])
    (fresh,) = follow(CameraRig(VideoConfig(camera=mode)), subjects[-1, :1], subjects=subjects[-1])
    assert cameras[-1].eye == pytest.approx(fresh.eye, abs=0.05)


def test_most_of_them_moved_is_a_cut() -> None:
    subjects = np.tile(PLACE + np.array([[0.0, 0.0, 0.0], [2.0, 1.0, 0.0], [0.0, 4.0, 0.0]]), (20, 1, 1))
    subjects[10:, 1:, 0] += 8.0
    cameras = follow(CameraRig(VideoConfig(camera="front")), subjects[:, 0], subjects=subjects)
    (fresh,) = follow(CameraRig(VideoConfig(camera="front")), PLACE[None], subjects=subjects[10])
    assert cameras[10].eye == pytest.approx(fresh.eye)
    assert_seen(cameras[10], subjects[10])


@pytest.mark.parametrize("mode", FOLLOWING)
def test_a_configured_position_is_a_direction_and_the_least_distance(mode: str) -> None:
    config = VideoConfig(camera=mode, position=(2.0, -2.0, 2.5), target=(0.0, 0.0, 0.5))
    near, far = PLACE + np.array([[0.0, 0, 0], [0.1, 0, 0]]), PLACE + np.array([[0.0, 0, 0], [0.0, 12.0, 0]])
    (camera,) = follow(CameraRig(config), PLACE[None], subjects=far)
    assert_seen(camera, far)
    arm = camera.eye - camera.target
    (close,) = follow(CameraRig(config), PLACE[None], subjects=near)
    assert arm / np.linalg.norm(arm) == pytest.approx((close.eye - close.target) / distance(close), abs=1e-9)
    assert math.sqrt(12.0) <= distance(close) + 1e-9 < distance(camera)


@pytest.mark.parametrize("mode", FOLLOWING)
@pytest.mark.parametrize("height", [0.52 * SIZE.height, 6.0])
def test_a_group_is_seen_from_a_position_in_its_target_and_from_one_straight_above(mode: str, height: float) -> None:
    config = VideoConfig(camera=mode, position=(0.0, 0.0, height))
    for far in (np.array([0.0, 12.0, 0.0]), np.array([12.0, 0.0, 0.0])):
        subjects = np.array([PLACE, PLACE + far])
        (camera,) = follow(CameraRig(config, aspect=0.6), PLACE[None], subjects=subjects)
        assert_seen(camera, subjects, 0.6)


def test_still_sees_the_group_as_it_stands_at_first() -> None:
    subjects = PLACE + np.array([[0.0, 0.0, 0.0], [6.0, 5.0, 0.0], [-3.0, 2.0, 0.0]])
    walk = np.arange(10)[:, None, None] * 0.1 + subjects
    first, *_, last = follow(CameraRig(VideoConfig(camera="still")), walk[:, 0], subjects=walk)
    assert_seen(first, subjects)
    assert first.eye.tolist() == last.eye.tolist()
