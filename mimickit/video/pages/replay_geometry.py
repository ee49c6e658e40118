"""What the replay page draws: shapes, colours and lights, taken from the same scene that the films are made of."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np

from mimickit.video import palette
from mimickit.video.config import Quality
from mimickit.video.pages.mesh_thinning import thinned
from mimickit.video.snapshot import FloatArray
from mimickit.video.stage.stage_scene import build_scene
from mimickit.video.traces.trace import EnvCast

Color = tuple[float, float, float]

_SHAPES = {
    int(mujoco.mjtGeom.mjGEOM_PLANE): "plane",
    int(mujoco.mjtGeom.mjGEOM_SPHERE): "sphere",
    int(mujoco.mjtGeom.mjGEOM_CAPSULE): "capsule",
    int(mujoco.mjtGeom.mjGEOM_ELLIPSOID): "ellipsoid",
    int(mujoco.mjtGeom.mjGEOM_CYLINDER): "cylinder",
    int(mujoco.mjtGeom.mjGEOM_BOX): "box",
    int(mujoco.mjtGeom.mjGEOM_MESH): "mesh",
}
_VISIBLE_GROUPS = 3  # geom groups 0, 1, 2 are visual by MuJoCo's convention
_DEFAULT_RGBA = (0.5, 0.5, 0.5, 1.0)  # with which a geom shows its material's colour
_MAX_FACES = 4000  # of a mesh: one with more is thinned out
_GRID = 65535  # steps of a mesh's vertices along each side of its box


class MeshStore:
    """The meshes of a page, thinned out and each kept once however many geoms, ghosts and runs show it."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        """Of each mesh its box (m), and the numbers of its vertices and faces."""
        self._parts: list[bytes] = []
        self._index: dict[bytes, int] = {}

    def add(self, model: Any, mesh: int) -> int:
        """The place in `entries` of a model's mesh."""
        start, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
        first, num_faces = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
        vertices = np.asarray(model.mesh_vert[start : start + count], dtype=np.float64)
        vertices, faces = thinned(vertices, model.mesh_face[first : first + num_faces], _MAX_FACES)
        faces = np.asarray(faces, dtype="<u4")
        low, size = vertices.min(axis=0), np.maximum(np.ptp(vertices, axis=0), 1e-9)
        steps = np.rint((vertices - low) / size * _GRID).astype("<u2")
        content = faces.tobytes() + steps.tobytes() + bytes(-steps.nbytes % 4)
        key = hashlib.sha256(content + low.tobytes() + size.tobytes()).digest()
        if key not in self._index:
            self._index[key] = len(self.entries)
            counts = {"vertices": len(vertices), "faces": len(faces)}
            self.entries.append({**counts, "low": _short(low), "size": _short(size)})
            self._parts.append(content)
        return self._index[key]

    def content(self) -> bytes:
        """All meshes one after the other: faces (uint32), vertices in 65535ths of the box (uint16), padding to 4."""
        return b"".join(self._parts)


def figure_of(cast: EnvCast, num_ghosts: int, color: Color | None, meshes: MeshStore) -> dict[str, Any]:
    """Shapes and size of an environment's actors and ghosts, as JSON can hold them.

    color tells apart runs that are shown together: the actors are painted in shades of it; None keeps the films'
    colours. Bodies are numbered through all actors, then all ghosts.
    """
    ghosts = [replace(actor, is_ghost=True) for actor in cast.actors[:num_ghosts]]
    scene = build_scene([*cast.actors, *ghosts], quality=Quality.DRAFT, width=16, height=16)
    num_solid = sum(cast.body_counts)
    geoms = [geom for geom in scene.geom_ids if _is_visible(scene.model, int(geom))]
    owner = dict(zip(scene.geom_ids.tolist(), scene.geom_body.tolist(), strict=True))
    paint = {int(geom): _rgba(scene.model, int(geom)) for geom in geoms}
    if color is not None:
        brightest = max((max(paint[g][:3]) for g in paint if owner[g] < num_solid), default=1.0) or 1.0
        for geom in (g for g in paint if owner[g] < num_solid):
            shade = max(paint[geom][:3]) / brightest
            paint[geom] = (shade * color[0], shade * color[1], shade * color[2], paint[geom][3])
    names = [scene.model.body(1 + i).name.partition("/")[2] for i in range(cast.body_counts[0])]
    return {
        "solid": num_solid,
        "geoms": [_geom(scene.model, int(geom), owner[int(geom)], paint[int(geom)], meshes) for geom in geoms],
        "height": round(scene.subject.height, 4),
        "root_height": round(scene.subject.root_height, 4),
        "head": next((i for i, name in enumerate(names) if "head" in name.lower()), 0),
    }


