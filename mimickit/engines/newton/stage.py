"""Draws a Snapshot with Newton's ray-traced camera sensor: no GL, no display, on the device of the simulation.

The scene is a model of its own, made only for filming, which holds what the Stage's scene holds: the actors that are on
film and no other. The simulation is neither read nor touched. Two things of the Stage are missing: marks in the scene,
and actors that are half transparent (ghosts are).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import newton  # noqa: TID253  (this module is imported by the Newton recorder alone)
import numpy as np
import warp as wp  # noqa: TID253

from mimickit.engines.newton.bands import Bands
from mimickit.engines.newton.scene import add_geom
from mimickit.engines.newton.view import SensorView, View
from mimickit.engines.warp_lock import WARP_LOCK
from mimickit.video import palette
from mimickit.video.camera.camera_rig import CameraPose, SubjectSize
from mimickit.video.config import Quality
from mimickit.video.errors import VideoError
from mimickit.video.layout import Rect
from mimickit.video.snapshot import ActorSpec, Snapshot
from mimickit.video.stage.stage import Frame
from mimickit.video.stage.stage_markers import NO_MARKS, Marks
from mimickit.video.stage.stage_scene import StageScene, build_scene, ground_origin

_VISIBLE_GROUPS = 3  # geom groups 0, 1, 2 are visual by MuJoCo's convention
_GROUND_SIZE = 60.0  # m, from the camera to the ground's edge
_TEXTURE_SIZE = 256  # pixels a side
_AWAY = (0.0, 0.0, -1000.0, 0.0, 0.0, 0.0, 1.0)  # where a body goes that the snapshot doesn't place
_KEY_LIGHT, _SKY_LIGHT, _GROUND_LIGHT = 0.61, 0.42, 0.18  # radiance
_GHOST_ALPHA = palette.GHOST_COLOR[3] + 0.2  # a ghost has no light of its own to shine through


@dataclass(frozen=True)
class _Look:
    samples: int  # rays a pixel
    shadows: bool


_LOOKS = {Quality.DRAFT: _Look(1, False), Quality.STANDARD: _Look(1, True), Quality.HIGH: _Look(4, True)}


class NewtonStage:
    """Actors and ghosts on a lit ground under a sky; as video.stage.Stage, but ray-traced. Frames are (height, width,
    3) uint8 RGB.
    """

    def __init__(
        self,
        actors: Sequence[ActorSpec],
        *,
        width: int,
        height: int,
        device: str,
        ghosts_of: Sequence[int] = (),
        quality: Quality = Quality.STANDARD,
    ) -> None:
        """ghosts_of: which actors have a ghost. Raises CharacterError where an actor's file can't be read."""
        scene = build_scene(actors, ghosts_of=ghosts_of, quality=quality, width=width, height=height)
        self.subject_size: SubjectSize = scene.subject
        self.subject_bodies: tuple[str, ...] = scene.subject_bodies
        self.ghosts_of = tuple(ghosts_of)
        self._counts, self._num_actors = scene.body_counts, len(actors)
        self._look = _LOOKS[quality]
        with WARP_LOCK:
            self._model = _film_model(scene, device)
            self._state = self._model.state()
        self._poses = np.tile(np.array(_AWAY, dtype=np.float32), (self._model.body_count, 1))
        self._has_ghosts = False
        with WARP_LOCK:
            self._sensor = self._make_sensor()
        self._views: dict[tuple[int, int], View] = {}  # by size
        self._bands = Bands(device)
        self._frame = np.empty((height, width, 3), dtype=np.uint8)

    def _make_sensor(self) -> Any:
        kinds = newton.sensors.SensorCamera
        smooth = kinds.AntiAliasing.SSAA if self._look.samples > 1 else kinds.AntiAliasing.NONE
        sensor = kinds(
            self._model,
            default_render_config=kinds.RenderConfig(
                enable_textures=True, enable_shadows=self._look.shadows, anti_aliasing=smooth,
                enable_backface_culling=False,  # of mirrored meshes all faces look inwards
            ),
        )
        direction = palette.KEY_DIRECTION / np.linalg.norm(palette.KEY_DIRECTION)
        color = _KEY_LIGHT * palette.KEY_COLOR / palette.KEY_COLOR.max()
        sensor.create_default_light(
            enable_shadows=self._look.shadows, direction=wp.vec3f(*direction), color=wp.vec3f(*color)
        )
        sensor.set_ambient_light([_SKY_LIGHT] * 3, [_GROUND_LIGHT] * 3)
        return sensor

    # ------------------------------------------------------------------ placing

    def place(self, snapshot: Snapshot, marks: Marks = NO_MARKS) -> None:
        """Put every body where the snapshot has it; ghosts that it doesn't have are out of sight. Marks are not
        drawn.
        """
        counts = self._counts
        found, expected = [len(pos) for pos, _ in snapshot.poses], list(counts[: self._num_actors])
        if found != expected:
            raise VideoError(f"a snapshot's bodies: expected {expected} (one number an actor), found {found}")
        ghosts = snapshot.ghosts[: len(self.ghosts_of)]
        poses = [np.concatenate(pose, axis=1) for pose in (*snapshot.poses, *ghosts)]
        self._poses[:-1] = _AWAY
        if poses:
            strung = np.concatenate(poses)
            if not np.isfinite(strung).all():
                raise VideoError(f"a snapshot at {snapshot.time:.3f} s holds a body pose that is not a number")
            self._poses[: len(strung)] = strung
        self._has_ghosts = bool(ghosts)

    # ------------------------------------------------------------------ drawing

    def draw(self, camera: CameraPose, rect: Rect) -> None:
        """Draw what was placed into a part of the picture."""
        picture = self._frame[rect.top : rect.top + rect.height, rect.left : rect.left + rect.width]
        with WARP_LOCK:
            view = self._view(rect)
            picture[:] = self._trace(view, camera, with_ghosts=False)
            if self._has_ghosts:
                solid = self._trace(view, camera, with_ghosts=True)
                picture[:] = np.rint(_GHOST_ALPHA * solid + (1.0 - _GHOST_ALPHA) * picture)

    def read(self) -> Frame:
        """The picture that was drawn. The array is the stage's own and is written over by the next call."""
        return self._frame

    def close(self) -> None:
        """Free everything; may be called twice."""
        self._views.clear()
        self._bands.close()

    def _view(self, rect: Rect) -> View:
        size = (rect.width, rect.height)
        if size not in self._views:
            self._views[size] = self._make_view(*size)
        return self._views[size]

    def _make_view(self, width: int, height: int) -> View:
        return SensorView(self._sensor, self._state, width, height, self._bands, samples=self._look.samples)

    def _trace(self, view: View, camera: CameraPose, *, with_ghosts: bool) -> Frame:
        poses = self._poses.copy()
        if not with_ghosts:
            poses[sum(self._counts[: self._num_actors]) : -1] = _AWAY
        poses[-1, :3] = ground_origin(camera.eye)
        self._state.body_q.assign(poses)
        self._model.bvh_refit_shapes(self._state)
        return view.shoot(camera)


