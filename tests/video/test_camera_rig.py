"""Cameras, on numbers alone."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimickit.util.keys import ConfigError
from mimickit.video.camera_rig import CameraPose, CameraRig, FollowSpring, Shot, SubjectSize, make_camera
from mimickit.video.config import VideoConfig
from mimickit.video.stage import camera_axes

SIZE = SubjectSize(height=1.6, root_height=0.88)
UPRIGHT = np.array([0.0, 0.0, 0.0, 1.0])
PLACE = np.array([0.0, 0.0, 0.88])


def follow(rig: CameraRig, path: np.ndarray, dt: float = 1 / 30, *, cut: int = 0) -> list[CameraPose]:
    return [rig.pose(time=i * dt, root_pos=p, root_rot=UPRIGHT, size=SIZE, is_cut=i == cut) for i, p in enumerate(path)]


def on_picture(camera: CameraPose, point: np.ndarray, aspect: float = 854 / 480) -> np.ndarray:
    """(2,) where a point is seen, -1 to 1 across and up; the depth must be positive."""
    forward, up = camera_axes(camera)
    ray = point - camera.eye
    depth = float(ray @ forward)
    assert depth > 0.0
    half = math.tan(math.radians(camera.fov) / 2.0) * depth
    return np.array([ray @ np.cross(forward, up) / (half * aspect), ray @ up / half])


def mine(shot: Shot) -> CameraPose:
    """A user's camera: from above the subject, straight down."""
    return CameraPose(shot.root_pos + np.array([0.0, 0.0, 5.0]), shot.root_pos, 60.0, np.array([0.0, 0.0, 1.0]))


class Counting:
    """A user's camera that remembers."""

    def __init__(self) -> None:
        self.frames = 0

    def __call__(self, shot: Shot) -> CameraPose:
        self.frames += 1
        return CameraPose(np.array([5.0, 0.0, float(self.frames)]), np.zeros(3), 45.0, np.array([0.0, 0.0, 1.0]))


def broken(shot: Shot) -> CameraPose:
    return CameraPose(np.array([np.nan, 0.0, 0.0]), np.zeros(3), 45.0, np.array([0.0, 0.0, 1.0]))


def test_a_standing_subject_fills_half_the_picture() -> None:
    (camera,) = follow(CameraRig(VideoConfig()), PLACE[None])
    feet, top = on_picture(camera, np.zeros(3)), on_picture(camera, np.array([0.0, 0.0, 1.6]))
    assert 0.42 <= (top[1] - feet[1]) / 2.0 <= 0.62
    assert abs(feet[0]) < 1e-9
    assert max(abs(feet[1]), abs(top[1])) < 0.75


@pytest.mark.parametrize("fov", [20.0, 45.0, 90.0])
@pytest.mark.parametrize("height", [0.3, 1.6, 6.0])
def test_the_distance_fits_field_of_view_and_size(fov: float, height: float) -> None:
    rig = CameraRig(VideoConfig(fov=fov))
    size = SubjectSize(height, 0.55 * height)
    camera = rig.pose(
        time=0.0, root_pos=np.array([0.0, 0.0, size.root_height]), root_rot=UPRIGHT, size=size, is_cut=True
    )
    top = on_picture(camera, np.array([0.0, 0.0, height]))[1]
    bottom = on_picture(camera, np.zeros(3))[1]
    assert 0.4 <= (top - bottom) / 2.0 <= 0.75


@pytest.mark.parametrize("place", [(0.0, 0.0), (50.0, -30.0), (-400.0, 900.0)])
@pytest.mark.parametrize("mode", ["track", "orbit", "still"])
def test_the_subject_is_framed_wherever_it_begins(mode: str, place: tuple[float, float]) -> None:
    root = np.array([*place, 0.88])
    (camera,) = follow(CameraRig(VideoConfig(camera=mode)), root[None])
    assert np.abs(on_picture(camera, root)).max() < 0.2


def test_track_has_no_lag_behind_a_steady_walk() -> None:
    path = PLACE + np.arange(90)[:, None] * np.array([3.0 / 30, 0.0, 0.0])
    cameras = follow(CameraRig(VideoConfig()), path)
    for camera, root in zip(cameras[1:], path[1:], strict=True):
        assert camera.target[0] == pytest.approx(root[0], abs=1e-9)


def test_track_swings_softly_into_a_run() -> None:
    """From standing to 5 m/s in one frame: the camera's speed never jumps, and catches up within a second."""
    path = np.concatenate((np.tile(PLACE, (30, 1)), PLACE + np.arange(1, 61)[:, None] * np.array([5.0 / 30, 0, 0])))
    x = np.array([camera.target[0] for camera in follow(CameraRig(VideoConfig()), path)])
    acceleration = np.diff(x, n=2) * 900
    assert np.abs(acceleration).max() < 0.6 * 5.0 * 30  # the subject's own is 150 m/s^2
    assert np.abs(x - path[:, 0]).max() < 0.5
    assert abs(x[65] - path[65, 0]) < 0.02


def test_track_does_not_depend_on_the_frame_rate() -> None:
    """The same straight-lined motion seen at 30 and at 120 frames a second: the same camera at the same times."""
    corners = PLACE + np.cumsum(np.random.default_rng(3).normal(0.0, 0.05, (40, 3)), axis=0)
    fine = np.concatenate([np.linspace(a, b, 5)[:-1] for a, b in zip(corners[:-1], corners[1:], strict=True)])
    slow = follow(CameraRig(VideoConfig()), corners[:-1])
    fast = follow(CameraRig(VideoConfig()), fine, 1 / 120)[::4]
    # the goal's height is bent where it leaves the calm band; these corners stay inside
    assert np.allclose([c.eye for c in slow], [c.eye for c in fast], atol=1e-9)