def look() -> dict[str, Any]:
    """Sky, ground and lights as in the films."""
    return {
        "haze": palette.HAZE,
        "zenith": palette.ZENITH,
        "floor": palette.FLOOR,
        "floor_other": palette.FLOOR_OTHER,
        "line": palette.LINE,
        "distant_floor": _short(palette.distant_floor()),
        "cell": palette.CELL,
        "ambient": _short(palette.AMBIENT),
        "key": _short(palette.KEY_COLOR),
        "key_direction": _short(palette.KEY_DIRECTION),
        "rim": _short(palette.RIM_COLOR),
        "rim_direction": _short(palette.RIM_DIRECTION),
        "fill": palette.FILL,
    }


def run_colors(count: int) -> list[Color | None]:
    """A colour for each of several runs; one alone keeps the films' colours."""
    if count == 1:
        return [None]
    bright = palette.SUBJECT_COLORS
    colors = [*bright, *((0.6 * red, 0.6 * green, 0.6 * blue) for red, green, blue in bright)]
    return [colors[index % len(colors)] for index in range(count)]


def _is_visible(model: Any, geom: int) -> bool:
    is_flat = int(model.geom_type[geom]) == mujoco.mjtGeom.mjGEOM_PLANE
    return (
        int(model.geom_type[geom]) in _SHAPES
        and model.geom_group[geom] < _VISIBLE_GROUPS
        and _rgba(model, geom)[3] > 0.0
        and not (is_flat and min(model.geom_size[geom, :2]) <= 0.0)  # endless: the page has a ground of its own
    )


def _rgba(model: Any, geom: int) -> tuple[float, float, float, float]:
    color, material = model.geom_rgba[geom], int(model.geom_matid[geom])
    if material >= 0 and np.allclose(color, _DEFAULT_RGBA):
        color = model.mat_rgba[material] * _mean_color(model, material)
    red, green, blue, alpha = (float(part) for part in color)
    return red, green, blue, alpha


def _mean_color(model: Any, material: int) -> FloatArray:
    """RGBA factor of a material's texture, which the page shows as one colour."""
    texture = int(model.mat_texid[material, mujoco.mjtTextureRole.mjTEXROLE_RGB])
    if texture < 0 or model.tex_nchannel[texture] < 3:
        return np.ones(4)
    channels, first = int(model.tex_nchannel[texture]), int(model.tex_adr[texture])
    count = int(model.tex_height[texture]) * int(model.tex_width[texture])
    pixels = model.tex_data[first : first + channels * count].reshape(count, channels)
    return np.append(pixels[:, :3].mean(axis=0) / 255.0, 1.0)


def _geom(model: Any, geom: int, body: int, rgba: Sequence[float], meshes: MeshStore) -> dict[str, Any]:
    shape = _SHAPES[int(model.geom_type[geom])]
    entry = {
        "body": body,
        "shape": shape,
        "size": _short(model.geom_size[geom]),
        "pos": _short(model.geom_pos[geom]),
        "rot": _short(np.roll(model.geom_quat[geom], -1)),
        "rgba": _short(np.array(rgba)),
    }
    if shape == "mesh":
        entry["mesh"] = meshes.add(model, int(model.geom_dataid[geom]))
    return entry


def _short(values: FloatArray) -> list[float]:
    """values rounded to what can be seen."""
    return [round(float(value), 6) for value in values]
