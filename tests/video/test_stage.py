"""The Stage: what is where in the picture, and that a character file needs to bring nothing but its bodies."""

from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np
import pytest

from mimickit.anim.mjcf import CharacterError
from mimickit.video.camera.camera_rig import CameraPose, CameraRig
from mimickit.video.config import Quality, VideoConfig
from mimickit.video.errors import VideoError
from mimickit.video.snapshot import ActorPose, ActorSpec, quat_to_matrix
from mimickit.video.stage.stage import Frame, Stage
from mimickit.video.stage.stage_scene import build_scene
from tests.video.films import PENDULUM, center_of, pendulum_pose, snapshot, write_pendulum

HUMANOID = Path("data/assets/humanoid/humanoid.xml")
SIZE = {"width": 214, "height": 120}
RED = (1.0, 0.05, 0.05)
FRONT = CameraPose(np.array([0.0, -4.0, 1.2]), np.array([0.0, 0.0, 0.7]), 45.0, np.array([0.0, 0.0, 1.0]))


@pytest.fixture
def pendulum(tmp_path: Path) -> Path:
    return write_pendulum(tmp_path)


@pytest.fixture
def stage(pendulum: Path) -> Iterator[Stage]:
    stage = Stage([ActorSpec("p", pendulum, color=RED)], **SIZE)
    yield stage
    stage.close()


def moved(x: float, y: float = 0.0) -> CameraPose:
    offset = np.array([x, y, 0.0])
    return CameraPose(FRONT.eye + offset, FRONT.target + offset, FRONT.fov, FRONT.up)


def shoot(stage: Stage, *poses: ActorPose, ghosts: tuple[ActorPose, ...] = (), camera: CameraPose = FRONT) -> Frame:
    stage.place(snapshot(*poses, ghosts=ghosts))
    return stage.render(camera).copy()


def red(frame: Frame) -> np.ndarray:
    f = frame.astype(int)
    return (f[..., 0] > 90) & (f[..., 0] > 2 * f[..., 1]) & (f[..., 0] > 2 * f[..., 2])


def bluish(frame: Frame) -> np.ndarray:
    f = frame.astype(int)
    return f[..., 2] > f[..., 0] + 40


def test_body_poses_alone_place_geoms_as_mujoco_does(tmp_path: Path) -> None:
    """Random joint angles, by MuJoCo's kinematics and by the stage: the same geom frames."""
    model = mujoco.MjModel.from_xml_path(str(HUMANOID))
    data = mujoco.MjData(model)
    data.qpos[7:] = np.random.default_rng(0).normal(0.0, 0.7, model.nq - 7)
    data.qpos[:3] = [1.0, -2.0, 0.5]
    data.qpos[3:7] = [0.5, -0.5, 0.1, 0.7]
    mujoco.mj_kinematics(model, data)
    stage = Stage([ActorSpec("h", HUMANOID)], **SIZE)
    try:
        stage.place(snapshot((data.xpos[1:].copy(), np.roll(data.xquat[1:], -1, axis=1))))
        scene, placed = stage._renderer._scene, stage._renderer._data
        shown = [mujoco.mj_id2name(scene.model, mujoco.mjtObj.mjOBJ_GEOM, i) for i in scene.geom_ids]
        own = [model.geom(name.removeprefix("actor0/")).id for name in shown]
        assert sorted(own) == list(range(model.ngeom))
        assert np.allclose(stage._renderer._geom_world, data.geom_xpos[own], atol=1e-12)
        assert np.allclose(placed.geom_xmat[scene.geom_ids], data.geom_xmat[own], atol=1e-12)
    finally:
        stage.close()


def test_quaternions_that_are_not_of_unit_length_are_rotations() -> None:
    quat = np.random.default_rng(1).normal(size=(20, 4))
    found = quat_to_matrix(quat)
    expected = np.zeros((20, 9))
    for row, q in zip(expected, np.roll(quat / np.linalg.norm(quat, axis=1, keepdims=True), 1, axis=1), strict=True):
        mujoco.mju_quat2Mat(row, q)
    assert np.allclose(found.reshape(20, 9), expected)


