"""Markers in the scene: arrows of ground forces, key bodies and their targets, and a ghost coloured by its error."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from mimickit.video.camera.camera_rig import CameraPose
from mimickit.video.overlay.body_error import ERROR_RANGE, body_errors, error_colors
from mimickit.video.snapshot import ActorPose, FloatArray, Snapshot, quat_to_matrix
from mimickit.video.stage.stage_scene import StageScene

Rgba = NDArray[np.float32]
"""(4,) in 0..1."""

_GRAVITY = 9.81  # m/s^2
_LIGHTEST = 1e-3  # kg; of what weighs less, the file says nothing of weights
_UNKNOWN_MASS = 50.0  # kg
# lengths below are shares of the first actor's height
_WEIGHT_LENGTH = 0.32  # of the arrow of a force that is the body's weight: half a metre of a person's 1.57 m
_MAX_LENGTH = 1.1
_ARROW_RADIUS, _DISC_RADIUS = 0.016, 0.045
_KEY_RADIUS, _TARGET_RADIUS = 0.019, 0.028
_LINE_WIDTH = 1.0 / 320.0  # of the picture's height
_FLATNESS = 0.1  # of a disc: its height by its width
_IN_FRONT = 0.3  # how much nearer to the camera markers are drawn: a body doesn't hide its own
_LEAST_FORCE = 0.03  # of the weight, which is worth an arrow
_FORCE_COLOR = np.array([0.91, 0.13, 0.50, 0.75], dtype=np.float32)
_DISC_COLOR = np.array([0.91, 0.13, 0.50, 0.45], dtype=np.float32)
_KEY_COLOR = np.array([1.0, 0.80, 0.10, 1.0], dtype=np.float32)
_TARGET_COLOR = np.array([1.0, 0.90, 0.45, 0.42], dtype=np.float32)
_JOIN_COLOR = np.array([1.0, 0.84, 0.25, 0.90], dtype=np.float32)
_GHOST_IN_FRONT = 0.1  # how much nearer to the camera a coloured ghost is drawn
_ERROR_ALPHA = (0.34, 0.85)  # of a ghost's body without an error, and of one with a large error
_PER_BODY = 2 + 3  # markers: an arrow and its disc; a key body, its target and what joins them

_ARROW, _SPHERE = mujoco.mjtGeom.mjGEOM_ARROW, mujoco.mjtGeom.mjGEOM_SPHERE
_LINE, _DISC = mujoco.mjtGeom.mjGEOM_LINE, mujoco.mjtGeom.mjGEOM_ELLIPSOID


class Marker(NamedTuple):
    """A shape from one point to another; a sphere or disc (a flat ellipsoid, which has few facets) is at the first."""

    shape: mujoco.mjtGeom
    start: FloatArray
    """(3,) m."""
    end: FloatArray
    """(3,) m."""
    radius: float
    """m; a line's is the picture's to choose."""
    rgba: Rgba


@dataclass(frozen=True)
class Marks:
    """What is marked in a scene."""

    contacts: bool = False
    """Arrows of the ground's forces."""
    errors: bool = False
    """Colour the ghosts by the error of every body."""
    key_bodies: tuple[str, ...] = ()
    """Names of the bodies that are marked, with their targets."""
    targets: Sequence[tuple[int, ActorPose]] = ()
    """Reference poses, whether a ghost shows them or not, each with the index of the actor that it is of."""
    shift: FloatArray = field(default_factory=lambda: np.zeros(3))
    """(3,) m, how far from the actors their references are shown."""


NO_MARKS = Marks()


def before_the_actor(places: FloatArray, eye: FloatArray, size: float) -> FloatArray:
    """Places (N, 3) of a ghost's geoms moved towards the eye (3,), each along its own ray, which leaves it where it is
    in the picture; size is the actor's height (m).
    """
    ray = places - eye
    distance = np.sqrt(np.einsum("gi,gi->g", ray, ray))[:, None]
    return places - ray * np.minimum(_GHOST_IN_FRONT * size / np.maximum(distance, 1e-6), 0.5)


def max_markers(scene: StageScene) -> int:
    """How many markers there can be."""
    return _PER_BODY * sum(scene.body_counts)


