"""What each camera mode shows of one subject, on numbers."""

import math

import numpy as np
import pytest

from mimickit.util.keys import ConfigError
from mimickit.video.camera.camera_rig import CameraPose, CameraRig
from mimickit.video.config import VideoConfig
from mimickit.video.stage.stage import camera_axes
from tests.video.camera_checks import PLACE, SIZE, UPRIGHT, ends_of, follow, on_picture, rotation, times

FOLLOWING = ("track", "orbit", "side", "front", "top", "chase")
WALK = PLACE + np.arange(60)[:, None] * np.array([1.2 / 30, 0.0, 0.0])


def rig(mode: str, **config: object) -> CameraRig:
    return CameraRig(VideoConfig(camera=mode, **config))


def ahead(angle: float) -> np.ndarray:
    """(3,) the direction of a heading in degrees."""
    return np.array([math.cos(math.radians(angle)), math.sin(math.radians(angle)), 0.0])


def arm(camera: CameraPose) -> np.ndarray:
    """(3,) the direction from the target to the eye, on the ground."""
    flat = (camera.eye - camera.target) * (1.0, 1.0, 0.0)
    return flat / np.linalg.norm(flat)


@pytest.mark.parametrize("angle", [0.0, 90.0, -135.0, 180.0])
def test_side_sees_a_walk_cross_the_picture_from_left_to_right(angle: float) -> None:
    walk = PLACE + np.arange(60)[:, None] * ahead(angle) * 0.04
    cameras = follow(rig("side"), walk, rot=rotation("z", angle))
    for camera in cameras:
        forward, up = camera_axes(camera)
        assert np.cross(forward, up) == pytest.approx(ahead(angle), abs=1e-9)
        assert abs(on_picture(camera, camera.target)).max() < 1e-9
    assert np.allclose([c.target[:2] for c in cameras], walk[:, :2], atol=1e-9)  # no lag
    standing = on_picture(cameras[0], walk[-1])
    assert standing[0] > 0.2  # where it walks to is on the right


@pytest.mark.parametrize("angle", [0.0, 90.0, -135.0, 180.0])
def test_front_faces_the_subject(angle: float) -> None:
    for camera in follow(rig("front"), WALK, rot=rotation("z", angle)):
        assert arm(camera) == pytest.approx(ahead(angle), abs=1e-9)


@pytest.mark.parametrize("mode", ["side", "front"])
def test_the_direction_stays_until_an_episode_begins(mode: str) -> None:
    turning = np.array([rotation("z", 6.0 * i) for i in range(30)])
    path = np.tile(PLACE, (30, 1))
    path[10:, 0] += 4.0  # moved, but it is the same episode
    cameras = follow(rig(mode), path, rot=turning)
    assert np.allclose([arm(c) for c in cameras], arm(cameras[0]))
    begun = follow(rig(mode), path, rot=turning, cut=15)
    assert arm(begun[14]) == pytest.approx(arm(cameras[0]))
    turn = math.radians(90.0)
    x, y, _ = arm(cameras[0])
    assert arm(begun[15])[:2] == pytest.approx(
        [x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)]
    )


def test_top_is_a_map() -> None:
    for place in (PLACE, PLACE + np.array([50.0, -30.0, 0.0])):
        (camera,) = follow(rig("top"), place[None], rot=rotation("z", 77.0))
        forward, up = camera_axes(camera)
        assert forward == pytest.approx([0.0, 0.0, -1.0])
        assert up == pytest.approx([0.0, 1.0, 0.0])
        assert on_picture(camera, place + np.array([1.0, 0.0, 0.0]))[0] > 0.1
        assert on_picture(camera, place + np.array([0.0, 1.0, 0.0]))[1] > 0.1


