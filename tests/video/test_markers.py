"""Markers on the stage: where they are in the picture, and what they say."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mimickit.video.camera.camera_rig import CameraPose
from mimickit.video.config import VideoConfig
from mimickit.video.overlay.body_error import ERROR_RANGE, body_errors, error_colors
from mimickit.video.plan import make_plan
from mimickit.video.snapshot import ActorPose, ActorSpec, FloatArray, Snapshot
from mimickit.video.stage.stage import Frame, Stage
from mimickit.video.stage.stage_filmer import StageFilmer
from mimickit.video.stage.stage_markers import Marks
from mimickit.video.traces.trace import EnvCast, TraceHeader
from tests.video.films import center_of, pendulum_pose, snapshot, write_pendulum

WIDTH, HEIGHT = 428, 240
GREEN = (0.1, 0.55, 0.1)
FRONT = CameraPose(np.array([0.0, -4.0, 1.2]), np.array([0.0, 0.0, 0.7]), 45.0, np.array([0.0, 0.0, 1.0]))
WEIGHT = 9.81 * 500 * (0.24**3 + np.pi * 0.05**2 * 0.6 + 4 / 3 * np.pi * (0.05**3 + 0.13**3))  # N, of the pendulum
NAMES = ("base", "arm", "bob")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage([ActorSpec("p", write_pendulum(tmp_path), color=GREEN)], ghosts_of=[0], width=WIDTH, height=HEIGHT)
    yield stage
    stage.close()


def shoot(stage: Stage, shown: Snapshot, marks: Marks | None = None, camera: CameraPose = FRONT) -> Frame:
    stage.place(shown, *([] if marks is None else [marks]))
    return stage.render(camera).copy()


def pushed(*forces: Sequence[float], pose: ActorPose | None = None) -> Snapshot:
    """A pendulum with forces (multiples of its weight) on base, arm and bob."""
    shown = snapshot(pose or pendulum_pose())
    return replace(shown, contacts=[np.array(forces) * WEIGHT])


def project(point: Sequence[float] | FloatArray, camera: CameraPose = FRONT) -> FloatArray:
    """(2,) column and row."""
    forward = camera.target - camera.eye
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, camera.up)
    right = right / np.linalg.norm(right)
    ray = np.asarray(point) - camera.eye
    scale = 0.5 * HEIGHT / np.tan(np.radians(camera.fov / 2)) / (ray @ forward)
    return np.array([WIDTH / 2 + scale * (ray @ right), HEIGHT / 2 - scale * (ray @ np.cross(right, forward))])


def magenta(frame: Frame) -> NDArray[np.bool_]:
    f = frame.astype(int)
    return (f[..., 0] > f[..., 1] + 60) & (f[..., 2] > f[..., 1] + 15)


def yellow(frame: Frame) -> NDArray[np.bool_]:
    f = frame.astype(int)
    return (f[..., 0] > 110) & (f[..., 1] > 80) & (f[..., 2] < 0.45 * f[..., 1])


def span(mask: NDArray[np.bool_]) -> int:
    rows = np.flatnonzero(mask.any(axis=1))
    return int(np.ptp(rows)) if rows.size else 0


NONE = (0.0, 0.0, 0.0)
CONTACTS = Marks(contacts=True)

# ---------------------------------------------------------------------- forces


def test_without_marks_a_picture_is_what_it_was(stage: Stage) -> None:
    shown = replace(pushed(NONE, NONE, (0, 0, 1)), ghosts=[pendulum_pose(x=0.5)])
    before = shoot(stage, shown)
    marks = Marks(True, True, NAMES, ((0, pendulum_pose(x=0.5)),))
    assert (shoot(stage, shown, marks) != before).any()
    assert (shoot(stage, shown, Marks()) == before).all()
    assert (shoot(stage, replace(shown, contacts=[]), CONTACTS) == before).all()


def test_an_arrow_stands_on_the_ground_below_the_body_along_the_force(stage: Stage) -> None:
    below = project([0.1, 0.02, 0.0])
    upright = magenta(shoot(stage, pushed(NONE, NONE, (0, 0, 1.0)), CONTACTS))
    assert np.abs(center_of(upright)[0] - below[0]) < 2
    assert np.flatnonzero(upright.any(axis=1)).max() == pytest.approx(below[1], abs=4)
    tip = project([0.1, 0.02, 0.32 * stage.subject_size.height])
    assert np.flatnonzero(upright.any(axis=1)).min() == pytest.approx(tip[1], abs=4)
    to_the_right = magenta(shoot(stage, pushed(NONE, NONE, (0.7, 0, 0.7)), CONTACTS))
    assert center_of(to_the_right)[0] > below[0] + 5


def test_its_length_grows_with_the_force_up_to_an_end(stage: Stage) -> None:
    forces = (0.02, 0.5, 1.0, 2.0, 3.2, 16.0)
    masks = [magenta(shoot(stage, pushed(NONE, NONE, (0, 0, f)), CONTACTS)) for f in forces]
    lengths = [span(mask) for mask in masks]
    assert not masks[0].any()  # too small to be worth an arrow
    assert lengths[1] < lengths[2] < lengths[3] < lengths[4]
    assert lengths[3] - lengths[2] == pytest.approx(2 * (lengths[2] - lengths[1]), abs=4)
    assert lengths[5] == pytest.approx(1.1 * stage.subject_size.height * 72, abs=6)


def test_every_body_that_is_pushed_has_an_arrow_that_its_actor_does_not_hide(stage: Stage) -> None:
    """All three stand above each other: the arrow goes up through all of them."""
    upright = magenta(shoot(stage, pushed((0, 0, 2.5), NONE, NONE), CONTACTS))
    base = project([0.0, 0.0, 0.7])
    assert upright[round(base[1]), round(base[0])]
    lying = (pendulum_pose()[0] * [0, 0, 0] + [[-0.6, 0, 0.2], [0, 0, 0.2], [0.6, 0, 0.2]], pendulum_pose()[1])
    mask = magenta(shoot(stage, pushed((0, 0, 0.4), NONE, (0, 0, 0.4), pose=lying), CONTACTS))
    assert mask[:, : WIDTH // 2 - 20].any()
    assert mask[:, WIDTH // 2 + 20 :].any()


def test_markers_are_in_place_far_from_the_origin_and_cast_no_shadow(stage: Stage) -> None:
    place = np.array([300.0, -200.0, 0.0])
    there = replace(FRONT, eye=FRONT.eye + place, target=FRONT.target + place)
    here = magenta(shoot(stage, pushed(NONE, NONE, (0, 0, 1)), CONTACTS))
    far = magenta(shoot(stage, pushed(NONE, NONE, (0, 0, 1), pose=pendulum_pose(*place)), CONTACTS, there))
    assert (here ^ far).sum() <= 0.1 * here.sum()
    above = CameraPose(np.array([1.0, -4.0, 3.0]), np.array([1.0, 0.0, 0.0]), 45.0, FRONT.up)
    away = pendulum_pose(z=200.0)
    plain, marked = (shoot(stage, pushed(NONE, NONE, (0, 0, 2), pose=away), m, above) for m in (None, CONTACTS))
    changed = np.abs(plain.astype(int) - marked).max(axis=-1) > 12
    assert changed.sum() > 30
    grown = np.zeros_like(changed)
    rows, columns = np.nonzero(magenta(marked))
    for row, column in ((r, c) for r in (-2, -1, 0, 1, 2) for c in (-2, -1, 0, 1, 2)):
        grown[rows + row, columns + column] = True
    assert not (changed & ~grown).any()


# ---------------------------------------------------------------------- key bodies


def test_key_bodies_are_seen_inside_of_their_geoms_and_only_those_named(stage: Stage) -> None:
    for index, name in enumerate(NAMES):
        mask = yellow(shoot(stage, snapshot(pendulum_pose()), Marks(key_bodies=(name, "nobody"))))
        assert mask.sum() >= 4
        assert center_of(mask) == pytest.approx(project(pendulum_pose()[0][index]), abs=1.5)


def test_a_target_is_where_the_reference_is_and_joined_to_its_body(stage: Stage) -> None:
    target = pendulum_pose(x=0.8)
    shown = snapshot(pendulum_pose())
    plain = shoot(stage, shown, Marks(key_bodies=("base",)))
    marked = shoot(stage, shown, Marks(key_bodies=("base",), targets=((0, target),)))
    changed = np.abs(plain.astype(int) - marked).max(axis=-1) > 8
    column, row = project(target[0][0]).round().astype(int)
    assert changed[row - 1 : row + 2, column - 1 : column + 2].all()
    ball = changed[:, column - 2 : column + 8]
    assert 3 <= span(ball) < 16
    between = changed[:, round(project([0.4, 0.0, 1.0])[0])]
    assert 1 <= between.sum() <= 4  # a thin line
    assert not changed[:, column + 12 :].any()


def test_targets_shown_elsewhere_are_joined_to_where_their_bodies_would_be(stage: Stage) -> None:
    target, shift = pendulum_pose(z=0.2), np.array([1.0, 0.0, 0.0])
    shown = snapshot(pendulum_pose())
    plain = shoot(stage, shown, Marks(key_bodies=("base",)))
    marked = shoot(stage, shown, Marks(key_bodies=("base",), targets=((0, target),), shift=shift))
    changed = np.abs(plain.astype(int) - marked).max(axis=-1) > 8
    columns = np.flatnonzero(changed.any(axis=0))
    column, row = project(target[0][0] + shift)
    assert columns.min() > column - 8  # nothing across from the actor
    assert span(changed) >= project(pendulum_pose()[0][0] + shift)[1] - row - 2


# ---------------------------------------------------------------------- errors


def test_errors_are_seen_from_the_root() -> None:
    reference = pendulum_pose(x=5.0)
    reference[0][2] += [0.0, 0.3, 0.4]
    assert body_errors(pendulum_pose(), reference) == pytest.approx([0.0, 0.0, 0.5])


def test_colours_go_from_blue_to_red() -> None:
    colors = error_colors(np.array([0.0, 0.5 * ERROR_RANGE, ERROR_RANGE, 9.0]))
    assert colors[0][2] > colors[0][0] + 0.5
    assert colors[2][0] > colors[2][2] + 0.5
    assert (colors[2] == colors[3]).all()
    redness = error_colors(np.linspace(0.0, ERROR_RANGE, 50)) @ [1.0, 0.0, -1.0]
    assert (np.diff(redness) > -0.2).all()


def color_at(frame: Frame, point: FloatArray) -> NDArray[np.int64]:
    column, row = project(point).round().astype(int)
    return frame[row - 2 : row + 3, column - 2 : column + 3].reshape(-1, 3).astype(int).mean(axis=0).astype(int)


def test_every_body_of_a_ghost_has_the_colour_of_its_error(stage: Stage) -> None:
    ghost = pendulum_pose(x=0.9)
    ghost[0][2] += [0.4, 0.0, 0.0]
    shown = snapshot(pendulum_pose(), ghosts=(ghost,))
    model_colors = stage.model.geom_rgba.copy()
    plain = shoot(stage, shown)
    frame = shoot(stage, shown, Marks(errors=True))
    base, bob = color_at(frame, ghost[0][0]), color_at(frame, ghost[0][2])
    assert base[2] > base[0] + 40
    assert bob[0] > bob[2] + 60
    own = color_at(plain, pendulum_pose()[0][0])
    assert np.abs(own - color_at(frame, pendulum_pose()[0][0])).max() < 5  # the actor keeps its colour
    assert (stage.model.geom_rgba == model_colors).all()
    assert (shoot(stage, shown) == plain).all()


def test_a_coloured_ghost_is_not_hidden_by_its_actor(stage: Stage) -> None:
    shown = snapshot(pendulum_pose(), ghosts=(pendulum_pose(y=0.04),))  # inside of it, as seen from the front
    green = color_at(shoot(stage, replace(shown, ghosts=[])), pendulum_pose()[0][2])
    seen = color_at(shoot(stage, shown, Marks(errors=True)), pendulum_pose()[0][2])
    assert seen[2] > green[2] + 40


# ---------------------------------------------------------------------- films


def filmed(folder: Path, *shown: Snapshot, **video: Any) -> Frame:
    """The first picture of a film of as many environments."""
    actor = ActorSpec("p", write_pendulum(folder), color=GREEN)
    casts = tuple(EnvCast(env, (actor,), (3,)) for env in range(len(shown)))
    header = TraceHeader(1 / 30, "test", casts, {"key_bodies": ["bob"]})
    config = VideoConfig.from_mapping(
        {"width": WIDTH, "height": HEIGHT, "camera": "still", "position": FRONT.eye, "target": FRONT.target} | video,
        "test",
    )
    plan = make_plan(config, header, folder / "film.mp4", [])
    filmer = StageFilmer()
    try:
        filmer.begin(plan)
        return filmer.shoot(plan.clips[0], shown).copy()
    finally:
        filmer.close()


def apart() -> Snapshot:
    return snapshot(pendulum_pose(), ghosts=(pendulum_pose(x=0.9),))


def blue_of(frame: Frame, x: float) -> int:
    color = color_at(frame, pendulum_pose(x=x)[0][0])
    return int(color[2] - color[0])


def test_the_reference_is_shown_where_errors_are_to_be_seen(tmp_path: Path) -> None:
    plain, error = (blue_of(filmed(tmp_path, apart(), overlay=overlay), 0.9) for overlay in ("none", "error"))
    assert plain < 20
    assert error > 40


def test_targets_are_shown_without_the_ghost(tmp_path: Path) -> None:
    plain, marked = (filmed(tmp_path, apart(), overlay=overlay) for overlay in ("none", "key_bodies"))
    changed = np.abs(plain.astype(int) - marked).max(axis=-1) > 12
    column, row = project(pendulum_pose(x=0.9)[0][2]).round().astype(int)
    assert changed[row, column]
    assert span(changed) < 20  # but for the two bobs and a level line there is nothing new
    assert np.abs(blue_of(plain, 0.9) - blue_of(marked, 0.9)) < 5


def test_a_ghost_beside_has_its_targets_on_itself(tmp_path: Path) -> None:
    shown = snapshot(pendulum_pose(), ghosts=(pendulum_pose(),))
    beside = 0.75 * 1.07
    plain, marked = (filmed(tmp_path, shown, ghost="beside", overlay=overlay) for overlay in ("none", "key_bodies"))
    changed = np.abs(plain.astype(int) - marked).max(axis=-1) > 8
    assert changed[:, WIDTH // 2 - 12 : WIDTH // 2 + 30].any()
    column = round(project(pendulum_pose(x=beside)[0][2])[0])
    assert changed[:, column - 4 : column + 5].any()
    assert not changed[:, WIDTH // 2 + 30 : column - 12].any()


def test_forces_belong_to_their_own_environment(tmp_path: Path) -> None:
    """The first doesn't know of forces, the second does: its arrow is under the second."""
    shown = snapshot(pendulum_pose(x=-0.8)), pushed(NONE, NONE, (0, 0, 1), pose=pendulum_pose(x=0.8))
    mask = magenta(filmed(tmp_path, *shown, envs=(0, 1), env_layout="overlaid", overlay="contacts"))
    assert mask.sum() > 10
    assert center_of(mask)[0] > WIDTH / 2 + 20