class MarkerMaker:
    """Finds the markers of a snapshot. It knows the actors' names, weights and heights from their scene."""

    def __init__(self, scene: StageScene, num_actors: int, ghosts_of: Sequence[int]) -> None:
        model = scene.model
        self._size = scene.subject.height
        self._ghosts_of = tuple(ghosts_of)
        edges = 1 + np.concatenate(([0], np.cumsum(scene.body_counts)))
        spans = [slice(int(a), int(b)) for a, b in zip(edges, edges[1:], strict=False)][:num_actors]
        self._weights = [_weight(float(model.body_mass[span].sum())) for span in spans]
        names = [model.body(i).name.partition("/")[2] for i in range(1, int(edges[num_actors]))]
        self._names = [{name: i for i, name in enumerate(names[s.start - 1 : s.stop - 1])} for s in spans]
        self._centers = [_geom_centers(model, span) for span in spans]

    def markers(self, snapshot: Snapshot, marks: Marks) -> list[Marker]:
        """Of all actors, in the snapshot's frame."""
        found: list[Marker] = []
        if marks.contacts:
            for index, forces in enumerate(snapshot.contacts[: len(snapshot.poses)]):
                found += self._forces(index, snapshot.poses[index], forces)
        if marks.key_bodies:
            targets = dict(marks.targets)
            for index, pose in enumerate(snapshot.poses):
                found += self._key_bodies(index, pose, targets.get(index), marks)
        return found

    def ghost_colors(self, snapshot: Snapshot) -> FloatArray:
        """(B, 4) RGBA of all bodies of the ghosts, strung together."""
        pairs = zip(self._ghosts_of, snapshot.ghosts, strict=False)
        errors = [body_errors(snapshot.poses[index], ghost) for index, ghost in pairs]
        error = np.concatenate(errors) if errors else np.zeros(0)
        alpha = np.interp(error / ERROR_RANGE, (0.0, 1.0), _ERROR_ALPHA)
        return np.concatenate((error_colors(error), alpha[:, None]), axis=-1)

    def _forces(self, index: int, pose: ActorPose, forces: FloatArray) -> Iterator[Marker]:
        """From the ground below a body along the force on it; where exactly it acts, nobody knows."""
        weight, size = self._weights[index], self._size
        strength = np.sqrt(np.einsum("bi,bi->b", forces, forces))
        for body in np.flatnonzero(strength > _LEAST_FORCE * weight):
            place = pose[0][body] + quat_to_matrix(pose[1][body]) @ self._centers[index][body]
            place = np.array([place[0], place[1], 0.0])
            length = min(_WEIGHT_LENGTH * strength[body] / weight, _MAX_LENGTH) * size
            end = place + forces[body] * (length / strength[body])
            yield Marker(_ARROW, place, end, _ARROW_RADIUS * size, _FORCE_COLOR)
            yield Marker(_DISC, place, place, _DISC_RADIUS * size, _DISC_COLOR)

    def _key_bodies(self, index: int, pose: ActorPose, target: ActorPose | None, marks: Marks) -> Iterator[Marker]:
        """A reference that is shown elsewhere has its targets there, joined to where the key bodies would be there."""
        size = self._size
        for name in marks.key_bodies:
            body = self._names[index].get(name)
            if body is None:
                continue
            place = pose[0][body]
            yield Marker(_SPHERE, place, place, _KEY_RADIUS * size, _KEY_COLOR)
            if target is not None:
                aim = target[0][body] + marks.shift
                yield Marker(_SPHERE, aim, aim, _TARGET_RADIUS * size, _TARGET_COLOR)
                yield Marker(_LINE, place + marks.shift, aim, 0.0, _JOIN_COLOR)


class MarkerDrawer:
    """Appends markers to an MjvScene that mjv_updateScene has filled."""

    def __init__(self, mjv: Any, size: float, height: int) -> None:
        """size: height of the first actor (m); height: of the picture (pixels)."""
        self._mjv, self._size = mjv, size
        self._line_width = max(1.5, height * _LINE_WIDTH)
        self._geoms = mjv.geoms

    def add(self, markers: Sequence[Marker], camera: CameraPose, origin: FloatArray) -> None:
        """Add them as they are seen by the camera; origin (3,) is taken off their places, and is off the camera's.

        They are shrunk towards the eye: that leaves every marker where it is in the picture and brings it in front of
        the body that it belongs to.
        """
        distance = float(np.linalg.norm(camera.target - camera.eye))
        scale = 1.0 - min(_IN_FRONT * self._size / distance, 0.5)
        offset = camera.eye * (1.0 - scale) - scale * origin
        for marker in markers:
            if self._mjv.ngeom >= self._mjv.maxgeom:
                return
            self._draw(marker, offset + scale * marker.start, offset + scale * marker.end, scale * marker.radius)

    def _draw(self, marker: Marker, start: FloatArray, end: FloatArray, radius: float) -> None:
        geom = self._geoms[self._mjv.ngeom]
        size = radius * _ROUND.get(marker.shape, _NO_SIZE)
        mujoco.mjv_initGeom(geom, marker.shape, size, start, _UNTURNED, marker.rgba)
        if marker.shape is _ARROW:
            end = 2.0 * end - start  # an arrow is drawn half as long as mjv_connector makes it
        if marker.shape not in _ROUND:
            width = self._line_width if marker.shape is _LINE else radius
            mujoco.mjv_connector(geom, marker.shape, width, start, end)
        # what mjv_initGeom leaves as it finds it; decoration casts no shadow
        geom.category, geom.objtype, geom.objid, geom.segid = _DECOR, _NO_OBJECT, -1, -1
        self._mjv.ngeom += 1


_DECOR, _NO_OBJECT = int(mujoco.mjtCatBit.mjCAT_DECOR), int(mujoco.mjtObj.mjOBJ_UNKNOWN)
_ROUND = {_SPHERE: np.ones(3), _DISC: np.array([1.0, 1.0, _FLATNESS])}
_NO_SIZE = np.zeros(3)
_UNTURNED = np.eye(3).reshape(-1)


def _weight(mass: float) -> float:
    """N."""
    return _GRAVITY * (mass if mass > _LIGHTEST else _UNKNOWN_MASS)


def _geom_centers(model: Any, span: slice) -> FloatArray:
    """(B, 3) middle of each body's geoms in its own frame (m)."""
    centers = np.zeros((span.stop - span.start, 3))
    for row, body in enumerate(range(span.start, span.stop)):
        own = model.geom_pos[model.geom_bodyid == body]
        if len(own):
            centers[row] = own.mean(axis=0)
    return centers
