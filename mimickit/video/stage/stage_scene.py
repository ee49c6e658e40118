"""Dresses a MuJoCo scene for filming: ground, sky, light, and the actors' bodies without their joints."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from mimickit.anim.char_file import attach, load_spec
from mimickit.video import palette
from mimickit.video.camera.camera_rig import SubjectSize
from mimickit.video.config import Quality
from mimickit.video.errors import VideoError
from mimickit.video.snapshot import ActorSpec

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Look:
    """What a level of quality means in MuJoCo's terms."""

    shadow_size: int  # texels a side of the shadow map, 0 for no shadow
    samples: int  # of antialiasing, 0 for none
    slices: int  # facets around a capsule or sphere


LOOKS = {
    Quality.DRAFT: Look(shadow_size=0, samples=0, slices=20),
    Quality.STANDARD: Look(shadow_size=2048, samples=0, slices=28),
    Quality.HIGH: Look(shadow_size=4096, samples=4, slices=40),
}

_DEFAULT_RGBA = (0.5, 0.5, 0.5, 1.0)  # MuJoCo's own for a geom without colour

_HALF = 0.6  # of the frame's height: views up to it get half the shadow map, by side

_TEXTURE_CELLS = 2  # cells a side in the ground's texture
_SHADOW_MARGIN = 2.6  # m around the subject that the shadow map covers
_FAR = 120.0  # m, to the edge of the ground
_VISIBLE_GROUPS = 3  # geom groups 0, 1, 2 are visual by MuJoCo's convention


@dataclass(frozen=True)
class StageScene:
    """A compiled scene, and which geom of it belongs to which of the snapshot's bodies, strung together."""

    model: Any
    body_counts: tuple[int, ...]  # of the actors, then of the ghosts
    geom_ids: NDArray[np.int64]  # (G,) geoms of actors
    geom_body: NDArray[np.int64]  # (G,) index into all actors' bodies strung together
    unshadowed_geoms: NDArray[np.int64]  # those that cast no shadow: ghosts, and the ground
    subject: SubjectSize
    subject_bodies: tuple[str, ...]  # names of the first actor's
    key_light: int
    rim_light: int


