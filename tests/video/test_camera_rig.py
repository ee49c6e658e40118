"""Cameras, on numbers alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimickit.util.keys import ConfigError
from mimickit.video.camera.camera_rig import CAMERA_MODES, CameraPose, CameraRig, Shot, SubjectSize, make_camera
from mimickit.video.config import VideoConfig
from mimickit.video.stage.stage import camera_axes
from tests.video.camera_checks import PLACE, SIZE, UPRIGHT, follow, on_picture


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


def wordy(shot: Shot) -> CameraPose:
    return replace(broken(shot), eye="there")


def flat(shot: Shot) -> CameraPose:
    return CameraPose(shot.root_pos[:2], np.zeros(3), 45.0)


def blind(shot: Shot) -> CameraPose:
    return replace(mine(shot), fov=float("nan"))


def mute(shot: Shot) -> None:
    return None


def no_arguments() -> CameraPose:
    raise AssertionError("is not called")


def too_many(shot: Shot, time: float) -> CameraPose:
    raise AssertionError("is not called")


def named_only(*, shot: Shot) -> CameraPose:
    raise AssertionError("is not called")


class NeedsMore:
    def __init__(self, speed: float) -> None:
        raise AssertionError("is not made")


class Uncallable:
    pass


def late(shot: Shot) -> CameraPose:
    return mine(shot) + 1  # type: ignore[operator]


SEEN: list[Shot] = []


def looks_around(shot: Shot, *, height: float = 5.0) -> CameraPose:
    SEEN.append(shot)
    return CameraPose(shot.root_pos + np.array([1.0, 0.0, height]), shot.root_pos, 60.0)


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
@pytest.mark.parametrize("mode", ["track", "orbit", "still", "side", "front", "top", "chase"])
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
    path[10:] += np.array([50.0, 0.0, 0.0])
    for mode in ("track", "orbit", "side", "front", "top", "chase"):
        cameras = follow(CameraRig(VideoConfig(camera=mode)), path)
        assert cameras[9].target[0] == pytest.approx(0.0)
        assert cameras[10].target[0] == pytest.approx(50.0)
        assert np.linalg.norm(cameras[10].eye - cameras[10].target) < 6.0


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


def test_a_configured_position_is_kept_whatever_the_subject_does() -> None:
    config = VideoConfig(position=(0.0, -3.0, 1.0), target=(0.0, 0.0, 0.5))
    dash = PLACE + np.maximum(np.arange(30) - 10, 0)[:, None] * np.array([1.4, 0.0, 0.0])
    cameras = follow(CameraRig(config, aspect=0.3), dash)
    assert np.allclose([camera.eye - camera.target for camera in cameras], [0.0, -3.0, 0.5])
    assert max(np.abs(on_picture(c, root, 0.3)).max() for c, root in zip(cameras, dash, strict=True)) > 1.0


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


@pytest.mark.parametrize("name", ["broken", "wordy", "flat", "blind"])
def test_a_camera_that_gives_no_numbers_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name}.*finite.*field of view.*found CameraPose"):
        follow(CameraRig(VideoConfig(camera=f"{__name__}:{name}")), PLACE[None])


def test_a_camera_that_gives_no_pose_is_named() -> None:
    with pytest.raises(ValueError, match=r"mute.*expected a CameraPose, found NoneType"):
        follow(CameraRig(VideoConfig(camera=f"{__name__}:mute")), PLACE[None])


def test_what_a_users_camera_gets_wrong_inside_is_its_own_error() -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        follow(CameraRig(VideoConfig(camera=f"{__name__}:late")), PLACE[None])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_arguments", ["expected a function of one argument, a Shot", "found no_arguments()"]),
        ("too_many", ["expected a function of one argument, a Shot", "too_many(shot", "'time'"]),
        ("named_only", ["expected a function of one argument, a Shot", "named_only(*, shot"]),
        ("NeedsMore", ["expected a class that is made without arguments", "NeedsMore(speed", "'speed'"]),
        ("Uncallable", ["expected a function of a Shot", "found Uncallable"]),
    ],
)
def test_a_camera_of_the_wrong_signature_is_refused_before_it_films(name: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        make_camera(f"{__name__}:{name}")
    assert all(word in str(error.value) for word in [f"{__name__}:{name}", *words]), error.value


def test_a_users_camera_is_told_of_everything() -> None:
    SEEN.clear()
    rig = CameraRig(VideoConfig(camera="track"), f"{__name__}:looks_around", aspect=0.5)
    head, others = (PLACE + 0.7, UPRIGHT), np.array([PLACE, PLACE + 3.0])
    rig.pose(time=0.0, root_pos=PLACE, root_rot=UPRIGHT, size=SIZE, is_cut=True)
    rig.pose(
        time=0.1, root_pos=PLACE, root_rot=UPRIGHT, size=SIZE, is_cut=False,
        bodies={"head": head}, subjects=others, aspect=2.0,
    )  # fmt: skip
    first, second = SEEN
    assert (first.time, first.dt, first.is_cut, first.is_start) == (0.0, 0.0, True, True)
    assert first.subjects.tolist() == [PLACE.tolist()]
    assert first.bodies == {}
    assert first.aspect == 0.5
    assert second.is_cut  # somebody came in
    assert not second.is_start
    assert second.subjects.tolist() == others.tolist()
    assert second.bodies == {"head": head}
    assert second.aspect == 2.0


@pytest.mark.parametrize("subjects", [np.zeros((0, 3)), np.zeros(3), np.zeros((2, 2))])
def test_subjects_of_the_wrong_shape_are_refused(subjects: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"subjects: expected \(S, 3\)"):
        CameraRig(VideoConfig()).pose(
            time=0.0, root_pos=PLACE, root_rot=UPRIGHT, size=SIZE, is_cut=True, subjects=subjects
        )


def test_a_view_has_a_camera_of_its_own() -> None:
    config = VideoConfig(camera="orbit")
    (camera,) = follow(CameraRig(config, "top"), PLACE[None])
    assert np.allclose(camera_axes(camera)[0], [0.0, 0.0, -1.0])
    (camera,) = follow(CameraRig(config), PLACE[None])
    assert not np.allclose(camera_axes(camera)[0], [0.0, 0.0, -1.0])


def test_a_clip_that_begins_anew_is_a_cut() -> None:
    rig = CameraRig(VideoConfig())
    start = np.maximum(np.arange(30) - 25, 0)[:, None] * np.array([0.2, 0.0, 0.0])
    assert abs(follow(rig, PLACE + start)[-1].target[0] - start[-1, 0]) > 0.1  # it lags behind
    (camera,) = follow(rig, PLACE[None], cut=-1)  # its time is 0 again
    assert camera.target[0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("mode", sorted(set(CAMERA_MODES) - {"dolly"}))
def test_an_eye_in_its_target_and_under_ground_still_films(mode: str) -> None:
    for position, target in (((0.0, 0.0, 0.0), None), ((0.0, 0.0, 0.52 * 1.6), None), ((1.0, 0.0, -3.0), (0, 0, 0.5))):
        (camera,) = follow(CameraRig(VideoConfig(camera=mode, position=position, target=target)), PLACE[None])
        forward, up = camera_axes(camera)
        assert np.isfinite([forward, up]).all()
        assert np.linalg.norm(up) == pytest.approx(1.0)
        assert camera.eye[2] >= 0.05


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
    mode=st.sampled_from(["track", "orbit", "side", "front", "top", "chase"]),
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
