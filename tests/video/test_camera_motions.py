"""Ten thousand random motions before every camera: numbers, no jumps, nobody lost, no eye under ground."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from mimickit.video.camera.camera_rig import CAMERA_MODES, CameraRig, SubjectSize
from mimickit.video.config import VideoConfig
from mimickit.video.snapshot import quat_to_matrix

COUNT, FRAMES = 10_000, 8  # motions; frames of each, then one more after a rest
TOP_SPEED, SPIN = 8.0, 10.0  # m/s, rad/s
REST = 3.0  # s
MODES = (*CAMERA_MODES, *(mode for mode in CAMERA_MODES if mode != "dolly"))  # reading its file takes time
FOLLOWING = ("track", "orbit", "side", "front", "top", "chase")
DIRECTED = ("track", "side", "front", "top")  # from a direction that does not change
PATH = """
relative: true
poses: [{time: 0, eye: [4, 0, 1], target: [0, 0, 1]}, {time: 2, eye: [3, 3, 2], target: [0, 0, 0]}]
"""


@dataclass
class Films:
    """M motions of F + 1 frames, as they went and as they were filmed."""

    mode: np.ndarray  # (M,) names
    dt: np.ndarray  # (M,) s
    height: np.ndarray  # (M,) m
    aspect: np.ndarray  # (M,)
    fov: np.ndarray  # (M,) degrees
    is_gentle: np.ndarray  # (M,) bool: bodies turn steadily, not anyhow
    subjects: np.ndarray  # (M, F + 1, S, 3) m, the first S of num_subjects count
    num_subjects: np.ndarray  # (M,)
    rot: np.ndarray  # (M, F + 1, 4)
    camera: np.ndarray  # (M, F + 1, 10): eye, target, up, fov

    eye = property(lambda self: self.camera[..., 0:3])
    target = property(lambda self: self.camera[..., 3:6])

    def of(self, *modes: str) -> np.ndarray:
        return np.isin(self.mode, modes)


def random_rotations(rng: np.random.Generator, dt: np.ndarray, is_gentle: np.ndarray) -> np.ndarray:
    """(M, F + 1, 4) anyhow, or about an axis at up to SPIN."""
    any_rot = rng.normal(size=(COUNT, FRAMES + 1, 4))
    any_rot /= np.linalg.norm(any_rot, axis=-1, keepdims=True)
    axis = any_rot[:, 0, :3] / np.linalg.norm(any_rot[:, 0, :3], axis=-1, keepdims=True)
    half = 0.5 * (rng.uniform(0.0, SPIN, COUNT) * dt)[:, None] * np.arange(FRAMES + 1) + rng.uniform(0, 6, (COUNT, 1))
    steady = np.concatenate((np.sin(half)[..., None] * axis[:, None], np.cos(half)[..., None]), axis=-1)
    return np.where(is_gentle[:, None, None], steady, any_rot)


def random_motions(rng: np.random.Generator) -> Films:
    dt, height = 1.0 / rng.choice([10.0, 24.0, 30.0, 60.0, 120.0], COUNT), rng.uniform(0.3, 3.0, COUNT)
    start = rng.uniform(-12.0, 12.0, (COUNT, 1, 4, 3)) + rng.normal(0.0, 300.0, (COUNT, 1, 1, 3))
    velocity = rng.normal(0.0, 3.0, (COUNT, FRAMES, 4, 3))
    velocity[:, 1:] = rng.normal(0.0, 40.0, velocity[:, 1:].shape) * dt[:, None, None, None]  # changes: 40 m/s^2
    velocity = np.cumsum(velocity, axis=1)
    speed = np.linalg.norm(velocity, axis=-1, keepdims=True)
    velocity *= np.minimum(1.0, TOP_SPEED / speed)
    steps = np.cumsum(velocity * dt[:, None, None, None], axis=1)
    paths = np.concatenate((start, start + steps), axis=1)[:, :FRAMES]
    paths = np.concatenate((paths, paths[:, -1:]), axis=1)
    standing = 0.55 * height[:, None, None]
    paths[..., 2] = np.clip(standing + 0.3 * (paths[..., 2] - start[..., 2]), 0.05, 2.0 * height[:, None, None])
    paths[:, -1, :, 2] = standing[:, 0]
    is_gentle = rng.random(COUNT) < 0.5
    return Films(
        mode=np.array(MODES)[np.arange(COUNT) % len(MODES)],
        dt=dt,
        height=height,
        aspect=np.exp(rng.uniform(-1.2, 1.2, COUNT)),
        fov=rng.uniform(10.0, 120.0, COUNT),
        is_gentle=is_gentle,
        subjects=paths,
        num_subjects=np.where(rng.random(COUNT) < 0.6, 1, rng.integers(2, 5, COUNT)),
        rot=random_rotations(rng, dt, is_gentle),
        camera=np.empty((COUNT, FRAMES + 1, 10)),
    )


def film(films: Films, path: Path) -> Iterator[tuple[int, int, np.ndarray]]:
    """Motion, frame, and eye, target, up and fov."""
    for m in range(COUNT):
        config = VideoConfig(camera=str(films.mode[m]), fov=films.fov[m], camera_path=path, orbit_speed=90.0)
        rig = CameraRig(config, aspect=films.aspect[m])
        size = SubjectSize(films.height[m], 0.55 * films.height[m])
        times = np.arange(FRAMES + 1) * films.dt[m]
        times[-1] += REST if films.mode[m] in FOLLOWING else 0.0
        for f in range(FRAMES + 1):
            subjects, rot = films.subjects[m, f, : films.num_subjects[m]], films.rot[m, f]
            pose = rig.pose(
                time=times[f], root_pos=subjects[0], root_rot=rot, size=size,
                is_cut=f == 0, subjects=subjects, bodies={"head": (subjects[0], rot)},
            )  # fmt: skip
            yield m, f, np.concatenate((pose.eye, pose.target, pose.up, [pose.fov]))


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Films:
    path = tmp_path_factory.mktemp("dolly") / "path.yaml"
    path.write_text(PATH)
    films = random_motions(np.random.default_rng(20))
    for m, f, row in film(films, path):
        films.camera[m, f] = row
    return films


def seen(films: Films, points: np.ndarray) -> np.ndarray:
    """(M, F + 1, ...) how far from the middle of the picture points (M, F + 1, ..., 3) are, 1 at its edge."""
    more = (slice(None), slice(None), *(None,) * (points.ndim - 3))
    forward = films.target - films.eye
    forward /= np.linalg.norm(forward, axis=-1, keepdims=True)
    right = np.cross(forward, films.camera[..., 6:9])
    right /= np.linalg.norm(right, axis=-1, keepdims=True)
    rays = points - films.eye[more]
    depth = np.sum(rays * forward[more], axis=-1)
    tan = np.tan(np.radians(films.camera[..., 9]) / 2.0)
    across = np.sum(rays * right[more], axis=-1) / (depth * (tan * films.aspect[:, None])[more])
    upwards = np.sum(rays * np.cross(right, forward)[more], axis=-1) / (depth * tan[more])
    return np.where(depth > 0.0, np.maximum(np.abs(across), np.abs(upwards)), np.inf)


def steps(values: np.ndarray) -> np.ndarray:
    """(M, F - 1) lengths of the changes from frame to frame, without the rest."""
    return np.linalg.norm(np.diff(values[:, :FRAMES], axis=1), axis=-1)


def test_every_pose_is_one_that_can_be_filmed(films: Films) -> None:
    assert np.isfinite(films.camera).all()
    assert films.eye[..., 2].min() >= 0.05
    look = films.target - films.eye
    sine = np.linalg.norm(np.cross(look, films.camera[..., 6:9]), axis=-1)
    assert (sine / np.linalg.norm(look, axis=-1) / np.linalg.norm(films.camera[..., 6:9], axis=-1)).min() > 5e-4
    assert np.allclose(films.camera[..., 9][~films.of("dolly")].T, films.fov[~films.of("dolly")])


def test_nobody_is_ever_lost(films: Films) -> None:
    """The roots of all, at all frames; at rest heads, feet and hands."""
    here = films.of(*FOLLOWING)[:, None] & (np.arange(4) < films.num_subjects[:, None])
    assert np.where(here[:, None], seen(films, films.subjects), 0.0).max() < 1.0
    ends = np.array([[0, 0, 0.45], [0, 0, -0.55], [0.45, 0, 0], [-0.45, 0, 0], [0, 0.45, 0], [0, -0.45, 0]])
    around = films.subjects[:, :, :, None] + films.height[:, None, None, None, None] * ends
    rested = seen(films, around)[:, -1]
    assert np.where(here[..., None], rested, 0.0).max() < 1.0


def test_what_is_looked_at_moves_no_faster_than_the_spring_allows(films: Films) -> None:
    """(2 w s + w^2) / (s + w)^2 of a speed is 1 + 2 / e^2 of the highest at most, along the ground and upwards."""
    limit = (1.0 + 2.0 / np.e**2) * np.sqrt(2.0) * TOP_SPEED * films.dt
    ratio = steps(films.target).max(axis=1) / limit
    assert ratio[films.of(*FOLLOWING)].max() < 1.0
    assert steps(films.target)[films.of("still")].max() == steps(films.eye)[films.of("still")].max() == 0.0


def test_the_direction_turns_no_faster_than_it_may(films: Films) -> None:
    arm = films.eye - films.target
    flat = arm[..., :2] / np.maximum(np.linalg.norm(arm[..., :2], axis=-1, keepdims=True), 1e-9)
    sine = flat[:, :-1, 0] * flat[:, 1:, 1] - flat[:, :-1, 1] * flat[:, 1:, 0]
    turn = np.arctan2(sine, np.sum(flat[:, :-1] * flat[:, 1:], axis=-1))[:, : FRAMES - 1]
    assert (np.abs(turn).max(axis=1) / films.dt)[films.of("chase")].max() < 3.0
    assert np.allclose((turn / films.dt[:, None])[films.of("orbit")], np.pi / 2)
    assert np.abs(turn[films.of("track", "side", "front")]).max() < 1e-9
    assert np.linalg.norm(arm[films.of("top")][..., :2], axis=-1).max() < 1e-9


def test_the_distance_changes_no_faster_than_subjects_run_out_of_the_picture(films: Films) -> None:
    distance = np.linalg.norm(films.eye - films.target, axis=-1)[..., None]
    tan = np.tan(np.radians(films.fov) / 2.0) * np.minimum(films.aspect, 1.0)
    limit = 2.5 * TOP_SPEED * films.dt * (1.0 + 1.0 / tan)
    is_above_ground = (films.eye[..., 2] > 0.0501).all(axis=1)
    assert (steps(distance).max(axis=1) / limit)[films.of(*FOLLOWING) & is_above_ground].max() < 1.0
    calm = films.of(*DIRECTED) & (films.num_subjects == 1) & (films.height > 1.4) & (films.aspect > 0.9)
    assert steps(distance)[calm & (films.fov < 60.0) & is_above_ground].max() < 1e-9  # a human does not make it move


def test_the_look_of_a_head_turns_no_faster_than_its_lags_allow(films: Films) -> None:
    look = films.target - films.eye  # of length 1 where the eye is above ground
    is_above_ground = (films.eye[..., 2] > 0.0501).all(axis=1)
    is_here = films.of("first_person") & is_above_ground
    turn = 2.0 * np.arcsin(np.clip(steps(look) / 2.0, 0.0, 1.0)).max(axis=1)
    assert (turn / films.dt)[is_here].max() < 20.0 * np.pi
    is_gentle = is_here & films.is_gentle
    axes = quat_to_matrix(films.rot)[..., 0]
    assert (turn / films.dt)[is_gentle].max() < SPIN + 1e-6
    assert np.linalg.norm(look - axes, axis=-1)[is_gentle].max() < 2.0 * np.sin(0.5 * SPIN * 2.0 / 20.0)
    eye = np.sqrt(0.09**2 + 0.11**2) * films.height
    assert np.allclose(
        np.linalg.norm(films.eye - films.subjects[:, :, 0], axis=-1)[is_here], eye[is_here][:, None], atol=1e-9
    )
