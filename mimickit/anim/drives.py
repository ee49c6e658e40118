"""Drives and a pose to begin in, for characters whose files have none: URDF, USD, and what a description names."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from mimickit.anim.source import CharacterError
from mimickit.util.keys import nearest

FloatArray = NDArray[np.float64]

HOME = "home"
"""Name of the keyframe that is the pose a character begins in."""

STIFFNESS_PER_TORQUE = 2.0
"""1 / rad: a drive gives the most it can when it is half a radian off."""
DAMPING_PER_STIFFNESS = 0.05
"""s"""
WEIGHT_LEVER = 0.1
"""m: at which the character's weight pulls where nothing says how strong a joint is."""

_JOINT = mujoco.mjtJoint
_GEOM = mujoco.mjtGeom


@dataclass(frozen=True)
class Drive:
    """What drives the joints whose names fit; None leaves what the file says."""

    joints: tuple[str, ...]
    """Regular expressions, of whole names."""
    stiffness: float | None = None
    """N m / rad"""
    damping: float | None = None
    """N m s / rad"""
    torque_limit: float | None = None
    """N m"""
    armature: float | None = None
    """kg m^2"""


def add_drives(spec: Any, drives: Sequence[Drive], source: str) -> None:
    """Write the drives into the joints that they name. Raises CharacterError for a name that fits none."""
    for drive in drives:
        for joint in _named(spec, drive.joints, source):
            if drive.stiffness is not None:
                joint.stiffness = [drive.stiffness, 0.0, 0.0]
            if drive.damping is not None:
                joint.damping = [drive.damping, 0.0, 0.0]
            if drive.armature is not None:
                joint.armature = drive.armature
            if drive.torque_limit is not None:
                joint.actfrcrange = [-drive.torque_limit, drive.torque_limit]
                joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_TRUE


def add_default_drives(spec: Any, source: str) -> None:
    """Give a drive to every joint without one.

    Its stiffness is STIFFNESS_PER_TORQUE times the joint's torque limit, or where that isn't known the torque of the
    character's weight at WEIGHT_LEVER; DAMPING_PER_STIFFNESS times that is added to the joint's damping.
    """
    driven = {actuator.target for actuator in spec.actuators}
    idle = [joint for joint in _joints(spec) if joint.name not in driven and not joint.stiffness[0]]
    weight = 0.0
    for joint in idle:
        torque = float(joint.actfrcrange[1])
        if torque <= 0.0:
            weight = weight or _weight(compiled(spec, source))
            torque = weight * WEIGHT_LEVER
        stiffness = torque * STIFFNESS_PER_TORQUE
        joint.stiffness = [stiffness, 0.0, 0.0]
        joint.damping = [float(joint.damping[0]) + stiffness * DAMPING_PER_STIFFNESS, 0.0, 0.0]


def add_home(spec: Any, angles: Mapping[str, float], source: str) -> None:
    """Add the keyframe "home", unless there is one: joints at `angles` (rad, by the names they fit) or as near zero as
    they go, the root turned as in the file and so high that the character stands on the ground. Raises CharacterError.
    """
    if not angles and any(key.name == HOME for key in spec.keys):
        return
    wanted = {joint.name: angle for pattern, angle in angles.items() for joint in _named(spec, (pattern,), source)}
    model = compiled(spec, source)
    data = mujoco.MjData(model)
    for j in range(model.njnt):
        if model.jnt_type[j] == _JOINT.mjJNT_HINGE:
            angle = wanted.get(model.joint(j).name, 0.0)
            data.qpos[model.jnt_qposadr[j]] = np.clip(angle, *model.jnt_range[j]) if model.jnt_limited[j] else angle
    mujoco.mj_kinematics(model, data)
    if model.njnt and model.jnt_type[0] == _JOINT.mjJNT_FREE:
        data.qpos[2] -= lowest_point(model, data)
    for key in [key for key in spec.keys if key.name == HOME]:
        spec.delete(key)
    spec.add_key(name=HOME, qpos=data.qpos.copy())


def compiled(spec: Any, source: str) -> Any:
    """The spec's model. Raises CharacterError."""
    try:
        return spec.compile()
    except ValueError as error:
        raise CharacterError(f"{source}: MuJoCo can't compile this file: {error}") from error


def _weight(model: Any) -> float:
    """N"""
    return float(model.body_mass.sum() * np.linalg.norm(model.opt.gravity))


def _joints(spec: Any) -> list[Any]:
    return [joint for joint in spec.joints if joint.type in (_JOINT.mjJNT_HINGE, _JOINT.mjJNT_BALL)]


def _named(spec: Any, patterns: Sequence[str], source: str) -> list[Any]:
    joints, found = _joints(spec), []
    for pattern in patterns:
        try:
            fitting = [joint for joint in joints if re.fullmatch(pattern, joint.name)]
        except re.error as error:
            raise CharacterError(f"{source}: joints: {pattern!r} is no regular expression: {error}") from None
        if not fitting:
            names = [joint.name for joint in joints]
            raise CharacterError(f"{source}: joints: no joint's name is {pattern!r}{nearest(pattern, names)}")
        found += fitting
    return found


# ---------------------------------------------------------------------- the ground


def lowest_point(model: Any, data: Any) -> float:
    """Height (m) of the lowest point of the colliding shapes, of all shapes if none collides; 0 without any."""
    geoms = np.flatnonzero((model.geom_contype | model.geom_conaffinity) & (model.geom_type != _GEOM.mjGEOM_PLANE))
    geoms = geoms if geoms.size else np.flatnonzero(model.geom_type != _GEOM.mjGEOM_PLANE)
    heights = [data.geom_xpos[g, 2] - _reach_down(model, int(g), data.geom_xmat[g].reshape(3, 3)[2]) for g in geoms]
    return float(min(heights, default=0.0))


def _reach_down(model: Any, geom: int, down: FloatArray) -> float:
    """How far (m) a shape reaches below its origin; down (3,): the vertical in its frame."""
    size = model.geom_size[geom]
    match _GEOM(model.geom_type[geom]):
        case _GEOM.mjGEOM_SPHERE:
            reach = size[0]
        case _GEOM.mjGEOM_ELLIPSOID:
            reach = np.linalg.norm(size * down)
        case _GEOM.mjGEOM_CAPSULE:
            reach = size[0] + size[1] * abs(down[2])
        case _GEOM.mjGEOM_CYLINDER:
            reach = size[0] * np.hypot(down[0], down[1]) + size[1] * abs(down[2])
        case _GEOM.mjGEOM_BOX:
            reach = size @ np.abs(down)
        case _GEOM.mjGEOM_MESH:
            mesh = int(model.geom_dataid[geom])
            first = int(model.mesh_vertadr[mesh])
            reach = -(model.mesh_vert[first : first + int(model.mesh_vertnum[mesh])] @ down).min()
        case _:
            reach = 0.0
    return float(reach)
