"""The Stage: draws a Snapshot. A MuJoCo scene made only for filming, in which no physics ever runs."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from mimickit.video.camera.camera_rig import CameraPose, SubjectSize
from mimickit.video.config import Quality
from mimickit.video.errors import VideoError
from mimickit.video.layout import Rect
from mimickit.video.snapshot import ActorSpec, FloatArray, Snapshot, quat_to_matrix
from mimickit.video.stage import gl
from mimickit.video.stage.stage_markers import (
    NO_MARKS,
    Marker,
    MarkerDrawer,
    MarkerMaker,
    Marks,
    before_the_actor,
    max_markers,
)
from mimickit.video.stage.stage_scene import StageScene, build_scene, ground_origin, key_light_position

Frame = NDArray[np.uint8]

_GEOM = int(mujoco.mjtObj.mjOBJ_GEOM)
_DECOR = int(mujoco.mjtCatBit.mjCAT_DECOR)
_FONT_SCALE = 100  # the smallest of MuJoCo's fonts; none is drawn
_ALL_FACETS = 1080  # pixels of height from which round shapes have all of their look's facets
_MIN_SLICES = 16
_UPRIGHT = np.array([0.0, 0.0, 0.0, 1.0])
_FAR_AWAY = np.array([0.0, 0.0, -1000.0])  # where an actor goes that the snapshot doesn't place


class Stage:
    """Actors and ghosts on a lit ground under a sky. All methods are called on one thread, which owns its GL
    context.

    Frames are (height, width, 3) uint8 RGB.
    """

    def __init__(
        self,
        actors: Sequence[ActorSpec],
        *,
        width: int,
        height: int,
        ghosts_of: Sequence[int] = (),
        quality: Quality = Quality.STANDARD,
        reach: float = 0.0,
        detail: float = 1.0,
    ) -> None:
        """ghosts_of: which actors have a ghost. Raises VideoError where there is no GL, CharacterError where an
        actor's file can't be read.
        """
        self._scene = build_scene(
            actors, ghosts_of=ghosts_of, quality=quality, width=width, height=height, reach=reach, detail=detail
        )
        self._context: gl.GLContext | None = gl.open_context(width, height)
        self._renderer = _Renderer(self._scene, len(actors), width, height)
        self.num_actors = len(actors)
        self.ghosts_of = tuple(ghosts_of)
        self._marker_maker = MarkerMaker(self._scene, self.num_actors, self.ghosts_of)
        self._whole = Rect(0, 0, width, height)

    @property
    def subject_size(self) -> SubjectSize:
        """How big the first actor is."""
        return self._scene.subject

    @property
    def subject_bodies(self) -> tuple[str, ...]:
        """Names of the first actor's bodies."""
        return self._scene.subject_bodies

    @property
    def model(self) -> Any:
        """The compiled MjModel of the scene."""
        return self._scene.model

    def place(self, snapshot: Snapshot, marks: Marks = NO_MARKS) -> None:
        """Put every body where the snapshot has it, and mark what is marked; ghosts that it doesn't have are out of
        sight.
        """
        self._renderer.place(snapshot, len(self.ghosts_of))
        self._renderer.markers = self._marker_maker.markers(snapshot, marks)
        self._renderer.ghost_colors = self._marker_maker.ghost_colors(snapshot) if marks.errors else None

    def render(self, camera: CameraPose) -> Frame:
        """The picture of what was placed. The array is the stage's own and is drawn over by the next call."""
        self.draw(camera, self._whole)
        return self.read()

    def draw(self, camera: CameraPose, rect: Rect) -> None:
        """Draw what was placed into a part of the picture."""
        self._current().draw(camera, rect)

    def read(self) -> Frame:
        """The picture that was drawn. The array is the stage's own and is written over by the next call."""
        return self._current().read()

    def _current(self) -> "_Renderer":
        if self._context is None:
            raise VideoError("the stage is closed")
        self._context.make_current()  # another stage's may be
        return self._renderer

    def close(self) -> None:
        """Free GL; may be called twice."""
        if self._context is not None:
            self._context.make_current()
            self._renderer.free()
            self._context.free()
            self._context = None