def test_a_teleport_is_a_cut() -> None:
    path = np.tile(PLACE, (20, 1))
    path[10:] += np.array([5.0, 0.0, 0.0])
    cameras = follow(CameraRig(VideoConfig()), path)
    assert cameras[9].target[0] == pytest.approx(0.0)
    assert cameras[10].target[0] == pytest.approx(5.0)


def test_an_episode_begins_with_a_cut() -> None:
    path = np.tile(PLACE, (20, 1))
    path[10:] += np.array([0.5, 0.0, 0.0])
    assert follow(CameraRig(VideoConfig()), path, cut=10)[10].target[0] == pytest.approx(0.5)
    assert follow(CameraRig(VideoConfig()), path)[10].target[0] < 0.4


def test_up_and_down_is_followed_by_half() -> None:
    jump = PLACE + np.array([0.0, 0.0, 0.6])
    camera = follow(CameraRig(VideoConfig()), np.concatenate((PLACE[None], np.tile(jump, (200, 1)))))[-1]
    still = follow(CameraRig(VideoConfig()), PLACE[None])[0]
    assert camera.target[2] - still.target[2] == pytest.approx(0.3, abs=1e-3)


def test_still_stands_where_it_is_put() -> None:
    config = VideoConfig(camera="still", position=(4.0, 0.0, 2.0), target=(0.0, 0.0, 1.0))
    path = PLACE + np.arange(50)[:, None] * np.array([1.0, -0.6, 0.0])
    for camera in follow(CameraRig(config), path):
        assert camera.eye.tolist() == [4.0, 0.0, 2.0]
        assert camera.target.tolist() == [0.0, 0.0, 1.0]


def test_orbit_turns_by_its_speed() -> None:
    config = VideoConfig(camera="orbit", orbit_speed=90.0)
    cameras = follow(CameraRig(config), np.tile(PLACE, (61, 1)))
    arms = [(c.eye - c.target)[:2] for c in cameras]
    assert np.allclose([np.linalg.norm(arm) for arm in arms], np.linalg.norm(arms[0]))
    assert np.allclose(arms[30], [-arms[0][1], arms[0][0]])  # a quarter turn to the left after one second
    assert np.allclose(arms[60], -arms[0])


def test_position_and_target_are_seen_from_the_subject() -> None:
    config = VideoConfig(position=(0.0, -3.0, 1.0), target=(0.0, 0.0, 0.5))
    (camera,) = follow(CameraRig(config), np.array([[7.0, 2.0, 0.88]]))
    assert camera.eye.tolist() == [7.0, -1.0, 1.0]
    assert camera.target.tolist() == [7.0, 2.0, 0.5]


def test_a_user_function_films_and_straight_down_has_an_up() -> None:
    (camera,) = follow(CameraRig(VideoConfig(camera=f"{__name__}:mine")), PLACE[None])
    forward, up = camera_axes(camera)
    assert np.allclose(forward, [0.0, 0.0, -1.0])
    assert np.isfinite(up).all()
    assert np.linalg.norm(up) == pytest.approx(1.0)


def test_a_user_class_is_made_anew_for_every_clip() -> None:
    config = VideoConfig(camera=f"{__name__}:Counting")
    for _ in range(2):
        assert follow(CameraRig(config), np.tile(PLACE, (3, 1)))[-1].eye[2] == 3.0


def test_a_camera_that_gives_no_numbers_is_named() -> None:
    with pytest.raises(ValueError, match=r"broken.*finite"):
        follow(CameraRig(VideoConfig(camera=f"{__name__}:broken")), PLACE[None])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("trak", ["trak", "did you mean 'track'"]),
        ("no_such_package:camera", ["no_such_package"]),
        (f"{__name__}:absent", ["absent"]),
        (f"{__name__}:PLACE", ["expected a function", "ndarray"]),
    ],
)
def test_an_unknown_camera_is_refused(name: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        make_camera(name)
    assert all(word in str(error.value) for word in words), error.value


@given(
    steps=st.lists(st.tuples(*[st.floats(-0.3, 0.3)] * 3), min_size=2, max_size=60),
    start=st.tuples(st.floats(-100, 100), st.floats(-100, 100), st.floats(0.0, 1.5)),
    rate=st.sampled_from([10.0, 30.0, 60.0, 120.0]),
    mode=st.sampled_from(["track", "orbit"]),
)
@settings(max_examples=150, deadline=None)
def test_any_motion_is_kept_in_view(
    steps: list[tuple[float, float, float]], start: tuple[float, float, float], rate: float, mode: str
) -> None:
    """Up to 9 m/s at 30 frames a second, in any direction above the ground."""
    scale = 30.0 / rate
    path = np.array(start) + np.cumsum(np.array(steps) * scale, axis=0)
    path[:, 2] = np.clip(path[:, 2], 0.05, 2.0)
    for camera, root in zip(follow(CameraRig(VideoConfig(camera=mode)), path, 1.0 / rate), path, strict=True):
        assert np.isfinite([camera.eye, camera.target, camera.up]).all()
        assert camera.eye[2] >= 0.05
        across, up = on_picture(camera, root)
        assert abs(across) < 1.0
        assert abs(up) < 1.0


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
