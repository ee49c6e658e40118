"""The Stage: draws a Snapshot. A MuJoCo scene made only for filming, in which no physics ever runs."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from mimickit.video import gl
from mimickit.video.camera_rig import CameraPose, SubjectSize
from mimickit.video.config import Quality
from mimickit.video.errors import VideoError
from mimickit.video.snapshot import ActorSpec, FloatArray, Snapshot, quat_to_matrix
from mimickit.video.stage_scene import StageScene, build_scene, ground_origin, key_light_position

Frame = NDArray[np.uint8]

_GEOM = int(mujoco.mjtObj.mjOBJ_GEOM)
_DECOR = int(mujoco.mjtCatBit.mjCAT_DECOR)
_FONT_SCALE = 100  # the smallest of MuJoCo's fonts; none is drawn
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
        num_ghosts: int = 0,
        quality: Quality = Quality.STANDARD,
        reach: float = 0.0,
    ) -> None:
        """Raises VideoError where there is no GL, CharacterError where an actor's file can't be read."""
        self._scene = build_scene(
            actors, num_ghosts=num_ghosts, quality=quality, width=width, height=height, reach=reach
        )
        self._context: gl.GLContext | None = gl.open_context(width, height)
        self._renderer = _Renderer(self._scene, width, height)
        self.num_actors = len(actors)
        self.num_ghosts = num_ghosts

    @property
    def subject_size(self) -> SubjectSize:
        """How big the first actor is."""
        return self._scene.subject

    @property
    def model(self) -> Any:
        """The compiled MjModel of the scene."""
        return self._scene.model

    def place(self, snapshot: Snapshot) -> None:
        """Put every body where the snapshot has it; ghosts that it doesn't have are out of sight."""
        self._renderer.place(snapshot, self.num_actors, self.num_ghosts)

    def render(self, camera: CameraPose) -> Frame:
        """The picture of what was placed. The array is the stage's own and is drawn over by the next call."""
        if self._context is None:
            raise VideoError("the stage is closed")
        return self._renderer.render(camera)

    def close(self) -> None:
        """Free GL; may be called twice."""
        if self._context is not None:
            self._renderer.free()
            self._context.free()
            self._context = None


class _Renderer:
    """The arrays and MuJoCo objects that a frame passes through, all made once."""

    def __init__(self, scene: StageScene, width: int, height: int) -> None:
        model = scene.model
        self._scene, self._model = scene, model
        self._data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, self._data)
        mujoco.mj_camlight(model, self._data)
        self._geom_pos = model.geom_pos[scene.geom_ids].copy()
        self._geom_world = np.zeros_like(self._geom_pos)  # where place() has put them
        self._key_world = np.zeros(3)
        self._geom_rot = _matrices_of(model.geom_quat[scene.geom_ids])
        self._mjv = mujoco.MjvScene(model, maxgeom=model.ngeom + 64)
        self._option = mujoco.MjvOption()
        self._option.sitegroup[:] = 0
        self._mjv.flags[mujoco.mjtRndFlag.mjRND_HAZE] = False
        self._camera = mujoco.MjvCamera()
        self._unshadowed: list[Any] | None = None
        self._rect = mujoco.MjrRect(0, 0, width, height)
        self._mjr = mujoco.MjrContext(model, _FONT_SCALE)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._mjr)
        if self._mjr.currentBuffer != mujoco.mjtFramebuffer.mjFB_OFFSCREEN:
            raise VideoError("no GL to draw with: this driver has no off-screen framebuffer")
        self._flipped = np.empty((height, width, 3), dtype=np.uint8)
        self._frame = np.empty_like(self._flipped)

    def place(self, snapshot: Snapshot, num_actors: int, num_ghosts: int) -> None:
        counts = self._scene.body_counts
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

    def render(self, camera: CameraPose) -> Frame:
        origin = ground_origin(camera.eye)
        self._data.geom_xpos[self._scene.geom_ids] = self._geom_world - origin
        self._data.light_xpos[self._scene.key_light] = self._key_world - origin
        camera = replace(camera, eye=camera.eye - origin, target=camera.target - origin)
        self._aim(camera)
        mujoco.mjv_updateScene(
            self._model, self._data, self._option, None, self._camera, mujoco.mjtCatBit.mjCAT_ALL, self._mjv
        )
        self._unshadow()
        forward, up = camera_axes(camera)
        for view in self._mjv.camera:
            view.pos, view.forward, view.up = camera.eye, forward, up
        mujoco.mjr_render(self._rect, self._mjv, self._mjr)
        mujoco.mjr_readPixels(self._flipped, None, self._rect, self._mjr)
        np.copyto(self._frame, self._flipped[::-1])  # GL's first row is the lowest
        return self._frame

    def _unshadow(self) -> None:
        """Make decorations, which cast no shadow, of ghosts and of the ground, which would speckle in its
        own.

        Needed for every frame: mjv_updateScene says anew of every geom what it is.
        """
        if self._unshadowed is None:
            ids = set(self._scene.unshadowed_geoms.tolist())
            geoms = self._mjv.geoms[: self._mjv.ngeom]
            self._unshadowed = [geom for geom in geoms if geom.objtype == _GEOM and geom.objid in ids]
        for geom in self._unshadowed:
            geom.category = _DECOR

    def _aim(self, camera: CameraPose) -> None:
        look = camera.target - camera.eye
        self._model.vis.global_.fovy = camera.fov
        self._camera.lookat[:] = camera.target
        self._camera.distance = float(np.linalg.norm(look))
        self._camera.azimuth = math.degrees(math.atan2(look[1], look[0]))
        self._camera.elevation = math.degrees(math.atan2(look[2], math.hypot(look[0], look[1])))

    def free(self) -> None:
        self._mjr.free()


def camera_axes(camera: CameraPose) -> tuple[FloatArray, FloatArray]:
    """Unit vectors (3,): where the camera looks, and what is up in its picture (orthogonal to the first)."""
    forward = camera.target - camera.eye
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, camera.up)
    right = right / np.linalg.norm(right)
    return forward, np.cross(right, forward)


def _matrices_of(quat_wxyz: FloatArray) -> FloatArray:
    return quat_to_matrix(np.roll(quat_wxyz, -1, axis=-1))