class _Renderer:
    """The arrays and MuJoCo objects that a frame passes through, all made once."""

    def __init__(self, scene: StageScene, num_actors: int, width: int, height: int) -> None:
        model = scene.model
        self._scene, self._model, self._num_actors = scene, model, num_actors
        self._data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, self._data)
        mujoco.mj_camlight(model, self._data)
        self._geom_pos = model.geom_pos[scene.geom_ids].copy()
        self._geom_world = np.zeros_like(self._geom_pos)  # where place() has put them
        self._key_world = np.zeros(3)
        self._geom_rot = _matrices_of(model.geom_quat[scene.geom_ids])
        self._mjv = mujoco.MjvScene(model, maxgeom=model.ngeom + 64 + max_markers(scene))
        self._marker_drawer = MarkerDrawer(self._mjv, scene.subject.height, height)
        self.markers: Sequence[Marker] = ()
        self.ghost_colors: FloatArray | None = None  # (B, 4) RGBA of the ghosts' bodies, None for their own colour
        self._option = mujoco.MjvOption()
        self._option.sitegroup[:] = 0
        self._mjv.flags[mujoco.mjtRndFlag.mjRND_HAZE] = False
        self._camera = mujoco.MjvCamera()
        self._ghost_geoms = scene.geom_body >= sum(scene.body_counts[:num_actors])
        self._unshadowed: list[tuple[Any, int]] | None = None
        self._rect = mujoco.MjrRect(0, 0, width, height)
        _spare_facets(model, height)
        self._mjr = mujoco.MjrContext(model, _FONT_SCALE)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._mjr)
        if self._mjr.currentBuffer != mujoco.mjtFramebuffer.mjFB_OFFSCREEN:
            raise VideoError("no GL to draw with: this driver has no off-screen framebuffer")
        self._flipped = np.empty((height, width, 3), dtype=np.uint8)
        self._frame = np.empty_like(self._flipped)

    def place(self, snapshot: Snapshot, num_ghosts: int) -> None:
        counts, num_actors = self._scene.body_counts, self._num_actors
        poses = [*snapshot.poses, *snapshot.ghosts[:num_ghosts]]
        if len(snapshot.poses) != num_actors or any(len(p) != n for (p, _), n in zip(poses, counts, strict=False)):
            found, expected = [len(p) for p, _ in snapshot.poses], list(counts[:num_actors])
            raise VideoError(f"a snapshot's bodies: expected {expected} (one number an actor), found {found}")
        poses.extend((np.tile(_FAR_AWAY, (n, 1)), np.tile(_UPRIGHT, (n, 1))) for n in counts[len(poses) :])
        pos = np.concatenate([p for p, _ in poses])
        rot = quat_to_matrix(np.concatenate([r for _, r in poses]))
        if not (np.isfinite(pos).all() and np.isfinite(rot).all()):
            raise VideoError(f"a snapshot at {snapshot.time:.3f} s holds a body pose that is not a number")
        scene = self._scene
        of_geom = rot[scene.geom_body]
        self._geom_world = pos[scene.geom_body] + np.einsum("gij,gj->gi", of_geom, self._geom_pos)
        self._data.geom_xmat[scene.geom_ids] = (of_geom @ self._geom_rot).reshape(-1, 9)
        self._key_world = key_light_position(pos[0] if len(pos) else np.zeros(3))

    def draw(self, camera: CameraPose, rect: Rect) -> None:
        origin = ground_origin(camera.eye)
        self._data.geom_xpos[self._scene.geom_ids] = self._geom_world - origin
        if self.ghost_colors is not None:  # of which a ghost inside of its actor would show nothing
            ghosts, height = self._ghost_geoms, self._scene.subject.height
            brought = before_the_actor(self._geom_world[ghosts], camera.eye, height)
            self._data.geom_xpos[self._scene.geom_ids[ghosts]] = brought - origin
        self._data.light_xpos[self._scene.key_light] = self._key_world - origin
        camera = replace(camera, eye=camera.eye - origin, target=camera.target - origin)
        self._aim(camera)
        mujoco.mjv_updateScene(
            self._model, self._data, self._option, None, self._camera, mujoco.mjtCatBit.mjCAT_ALL, self._mjv
        )
        self._touch_up()
        self._marker_drawer.add(self.markers, camera, origin)
        forward, up = camera_axes(camera)
        for eye in self._mjv.camera:
            eye.pos, eye.forward, eye.up = camera.eye, forward, up
        # GL counts rows from below
        view = mujoco.MjrRect(rect.left, self._rect.height - rect.top - rect.height, rect.width, rect.height)
        mujoco.mjr_render(view, self._mjv, self._mjr)

    def read(self) -> Frame:
        mujoco.mjr_readPixels(self._flipped, None, self._rect, self._mjr)
        np.copyto(self._frame, self._flipped[::-1])  # GL's first row is the lowest
        return self._frame

    def _touch_up(self) -> None:
        """Make decorations, which cast no shadow, of ghosts and of the ground, which would speckle in its
        own; and colour the ghosts.

        Needed for every frame: mjv_updateScene says anew of every geom what it is.
        """
        if self._unshadowed is None:
            self._unshadowed = self._find_unshadowed()
        colors = self.ghost_colors
        for geom, body in self._unshadowed:
            geom.category = _DECOR
            if colors is not None and 0 <= body < len(colors):
                geom.rgba = colors[body]

    def _find_unshadowed(self) -> list[tuple[Any, int]]:
        """Geoms of the MjvScene, each with the index of its body among those of all ghosts, less than 0 for none."""
        scene, num_actor_bodies = self._scene, sum(self._scene.body_counts[: self._num_actors])
        body_of = dict(zip(scene.geom_ids.tolist(), (scene.geom_body - num_actor_bodies).tolist(), strict=True))
        ids = set(scene.unshadowed_geoms.tolist())
        geoms = self._mjv.geoms[: self._mjv.ngeom]
        return [(g, body_of.get(g.objid, -1)) for g in geoms if g.objtype == _GEOM and g.objid in ids]

    def _aim(self, camera: CameraPose) -> None:
        look = camera.target - camera.eye
        self._model.vis.global_.fovy = camera.fov
        self._camera.lookat[:] = camera.target
        self._camera.distance = float(np.linalg.norm(look))
        self._camera.azimuth = math.degrees(math.atan2(look[1], look[0]))
        self._camera.elevation = math.degrees(math.atan2(look[2], math.hypot(look[0], look[1])))

    def free(self) -> None:
        self._mjr.free()


def _spare_facets(model: Any, height: int) -> None:
    """Of round shapes, in pictures too small to show them: a facet's edge strays from the circle as its square does."""
    quality = model.vis.quality
    slices = round(quality.numslices * min(math.sqrt(height / _ALL_FACETS), 1.0))
    quality.numslices = min(max(slices, _MIN_SLICES), quality.numslices)
    quality.numstacks = max(quality.numslices // 2, _MIN_SLICES // 2)


def camera_axes(camera: CameraPose) -> tuple[FloatArray, FloatArray]:
    """Unit vectors (3,): where the camera looks, and what is up in its picture (orthogonal to the first)."""
    forward = camera.target - camera.eye
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, camera.up)
    right = right / np.linalg.norm(right)
    return forward, np.cross(right, forward)


def _matrices_of(quat_wxyz: FloatArray) -> FloatArray:
    return quat_to_matrix(np.roll(quat_wxyz, -1, axis=-1))