def build_scene(
    actors: Sequence[ActorSpec],
    *,
    ghosts_of: Sequence[int] = (),
    quality: Quality,
    width: int,
    height: int,
    reach: float = 0.0,
    detail: float = 1.0,
) -> StageScene:
    """Compile a scene of the actors and of ghosts of those whose indices are in ghosts_of.

    width and height are of the frame (pixels); reach is how far the actors spread around the first one (m),
    which the shadow covers; detail is how high the largest view is as a share of the frame: smaller ones do with a
    coarser shadow. Raises VideoError, or CharacterError where a file can't be read.
    """
    cast = [*actors, *(replace(actors[index], is_ghost=True) for index in ghosts_of)]
    look = LOOKS[quality]
    if detail <= _HALF:
        look = replace(look, shadow_size=look.shadow_size // 2)
    spec = _dressed_set(look, width, height, reach)
    counts = [_add_actor(spec, actor, index) for index, actor in enumerate(cast)]
    try:
        model = spec.compile()
    except ValueError as error:
        files = ", ".join(sorted({str(actor.asset_file) for actor in cast}))
        raise VideoError(f"{files}: MuJoCo can't compile the stage: {error}") from error
    _paint_textures(model)
    body_ids = np.arange(1, 1 + sum(counts))
    owner = np.full(model.nbody, -1, dtype=np.int64)
    owner[body_ids] = np.arange(len(body_ids))
    geom_ids = np.flatnonzero(owner[model.geom_bodyid] >= 0)
    starts = np.concatenate(([0], np.cumsum(counts)))
    geom_body = owner[model.geom_bodyid[geom_ids]]
    for index, actor in enumerate(cast):
        own = geom_ids[(geom_body >= starts[index]) & (geom_body < starts[index + 1])]
        _paint_actor(model, actor, own, index)
    return StageScene(
        model=model,
        body_counts=tuple(counts),
        geom_ids=geom_ids,
        geom_body=geom_body,
        unshadowed_geoms=np.append(geom_ids[geom_body >= starts[len(actors)]], model.geom("ground").id),
        subject_bodies=tuple(model.body(1 + i).name.partition("/")[2] for i in range(counts[0] if counts else 0)),
        subject=_subject_size(model, counts[0]) if counts else SubjectSize(1.0, 0.5),
        key_light=model.light("key").id,
        rim_light=model.light("rim").id,
    )


def ground_origin(eye: FloatArray) -> FloatArray:
    """(3,) the place near an eye (3,) in which the ground's pattern is what it is at the origin.

    Scenes are drawn relative to it: the ground then reaches as far around any camera, and single precision is enough.
    """
    period = palette.CELL * _TEXTURE_CELLS
    return np.array([*(np.round(eye[:2] / period) * period), 0.0])


def key_light_position(subject: FloatArray) -> FloatArray:
    """(3,) where the key light stands so that its shadow map is centred on a subject (3,).

    On a coarse lattice: a shadow map that moved with every frame would make the shadow's edge crawl.
    """
    step = 0.25
    center = np.array([*(np.round(subject[:2] / step) * step), 0.6])
    return center - 8.0 * palette.KEY_DIRECTION / np.linalg.norm(palette.KEY_DIRECTION)


# ---------------------------------------------------------------------- the set


def _dressed_set(look: Look, width: int, height: int, reach: float) -> Any:
    spec = mujoco.MjSpec()
    visual = spec.visual
    visual.global_.offwidth, visual.global_.offheight = width, height
    visual.quality.shadowsize = max(look.shadow_size, 1)
    visual.quality.offsamples = look.samples
    visual.quality.numslices, visual.quality.numstacks = look.slices, max(look.slices // 2, 8)
    spec.stat.extent = 1.0  # the lengths below are in units of it
    spec.stat.center = [0.0, 0.0, 0.0]
    visual.map.znear, visual.map.zfar = 0.05, _FAR
    visual.map.shadowclip = _SHADOW_MARGIN + min(reach, 40.0)
    visual.headlight.active = 1
    visual.headlight.ambient = palette.AMBIENT
    visual.headlight.diffuse = [palette.FILL] * 3
    visual.headlight.specular = [0.0, 0.0, 0.0]
    _add_lights(spec, casts_shadow=look.shadow_size > 0)
    _add_ground_and_sky(spec)
    return spec


def _add_lights(spec: Any, *, casts_shadow: bool) -> None:
    for name, direction, color, shadow in (
        ("key", palette.KEY_DIRECTION, palette.KEY_COLOR, casts_shadow),
        ("rim", palette.RIM_DIRECTION, palette.RIM_COLOR, False),
    ):
        light = spec.worldbody.add_light(name=name)
        light.type = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
        light.dir = direction / np.linalg.norm(direction)
        light.pos = key_light_position(np.zeros(3))
        light.castshadow = shadow
        light.ambient = [0.0, 0.0, 0.0]
        light.diffuse = color
        light.specular = 0.25 * color


def _add_ground_and_sky(spec: Any) -> None:
    # the pixels are painted after compiling; the builtins only reserve the room
    size = 512 * _TEXTURE_CELLS
    spec.add_texture(
        name="sky", type=mujoco.mjtTexture.mjTEXTURE_SKYBOX, builtin=mujoco.mjtBuiltin.mjBUILTIN_FLAT,
        width=256, height=6 * 256,
    )  # fmt: skip
    spec.add_texture(
        name="ground", type=mujoco.mjtTexture.mjTEXTURE_2D, builtin=mujoco.mjtBuiltin.mjBUILTIN_FLAT,
        width=size, height=size,
    )  # fmt: skip
    material = spec.add_material(name="ground", texuniform=True, specular=0.0, shininess=0.0, reflectance=0.0)
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "ground"
    material.texrepeat = [2.0 / (palette.CELL * _TEXTURE_CELLS)] * 2  # of half a unit, which is how MuJoCo sizes planes
    spec.worldbody.add_geom(name="ground", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], material="ground")


def _paint_textures(model: Any) -> None:
    for name, pixels in (("sky", _sky_pixels()), ("ground", _ground_pixels())):
        texture = model.texture(name)
        start = int(texture.adr[0])
        model.tex_data[start : start + pixels.size] = pixels.reshape(-1)


@functools.cache
def _ground_pixels() -> NDArray[np.uint8]:
    """Cells in two shades with a thin line around each; (S, S, 3)."""
    cell = 512
    size = cell * _TEXTURE_CELLS
    x, y = np.meshgrid(np.arange(size), np.arange(size))
    other = ((x // cell + y // cell) % 2)[..., None]
    color = np.where(other, palette.FLOOR_OTHER, palette.FLOOR)
    to_line = np.minimum.reduce([x % cell, cell - 1 - x % cell, y % cell, cell - 1 - y % cell])
    line = np.clip((6.0 - to_line) / 2.0, 0.0, 1.0)[..., None]
    return _to_bytes(color * (1.0 - line) + np.array(palette.LINE) * line)


@functools.cache
def _sky_pixels() -> NDArray[np.uint8]:
    """A cube map (6 * 256, 256, 3) whose colour depends on the elevation only, from horizon to zenith, with a
    little noise against banding. Faces in MuJoCo's order: right, left, up, down, front, back.
    """
    n = 256
    across, down = np.meshgrid((np.arange(n) + 0.5) / n * 2 - 1, (np.arange(n) + 0.5) / n * 2 - 1)
    side = -down / np.sqrt(1 + across**2 + down**2)  # sine of the elevation on the four sides
    cap = 1 / np.sqrt(1 + across**2 + down**2)
    elevation = np.stack([side, side, cap, -cap, side, side])
    rise = np.clip(elevation, 0.0, 1.0)[..., None]
    sky = np.array(palette.HAZE) + (np.array(palette.ZENITH) - np.array(palette.HAZE)) * rise**0.65
    color = palette.distant_floor() + (sky - palette.distant_floor()) * np.clip(rise / 0.045, 0.0, 1.0) ** 0.8
    color = color + (np.random.default_rng(0).random(color.shape[:-1])[..., None] - 0.5) / 255.0
    return _to_bytes(color.reshape(6 * n, n, 3))


def _to_bytes(color: FloatArray) -> NDArray[np.uint8]:
    return np.clip(np.round(color * 255.0), 0, 255).astype(np.uint8)


# ---------------------------------------------------------------------- the actors


def _add_actor(stage: Any, actor: ActorSpec, index: int) -> int:
    """Put the one body tree of the actor's file on the stage, stripped to what is seen; returns its number of
    bodies.
    """
    child = load_spec(actor.asset_file, actor.asset_text, actor.asset_files)
    # what refers to joints goes first, then the joints: on stage the bodies are put where the snapshot says
    for group in (
        child.keys, child.sensors, child.actuators, child.tendons, child.equalities, child.excludes,
        child.pairs, child.skins, child.flexes, child.lights, child.cameras, child.joints,
    ):  # fmt: skip
        for element in list(group):
            child.delete(element)
    roots = list(child.worldbody.bodies)
    if len(roots) != 1:
        raise VideoError(f"{actor.asset_file}: expected one root body below worldbody, found {len(roots)}")
    for texture in list(child.textures):
        if texture.type == mujoco.mjtTexture.mjTEXTURE_SKYBOX:  # the stage has a sky of its own
            child.delete(texture)
    num_bodies = len(child.bodies) - 1
    attach(stage, child, roots[0], f"actor{index}/")
    return num_bodies


def _paint_actor(model: Any, actor: ActorSpec, geoms: NDArray[np.int64], index: int) -> None:
    if not np.any(model.geom_group[geoms] < _VISIBLE_GROUPS):
        model.geom_group[geoms] = 0  # a file with nothing but collision geoms shows those
    if actor.is_ghost:
        _recolor(model, geoms, actor.ghost_color or palette.GHOST_COLOR)
        return
    if actor.color is not None:
        color = tuple(actor.color)
        _recolor(model, geoms, color if len(color) == 4 else (*color, 1.0))
    else:
        plain = geoms[(model.geom_matid[geoms] < 0) & np.all(np.isclose(model.geom_rgba[geoms], _DEFAULT_RGBA), axis=1)]
        for geom in plain:
            shade = 1.0 if _depth(model, int(model.geom_bodyid[geom])) % 2 else palette.SHADE
            color = palette.subject_color(index)
            model.geom_rgba[geom] = [*(shade * c for c in color), 1.0]
    model.geom_rgba[geoms, 3] *= actor.alpha


def _recolor(model: Any, geoms: NDArray[np.int64], rgba: Sequence[float]) -> None:
    model.geom_matid[geoms] = -1
    model.geom_rgba[geoms] = rgba


def _depth(model: Any, body: int) -> int:
    depth = 0
    while body:
        body, depth = int(model.body_parentid[body]), depth + 1
    return depth


def _subject_size(model: Any, num_bodies: int) -> SubjectSize:
    """Of the first actor, in the pose of its file."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    geoms = np.flatnonzero((model.geom_bodyid >= 1) & (model.geom_bodyid <= num_bodies)
                           & (model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE))  # fmt: skip
    if geoms.size == 0:
        return SubjectSize(1.0, 0.5)
    center, half = model.geom_aabb[geoms, :3], model.geom_aabb[geoms, 3:]
    rotation = data.geom_xmat[geoms].reshape(-1, 3, 3)
    middle = data.geom_xpos[geoms] + np.einsum("gij,gj->gi", rotation, center)
    reach = np.einsum("gij,gj->gi", np.abs(rotation), half)
    low, high = (middle - reach).min(axis=0), (middle + reach).max(axis=0)
    size = high - low
    return SubjectSize(max(float(size[2]), 0.5 * float(max(size[:2]))), float(data.xpos[1, 2] - low[2]))