@pytest.mark.parametrize("fov", [1.0, 45.0, 90.0, 170.0])
def test_top_stays_above_a_jumping_head(fov: float) -> None:
    jump = PLACE + np.sin(np.linspace(0.0, math.pi, 24))[:, None] * np.array([0.0, 0.0, 1.2])
    for camera, root in zip(follow(rig("top", fov=fov), jump), jump, strict=True):
        assert camera.eye[2] > root[2] + SIZE.height - SIZE.root_height
        assert camera_axes(camera)[0] == pytest.approx([0.0, 0.0, -1.0])


@pytest.mark.parametrize("angle", [0.0, 120.0])
def test_chase_is_behind_from_the_first_frame_on(angle: float) -> None:
    for camera in follow(rig("chase"), WALK, rot=rotation("z", angle)):
        assert arm(camera) == pytest.approx(-ahead(angle), abs=1e-9)
        assert camera.eye[2] > camera.target[2]


def swing(cameras: list[CameraPose]) -> np.ndarray:
    """(F,) the direction of the eye around its target, radians."""
    return np.unwrap([math.atan2(*arm(camera)[1::-1]) for camera in cameras])


def test_chase_comes_around_softly() -> None:
    turned = np.concatenate((np.tile(UPRIGHT, (10, 1)), np.tile(rotation("z", 180.0), (140, 1))))
    angles = swing(follow(rig("chase"), np.tile(PLACE, (150, 1)), rot=turned))
    speed = np.diff(angles) * 30
    assert np.abs(speed).max() < 3.0  # rad/s
    assert np.abs(np.diff(speed)).max() < 18.0 / 30 + 1e-9  # rad/s^2 in a frame
    assert abs(angles[40] - angles[0]) < 3.0
    assert abs(angles[-1] - angles[0]) == pytest.approx(math.pi, abs=1e-3)


def test_chase_is_no_further_behind_in_a_bend_than_can_be_seen() -> None:
    """A walk in a circle, 45 degrees a second: the back is in view all the time."""
    bend = np.array([rotation("z", 1.5 * i) for i in range(240)])
    cameras = follow(rig("chase"), np.tile(PLACE, (240, 1)), rot=bend)
    for i, camera in enumerate(cameras):
        assert arm(camera) @ -ahead(1.5 * i) > math.cos(math.radians(35.0))


def test_chase_does_not_swing_in_a_somersault() -> None:
    """Forwards or backwards, with a tremble that makes every heading of an upside-down body: it stays behind."""
    rng = np.random.default_rng(5)
    for direction in (1.0, -1.0):
        flip = [times(rotation("x", rng.normal(0.0, 3.0)), rotation("y", direction * 12.0 * i)) for i in range(31)] + [
            UPRIGHT
        ] * 30
        angles = swing(follow(rig("chase"), np.tile(PLACE, (61, 1)), rot=np.array(flip)))
        assert np.abs(angles - angles[0]).max() < math.radians(20.0)


@pytest.mark.parametrize(
    ("rot", "angle"),
    [
        (rotation("y", 90.0), 0.0),  # face down
        (rotation("y", -90.0), 0.0),  # on its back
        (rotation("x", 90.0), 0.0),  # on its side
        (times(rotation("z", 90.0), rotation("y", 90.0)), 90.0),
        (times(rotation("z", 90.0), rotation("x", 180.0)), 90.0),  # upside down: where its x axis points
        (np.zeros(4), 0.0),
    ],
)
@pytest.mark.parametrize("mode", ["chase", "front", "side"])
def test_a_lying_or_hanging_subject_has_a_heading(mode: str, rot: np.ndarray, angle: float) -> None:
    (upright,) = follow(rig(mode), PLACE[None], rot=rotation("z", angle))
    (camera,) = follow(rig(mode), PLACE[None], rot=rot)
    assert arm(camera) == pytest.approx(arm(upright), abs=1e-6)


def test_positions_of_heading_cameras_are_seen_with_the_subjects_eyes() -> None:
    for mode in ("side", "front", "chase"):
        config = {"position": (-3.0, 0.5, 1.0), "target": (1.0, 0.0, 0.5)}
        (camera,) = follow(rig(mode, **config), np.array([[7.0, 2.0, 0.88]]), rot=rotation("z", 90.0))
        assert camera.eye == pytest.approx([6.5, -1.0, 1.0])
        assert camera.target == pytest.approx([7.0, 3.0, 0.5])