def _film_model(scene: StageScene, device: str) -> Any:
    """A newton.Model with a body for every body of the scene, and a last one that carries the ground."""
    mj = scene.model
    world = newton.ModelBuilder()
    num_bodies = sum(scene.body_counts)
    for body in range(num_bodies + 1):
        world.add_body(label=f"body_{body}", mass=1.0, inertia=np.eye(3))
    for geom, body in zip(scene.geom_ids, scene.geom_body, strict=True):
        if mj.geom_group[geom] < _VISIBLE_GROUPS:
            add_geom(world, mj, int(geom), body=int(body), color=_color(mj, int(geom)))
    look = newton.ModelBuilder.ShapeConfig(density=0.0, has_shape_collision=False, has_particle_collision=False)
    world.add_shape_mesh(num_bodies, mesh=_ground_mesh(), cfg=look, color=(1.0, 1.0, 1.0))
    film = newton.ModelBuilder()
    film.replicate(world, 1)
    return film.finalize(device=device)


def _color(mj: Any, geom: int) -> tuple[float, float, float]:
    material = int(mj.geom_matid[geom])
    r, g, b = (float(v) for v in (mj.geom_rgba[geom] if material < 0 else mj.mat_rgba[material])[:3])
    return r, g, b


def _ground_mesh() -> Any:
    """A square around the origin, in cells of two shades."""
    half, cells = _GROUND_SIZE, _TEXTURE_SIZE // 2
    corners = np.array([[-half, -half, 0], [half, -half, 0], [half, half, 0], [-half, half, 0]], dtype=np.float32)
    index = np.arange(_TEXTURE_SIZE) // cells
    shade = np.where((index[:, None] + index) % 2 == 0, *(np.array(c)[:, None, None] for c in _FLOOR))
    texture = np.concatenate((np.moveaxis(shade, 0, -1), np.ones((*shade.shape[1:], 1))), axis=-1)
    return newton.Mesh(
        corners,
        np.array([0, 1, 2, 0, 2, 3], dtype=np.int32),
        uvs=corners[:, :2] / (2.0 * palette.CELL),
        texture=(texture * 255).astype(np.uint8),
        compute_inertia=False,
    )


_FLOOR = (palette.FLOOR, palette.FLOOR_OTHER)
