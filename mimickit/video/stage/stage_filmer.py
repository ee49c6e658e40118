"""Films moments with the Stage and camera rigs: the way of every engine that has no camera of its own."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mimickit.video.camera.camera_rig import CameraPose, CameraRig
from mimickit.video.config import EnvLayout, GhostMode
from mimickit.video.layout import Tile
from mimickit.video.palette import ghost_color, subject_color
from mimickit.video.production import ClipPlan, FilmPlan
from mimickit.video.snapshot import ActorPose, ActorSpec, FloatArray, Moment, Snapshot
from mimickit.video.stage.stage import Frame, Stage, camera_axes
from mimickit.video.stage.stage_markers import Marks

_BESIDE = 0.75  # of the subject's height, between the subject and a ghost beside it
_MAX_REACH = 10.0  # m around the subject in which other actors have a shadow
_NEIGHBOURS = 1.4  # of how far a subject's bodies are apart, between neighbours on one ground
_OVERLAID_ALPHA = 0.6
_NOBODY = (np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]]))


@dataclass
class _Shooting:
    """A tile's camera and what it remembers."""

    rig: CameraRig
    beside: FloatArray | None = None


class StageFilmer:
    """A Filmer. Stages are built at the first frame and kept for later recordings of the same actors."""

    def __init__(self) -> None:
        self._stages: dict[tuple[object, ...], Stage] = {}
        self._looks: tuple[object, ...] = ()

    def begin(self, plan: FilmPlan) -> None:
        """A recording begins; stages of another size or quality go."""
        heights = [tile.rect.height for clip in plan.clips for tile in clip.layout.tiles]
        self._detail = max(heights, default=plan.height) / plan.height
        looks = (plan.width, plan.height, plan.config.quality, self._detail)
        if looks != self._looks:
            self.close()
        self._plan, self._looks = plan, looks
        self._shootings: dict[tuple[ClipPlan, int], _Shooting] = {}
        self._spacing: float | None = None  # m between neighbours

    def shoot(self, clip: ClipPlan, moment: Moment) -> Frame:
        """The picture of a clip; the array is drawn over by the next call."""
        drawn = [
            (tile, self._shoot_tile(self._shooting(clip, index, tile), tile, moment))
            for index, tile in enumerate(clip.layout.tiles)
        ]
        first = drawn[0][1]
        frame = first.read()
        for stage in {id(stage): stage for _, stage in drawn if stage is not first}.values():  # of other actors
            picture = stage.read()
            for rows, columns in (_slices(tile) for tile, other in drawn if other is stage):
                frame[rows, columns] = picture[rows, columns]
        return frame

    def close(self) -> None:
        """Free everything."""
        for stage in self._stages.values():
            stage.close()
        self._stages.clear()

    def _shooting(self, clip: ClipPlan, index: int, tile: Tile) -> _Shooting:
        key = (clip, index)
        if key not in self._shootings:
            self._shootings[key] = _Shooting(CameraRig(self._plan.config, tile.camera))
        return self._shootings[key]

    def _shoot_tile(self, shooting: _Shooting, tile: Tile, moment: Moment) -> Stage:
        shown = moment[tile.subjects[0]]
        actors: list[ActorSpec] = list(self._plan.header.casts[tile.subjects[0]].actors)
        ghosts_of = list(range(len(shown.ghosts)))
        if len(tile.subjects) > 1:
            shown, actors, ghosts_of = self._gather(tile, moment)
        marks = self._marks(shown, ghosts_of)
        if self._plan.config.ghost is GhostMode.OFF and not marks.errors:
            shown, ghosts_of = replace(shown, ghosts=[]), []
        stage = self._stage_for(actors, ghosts_of, shown.poses)
        camera = self._aim(shooting, tile, shown, stage, len(tile.subjects))
        if shown.ghosts and self._plan.config.ghost is GhostMode.BESIDE:
            shown, camera, shift = self._set_beside(shooting, shown, camera, stage)
            marks = replace(marks, shift=shift)
        stage.place(shown, marks)
        stage.draw(camera, tile.rect)
        return stage

    def _marks(self, shown: Snapshot, ghosts_of: Sequence[int]) -> Marks:
        names = self._plan.config.overlay
        return Marks(
            contacts="contacts" in names,
            errors="error" in names,
            key_bodies=tuple(self._plan.header.facts.get("key_bodies") or ()) if "key_bodies" in names else (),
            targets=tuple(zip(ghosts_of, shown.ghosts, strict=True)),
        )

    def _stage_for(self, actors: Sequence[ActorSpec], ghosts_of: list[int], poses: Sequence[ActorPose]) -> Stage:
        key = (tuple(actors), self._looks)
        stage = self._stages.get(key)
        if stage is None or list(stage.ghosts_of[: len(ghosts_of)]) != ghosts_of:
            if stage is not None:
                stage.close()
            width, height, quality = self._plan.width, self._plan.height, self._plan.config.quality
            stage = self._stages[key] = Stage(
                actors, width=width, height=height, ghosts_of=ghosts_of, quality=quality, reach=_reach(poses),
                detail=self._detail,
            )
        return stage

    def _gather(self, tile: Tile, moment: Moment) -> tuple[Snapshot, list[ActorSpec], list[int]]:
        """Several environments on one ground: neighbours in rows, the first in the middle."""
        actors: list[ActorSpec] = []
        poses: list[ActorPose] = []
        ghosts: list[ActorPose] = []
        ghosts_of: list[int] = []
        contacts: list[FloatArray] = []
        is_overlaid = self._plan.config.env_layout is EnvLayout.OVERLAID
        if self._spacing is None:
            reach = np.ptp(moment[0].poses[0][0], axis=0).max() if moment[0].poses else 1.0
            self._spacing = 0.0 if is_overlaid else _NEIGHBOURS * max(1.0, float(reach))
        for number, (place, index) in enumerate(
            zip(neighbour_places(len(tile.subjects)), tile.subjects, strict=True)
        ):
            snapshot, offset, cast = moment[index], place * self._spacing, self._plan.header.casts[index].actors
            ghosts_of += [len(actors) + i for i in range(len(snapshot.ghosts))]
            alpha = _OVERLAID_ALPHA if is_overlaid else 1.0
            color, ghost = subject_color(number), ghost_color(number)
            actors += [replace(actor, color=color, ghost_color=ghost, alpha=alpha) for actor in cast]
            poses += [(pos + offset, rot) for pos, rot in snapshot.poses]
            ghosts += [(pos + offset, rot) for pos, rot in snapshot.ghosts]
            contacts += snapshot.contacts or [np.zeros_like(pos) for pos, _ in snapshot.poses]
        first = moment[tile.subjects[0]]
        # a cut of one of them is none of the camera, which keeps all in view
        is_cut = all(moment[index].is_cut for index in tile.subjects)
        together = replace(first, poses=poses, ghosts=ghosts, contacts=contacts, is_cut=is_cut)
        return together, actors, ghosts_of

    def _aim(self, shooting: _Shooting, tile: Tile, shown: Snapshot, stage: Stage, count: int) -> CameraPose:
        pos, rot = shown.poses[0] if shown.poses else _NOBODY
        roots = None
        if count > 1:
            step = len(shown.poses) // count
            roots = np.array([shown.poses[i * step][0][0] for i in range(count)])
        return shooting.rig.pose(
            time=shown.time,
            root_pos=pos[0],
            root_rot=rot[0],
            size=stage.subject_size,
            is_cut=shown.is_cut,
            bodies=dict(zip(stage.subject_bodies, zip(pos, rot, strict=True), strict=False)),
            subjects=roots,
            aspect=tile.rect.width / tile.rect.height,
        )

    def _set_beside(
        self, shooting: _Shooting, snapshot: Snapshot, camera: CameraPose, stage: Stage
    ) -> tuple[Snapshot, CameraPose, FloatArray]:
        """Shift the ghosts to the right of the first picture, and the camera by half of it, so that both are
        in view; the shift is the third.
        """
        if shooting.beside is None:
            forward, up = camera_axes(camera)
            right = np.cross(forward, up)
            right[2] = 0.0
            shooting.beside = right / max(math.hypot(*right[:2]), 1e-9) * _BESIDE * stage.subject_size.height
        ghosts = [(pos + shooting.beside, rot) for pos, rot in snapshot.ghosts]
        half = 0.5 * shooting.beside if self._plan.config.target is None else np.zeros(3)
        camera = replace(camera, eye=camera.eye + half, target=camera.target + half)
        return replace(snapshot, ghosts=ghosts), camera, shooting.beside


def neighbour_places(count: int) -> FloatArray:
    """(count, 3) where neighbours stand, in units of their spacing: a row across the way (y), more rows behind it."""
    across = count if count <= 4 else math.ceil(math.sqrt(count))
    index = np.arange(count)
    column, row = index % across, index // across
    side = np.where(column % 2 == 1, (column + 1) // 2, -(column // 2))  # the first in the middle
    return np.stack([-1.0 * row, 1.0 * side, np.zeros(count)], axis=-1)


def _slices(tile: Tile) -> tuple[slice, slice]:
    rect = tile.rect
    return slice(rect.top, rect.top + rect.height), slice(rect.left, rect.left + rect.width)


def _reach(poses: Sequence[ActorPose]) -> float:
    roots = np.array([pos[0] for pos, _ in poses]).reshape(-1, 3)
    if len(roots) < 2:
        return 0.0
    distance = np.linalg.norm(roots[1:, :2] - roots[0, :2], axis=-1)
    return float(np.max(distance[distance <= _MAX_REACH], initial=0.0))