def test_the_picture_is_lit_and_the_actor_stands_where_it_is_put(stage: Stage) -> None:
    middle, right = shoot(stage, pendulum_pose()), shoot(stage, pendulum_pose(x=0.8))
    assert middle.shape == (120, 214, 3)
    assert 100 < middle.mean() < 220
    assert middle.std() > 10
    assert red(middle).sum() > 150
    shift = center_of(red(right)) - center_of(red(middle))
    assert shift[0] == pytest.approx(0.8 / (2 * 4.0 * np.tan(np.radians(22.5))) * 120, rel=0.1)
    assert abs(shift[1]) < 2


def test_a_teleported_actor_is_in_the_new_place_in_the_next_picture(stage: Stage) -> None:
    shoot(stage, pendulum_pose())
    there = moved(5.0)
    assert red(shoot(stage, pendulum_pose(x=5.0), camera=there)).sum() > 150
    assert red(shoot(stage, pendulum_pose(x=5.0), camera=FRONT)).sum() == 0


@pytest.mark.parametrize("place", [(50.0, -30.0), (-300.0, 1000.0)])
def test_far_from_the_origin_there_is_the_same_ground_light_and_shadow(
    stage: Stage, place: tuple[float, float]
) -> None:
    here = shoot(stage, pendulum_pose())
    frame = shoot(stage, pendulum_pose(*place), camera=moved(*place))
    # whole metres in both directions: even the cells of the ground are the same
    assert np.abs(frame.astype(int) - here).mean() < 2.0


def shadow_of(quality: Quality, pendulum: Path) -> int:
    """Pixels of the ground beside a hanging pendulum that are darker than with nobody there."""
    stage = Stage([ActorSpec("p", pendulum, color=RED)], **SIZE, quality=quality)
    try:
        above = CameraPose(np.array([1.0, -5.0, 4.0]), np.array([0.5, 0.5, 0.0]), 45.0, FRONT.up)
        with_actor, empty = (
            shoot(stage, pendulum_pose(), camera=above),
            shoot(stage, pendulum_pose(z=500.0), camera=above),
        )
        darker = with_actor.astype(int).sum(axis=-1) < empty.astype(int).sum(axis=-1) - 60
        return int((darker & ~red(with_actor)).sum())
    finally:
        stage.close()


def test_the_subject_has_a_shadow_but_in_a_draft(pendulum: Path) -> None:
    assert shadow_of(Quality.STANDARD, pendulum) > 30
    assert shadow_of(Quality.HIGH, pendulum) > 30
    assert shadow_of(Quality.DRAFT, pendulum) == 0


def test_the_ground_shows_motion(stage: Stage) -> None:
    """Half a cell further the ground looks different; two cells further, the same."""
    away = pendulum_pose(z=500.0)
    frames = [shoot(stage, away, camera=moved(x)) for x in (0.0, 0.5, 2.0)]
    ground = [frame[60:].astype(int) for frame in frames]
    assert np.abs(ground[1] - ground[0]).mean() > 3.0
    assert np.abs(ground[2] - ground[0]).mean() < 0.5