def test_still_with_a_target_alone_sees_it() -> None:
    config = VideoConfig(camera="still", target=(3.0, 1.0, 0.5))
    (camera,) = follow(CameraRig(config), PLACE[None] + 9.0)
    assert camera.target == pytest.approx([3.0, 1.0, 0.5])
    assert 2.0 < np.linalg.norm(camera.eye - camera.target) < 6.0


# ---------------------------------------------------------------------- first person

HEAD = PLACE + np.array([0.0, 0.0, 0.46])


def looking(bodies: dict[str, tuple[np.ndarray, np.ndarray]] | None, **config: object) -> CameraPose:
    (camera,) = follow(rig("first_person", **config), PLACE[None], bodies=bodies)
    return camera


def test_first_person_sees_what_the_head_sees() -> None:
    camera = looking({"pelvis": (PLACE, UPRIGHT), "head": (HEAD, rotation("z", 90.0))}, fov=77.0)
    forward, up = camera_axes(camera)
    assert forward == pytest.approx([0.0, 1.0, 0.0], abs=1e-9)
    assert up == pytest.approx([0.0, 0.0, 1.0], abs=1e-9)
    assert camera.fov == 77.0
    assert camera.eye[1] - HEAD[1] > 0.1025  # before the shipped head's sphere
    assert abs(camera.eye[0] - HEAD[0]) < 1e-9


def test_first_person_leans_with_the_head() -> None:
    tilted = times(rotation("z", 30.0), rotation("x", 40.0))
    forward, up = camera_axes(looking({"head": (HEAD, tilted)}))
    assert forward == pytest.approx(ahead(30.0), abs=1e-9)
    assert up[2] == pytest.approx(math.cos(math.radians(40.0)))
    forward, up = camera_axes(looking({"head": (HEAD, rotation("y", 90.0))}))  # straight down
    assert forward == pytest.approx([0.0, 0.0, -1.0], abs=1e-9)
    assert up == pytest.approx([1.0, 0.0, 0.0], abs=1e-9)


@pytest.mark.parametrize(
    ("names", "body", "expected"),
    [
        (["pelvis", "forehead", "head"], None, "head"),
        (["pelvis", "Head"], None, "Head"),
        (["pelvis", "torso", "head_link", "hand"], None, "head_link"),
        (["base", "leg"], None, "base"),
        (["pelvis", "head", "hand"], "hand", "hand"),
    ],
)
def test_first_person_looks_through_a_bodys_eyes(names: list[str], body: str | None, expected: str) -> None:
    bodies = {name: (np.array([float(i), 0.0, 2.0]), UPRIGHT) for i, name in enumerate(names)}
    camera = looking(bodies, body=body, position=(0.0, 0.0, 0.0))
    assert camera.eye == pytest.approx([names.index(expected), 0.0, 2.0])


def test_first_person_without_bodies_looks_from_the_root() -> None:
    assert np.linalg.norm(looking(None).eye - PLACE) < 0.4
    with pytest.raises(ConfigError, match=r"body: found 'hed'; did you mean 'head'"):
        looking({"head": (HEAD, UPRIGHT)}, body="hed")
    with pytest.raises(ConfigError, match=r"body: found 'head'; the names of the subject's bodies are not known"):
        looking(None, body="head")