def test_a_file_without_colours_is_painted_and_one_with_colours_keeps_them(tmp_path: Path, pendulum: Path) -> None:
    colored = tmp_path / "colored.xml"
    colored.write_text(PENDULUM.replace('name="bob" type', 'name="bob" rgba="0 1 0 1" type'))
    scene = build_scene(
        [ActorSpec("a", pendulum), ActorSpec("b", colored), ActorSpec("c", colored, color=RED, alpha=0.5)],
        ghosts_of=[0], quality=Quality.DRAFT, **SIZE,
    )  # fmt: skip
    model = scene.model

    def color(actor: int, geom: str) -> list[float]:
        return [round(float(c), 3) for c in model.geom(f"actor{actor}/{geom}").rgba]

    grey = [0.5, 0.5, 0.5, 1.0]
    assert grey not in [color(a, g) for a in range(3) for g in ("base", "arm", "bob")]
    assert color(0, "base") != color(1, "base")
    assert color(0, "base") != color(0, "arm")
    assert color(1, "bob") == [0.0, 1.0, 0.0, 1.0]
    assert [color(2, g) for g in ("base", "arm", "bob")] == [[1.0, 0.05, 0.05, 0.5]] * 3
    ghost = color(3, "bob")
    assert ghost == color(3, "base")
    assert ghost[3] < 0.5


def test_collision_geoms_are_shown_only_if_there_is_nothing_else(tmp_path: Path) -> None:
    hidden = PENDULUM.replace('type="sphere"', 'type="sphere" group="3"')
    nothing_else = PENDULUM.replace('density="500"', 'density="500" group="3"')
    groups = []
    for name, text in (("hidden", hidden), ("only", nothing_else)):
        path = tmp_path / f"{name}.xml"
        path.write_text(text)
        model = build_scene([ActorSpec("a", path)], quality=Quality.DRAFT, **SIZE).model
        groups.append([int(model.geom(f"actor0/{geom}").group[0]) for geom in ("base", "arm", "bob")])
    assert groups == [[0, 0, 3], [0, 0, 0]]


def test_nothing_of_the_file_but_bodies_and_geoms_is_on_stage(pendulum: Path) -> None:
    model = build_scene([ActorSpec("a", pendulum)] * 2, quality=Quality.DRAFT, **SIZE).model
    assert (model.njnt, model.nu, model.nsensor, model.nkey, model.ncam) == (0, 0, 0, 0, 0)
    assert model.nlight == 2
    assert model.nbody == 1 + 2 * 3