def test_first_person_is_calm_but_does_not_leave_the_head() -> None:
    """A head trembles by 5 degrees at 7.5 Hz on a body that walks: the look hardly does, the eye stays before it."""
    rots = [rotation("y", 5.0 * math.sin(0.5 * math.pi * i)) for i in range(90)]
    camera_rig = rig("first_person")
    pitch = []
    for i, (root, rot) in enumerate(zip(np.tile(WALK, (2, 1)), rots, strict=False)):
        head = root + np.array([0.0, 0.0, 0.46])
        camera = camera_rig.pose(
            time=i / 30, root_pos=root, root_rot=UPRIGHT, size=SIZE, is_cut=i == 0, bodies={"head": (head, rot)}
        )
        assert camera.eye[0] - head[0] > 0.1025
        pitch.append(math.degrees(math.asin(camera_axes(camera)[0][2])))
    assert np.abs(pitch[30:]).max() < 0.3 * 5.0


# ---------------------------------------------------------------------- all of them


def sway(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A place (F, 3) that runs about at up to 5 m/s, and headings (F,) degrees."""
    path = np.stack((2.0 * np.sin(2.0 * t), 1.5 * np.cos(1.5 * t), 0.88 + 0.2 * np.sin(4.0 * t)), axis=-1)
    return path, 100.0 * np.sin(1.7 * t)


@pytest.mark.parametrize("mode", [*FOLLOWING, "first_person", "still"])
@pytest.mark.parametrize("company", [0, 2])
def test_a_film_is_the_same_at_any_frame_rate(mode: str, company: int) -> None:
    """30, 60 and 120 frames a second at common times. Motion is bent between frames, so not exactly."""

    def film(rate: int) -> np.ndarray:
        t = np.arange(2 * rate) / rate
        path, angles = sway(t)
        others = [sway(t + 1.0 + k)[0] + np.array([3.0 * k + 2.0, -1.0, 0.0]) for k in range(company)]
        cameras = follow(
            rig(mode), path, 1 / rate,
            rot=np.array([rotation("z", a) for a in angles]),
            subjects=np.stack([path, *others], axis=1),
        )  # fmt: skip
        return np.array([[c.eye, c.eye + camera_axes(c)[0]] for c in cameras[:: rate // 30]])

    slow, middle, fast = film(30), film(60), film(120)
    assert np.abs(fast - middle).max() < 0.012  # m
    assert np.abs(fast - slow).max() < 0.04


@pytest.mark.parametrize("mode", FOLLOWING)
@pytest.mark.parametrize("aspect", [0.3, 0.5, 1.0, 16 / 9, 3.0])
@pytest.mark.parametrize("fov", [15.0, 45.0, 100.0])
def test_a_walking_subject_fits_into_any_tile(mode: str, aspect: float, fov: float) -> None:
    """Head, feet, and hands or a stride to all sides, in a steady walk."""
    for given in ("rig", "frame"):
        config = VideoConfig(camera=mode, fov=fov)
        camera_rig = CameraRig(config, aspect=aspect if given == "rig" else None)
        more = {"aspect": aspect} if given == "frame" else {}
        for camera, root in zip(follow(camera_rig, WALK[:20], **more), WALK[:20], strict=True):
            assert np.abs(on_picture(camera, ends_of(root), aspect)).max() < 1.0


@pytest.mark.parametrize(
    ("mode", "across"),
    [("track", (1, 0, 0)), ("side", (1, 0, 0)), ("top", (1, 0, 0)), ("front", (0, 1, 0)), ("chase", (0, 1, 0))],
)
def test_the_camera_backs_off_only_from_what_would_leave_the_picture(mode: str, across: tuple[int, int, int]) -> None:
    """Across a narrow picture, from standing to a run, and shot off, too fast for the spring."""

    def greatest_distance(speed: float) -> float:
        path = PLACE + np.concatenate((np.zeros(10), np.arange(30) * speed / 30))[:, None] * np.array(across)
        cameras = follow(CameraRig(VideoConfig(camera=mode), aspect=0.5), path)
        for camera, root in zip(cameras, path, strict=True):
            assert np.abs(on_picture(camera, root, 0.5)).max() < 1.0
        return max(float(np.linalg.norm(c.eye - c.target)) for c in cameras)

    assert greatest_distance(4.0) == pytest.approx(greatest_distance(0.0))
    assert greatest_distance(44.0) > greatest_distance(0.0) + 1.0