def test_meshes_are_found_beside_their_file(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "block.obj").write_text(
        "v 0 0 0\nv .4 0 0\nv 0 .4 0\nv 0 0 .4\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    )
    path = tmp_path / "mesh.xml"
    path.write_text(
        '<mujoco><compiler meshdir="parts"/><asset><mesh name="m" file="block.obj"/></asset><worldbody>'
        '<body name="b"><freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    stage = Stage([ActorSpec("m", path, color=RED)], **SIZE)
    try:
        frame = shoot(stage, (np.array([[0.0, 0.0, 0.8]]), np.array([[0.0, 0.0, 0.0, 1.0]])))
        assert red(frame).sum() > 20
    finally:
        stage.close()


def test_a_ghost_is_seen_through_and_has_no_shadow(pendulum: Path) -> None:
    stage = Stage([ActorSpec("p", pendulum, color=RED)], ghosts_of=[0], **SIZE)
    try:
        above = CameraPose(np.array([0.5, -5.0, 2.5]), np.array([0.5, 0.0, 0.5]), 45.0, FRONT.up)
        alone = shoot(stage, pendulum_pose(), camera=above)
        beside = shoot(stage, pendulum_pose(), ghosts=(pendulum_pose(x=1.2),), camera=above)
        before = shoot(stage, pendulum_pose(), ghosts=(pendulum_pose(y=-0.5),), camera=above)
        assert bluish(beside).sum() - bluish(alone).sum() > 80
        changed = np.abs(beside.astype(int) - alone).sum(axis=-1) > 30
        darker = beside.astype(int).sum(axis=-1) < alone.astype(int).sum(axis=-1) - 110
        assert changed.sum() > 80
        assert (darker & (beside.astype(int)[..., 2] < 120)).sum() == 0
        # in front of the actor: its red still shines through
        covered = red(alone) & (np.abs(before.astype(int) - alone).sum(axis=-1) > 60)
        assert covered.sum() > 60
        assert before[covered][:, 0].mean() > 80
    finally:
        stage.close()


def test_sixty_four_actors_are_all_there(pendulum: Path) -> None:
    stage = Stage([ActorSpec(f"p{i}", pendulum, color=RED) for i in range(64)], width=640, height=360)
    try:
        grid = [(1.5 * (i % 8), 1.5 * (i // 8)) for i in range(64)]
        above = CameraPose(np.array([5.25, 5.25, 18.0]), np.array([5.25, 5.3, 0.0]), 45.0, np.array([0.0, 1.0, 0.0]))
        mask = red(shoot(stage, *(pendulum_pose(*place) for place in grid), camera=above))
        scale = 360 / (2 * 17.0 * np.tan(np.radians(22.5)))
        seen = [
            mask[
                round(180 - (y - 5.25) * scale) - 6 : round(180 - (y - 5.25) * scale) + 6,
                round(320 + (x - 5.25) * scale) - 6 : round(320 + (x - 5.25) * scale) + 6,
            ].any()
            for x, y in grid
        ]
        assert all(seen)
    finally:
        stage.close()


def test_the_subject_size_is_that_of_the_file(pendulum: Path) -> None:
    size = build_scene([ActorSpec("a", pendulum)], quality=Quality.DRAFT, **SIZE).subject
    assert size.height == pytest.approx(1.12 - 0.05, abs=0.01)
    assert size.root_height == pytest.approx(1.0 - 0.05, abs=0.01)
    humanoid = build_scene([ActorSpec("h", HUMANOID)], quality=Quality.DRAFT, **SIZE).subject
    assert 1.4 < humanoid.height < 1.8


def test_snapshots_that_do_not_fit_are_refused(stage: Stage) -> None:
    pos, rot = pendulum_pose()
    with pytest.raises(VideoError, match=r"expected \[3\].*found \[2\]"):
        stage.place(snapshot((pos[:2], rot[:2])))
    with pytest.raises(VideoError, match=r"expected \[3\].*found \[3, 3\]"):
        stage.place(snapshot((pos, rot), (pos, rot)))
    with pytest.raises(VideoError, match="not a number"):
        stage.place(snapshot((pos * np.nan, rot)))


def test_files_that_can_not_be_on_stage_are_named(tmp_path: Path) -> None:
    with pytest.raises(CharacterError, match=r"absent\.xml"):
        build_scene([ActorSpec("a", tmp_path / "absent.xml")], quality=Quality.DRAFT, **SIZE)
    two = tmp_path / "two.xml"
    two.write_text(PENDULUM.replace('<body name="base"', '<body name="other"><geom size="1"/></body><body name="base"'))
    with pytest.raises(VideoError, match=r"two.xml.*one root body.*found 2"):
        build_scene([ActorSpec("a", two)], quality=Quality.DRAFT, **SIZE)


def test_the_default_camera_frames_the_shipped_humanoid(tmp_path: Path) -> None:
    model = mujoco.MjModel.from_xml_path(str(HUMANOID))
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    stage = Stage([ActorSpec("h", HUMANOID, color=RED)], **SIZE)
    try:
        rig = CameraRig(VideoConfig())
        pose = (data.xpos[1:].copy(), np.roll(data.xquat[1:], -1, axis=1))
        camera = rig.pose(time=0.0, root_pos=pose[0][0], root_rot=pose[1][0], size=stage.subject_size, is_cut=True)
        rows, columns = np.nonzero(red(shoot(stage, pose, camera=camera)))
        assert rows.min() > 5
        assert rows.max() < 115
        assert 40 < rows.max() - rows.min() < 90
        assert columns.min() > 5
        assert columns.max() < 209
    finally:
        stage.close()


def test_a_closed_stage_says_so(pendulum: Path) -> None:
    stage = Stage([ActorSpec("p", pendulum)], **SIZE)
    stage.close()
    stage.close()
    with pytest.raises(VideoError, match="closed"):
        stage.render(FRONT)
