"""Turns the compiled MuJoCo model of one environment into a Newton model of many worlds.

Masses, inertia, gains, limits and materials are those that the MuJoCo engine computes with, because they are taken from
the very model it would simulate: Newton's own importer reads character files in other ways. Bodies, joint
coordinates and dofs lie at the same places as in MuJoCo's arrays; only quaternions are x y z w.
"""

from collections.abc import Mapping
from typing import Any

import mujoco
import newton  # noqa: TID253  (this module is imported by the Newton engine alone)
import numpy as np
import warp as wp  # noqa: TID253

from mimickit.engines.newton.constraints import (
    add_equalities,
    add_excludes,
    add_ground_excludes,
    can_couple,
    warn_of_pairs,
)

_ONE_DOMAIN = 1  # collision bits mean the same on all shapes, and so are kept
_SOLREF_AS_GIVEN = 1  # Newton's mode for a MuJoCo solref that is not to be derived from a stiffness
_GEOM = mujoco.mjtGeom


def build_model(mj: Any, num_envs: int, device: str) -> Any:
    """A newton.Model with num_envs worlds, each holding what mj (an MjModel of mujoco_scene) holds; the ground is
    shared.
    """
    world = new_builder()
    add_bodies(world, mj)
    for geom in np.flatnonzero(mj.geom_bodyid).tolist():
        if mj.geom_contype[geom] or mj.geom_conaffinity[geom]:
            add_geom(world, mj, geom, body=int(mj.geom_bodyid[geom]) - 1, attributes=_geom_attributes(mj, geom))
    warn_of_pairs(mj)
    add_excludes(world, mj, lambda body: body - 1)
    if can_couple(mj):
        add_equalities(
            world, mj, body_of=lambda body: body - 1, joint_of=lambda joint: int(mj.jnt_bodyid[joint]) - 1,
            world=world.current_world,
        )  # fmt: skip
    _add_drives(world, mj)
    scene = new_builder()
    for geom in np.flatnonzero(mj.geom_bodyid == 0).tolist():
        add_geom(scene, mj, geom, body=-1, attributes=_geom_attributes(mj, geom))
    scene.replicate(world, num_envs)
    add_ground_excludes(scene, mj, lambda body: range(body - 1, num_envs * (mj.nbody - 1), mj.nbody - 1))
    return scene.finalize(device=device)


def new_builder() -> Any:
    """An empty newton.ModelBuilder that knows MuJoCo's attributes."""
    builder = newton.ModelBuilder()
    newton.solvers.SolverMuJoCo.register_custom_attributes(builder)
    builder.rigid_gap = 0.0
    return builder


def transform(pos: np.ndarray, quat_wxyz: np.ndarray | None = None) -> Any:
    """A Warp transform out of MuJoCo's position (m) and quaternion."""
    rot = wp.quat_identity() if quat_wxyz is None else wp.quat(*(float(v) for v in np.roll(quat_wxyz, -1)))
    return wp.transform(wp.vec3(*(float(v) for v in pos)), rot)


def add_bodies(builder: Any, mj: Any) -> None:
    """All bodies but the world, each with the joint that leads to it; Newton's indices are MuJoCo's less one."""
    first_joint = 0
    for body in range(1, mj.nbody):
        builder.add_link(
            xform=transform(mj.body_pos[body], mj.body_quat[body]),
            com=tuple(float(v) for v in mj.body_ipos[body]),
            inertia=_inertia(mj, body),
            mass=float(mj.body_mass[body]),
            label=mj.body(body).name,
            lock_inertia=True,
            custom_attributes={"mujoco:gravcomp": float(mj.body_gravcomp[body])},
        )
        joint = _add_joint(builder, mj, body)
        if mj.body_parentid[body] == 0 and body > 1:
            builder.add_articulation(list(range(first_joint, joint)))
            first_joint = joint
    builder.add_articulation(list(range(first_joint, mj.nbody - 1)))


def _inertia(mj: Any, body: int) -> Any:
    """(3, 3) kg m^2 about the centre of mass in the body's frame."""
    rot = np.zeros(9)
    mujoco.mju_quat2Mat(rot, mj.body_iquat[body])
    axes = rot.reshape(3, 3)
    return wp.mat33((axes @ np.diag(mj.body_inertia[body]) @ axes.T).astype(np.float32))


def _add_joint(builder: Any, mj: Any, body: int) -> int:
    child, parent = body - 1, int(mj.body_parentid[body]) - 1
    place = transform(mj.body_pos[body], mj.body_quat[body])
    label = mj.body(body).name
    # MuJoCo's own rule says which neighbours don't collide
    common = {"label": label, "collision_filter_parent": False}
    if not mj.body_jntnum[body]:
        return int(builder.add_joint_fixed(parent, child, parent_xform=place, **common))
    joint = int(mj.body_jntadr[body])
    kind, dof = mj.jnt_type[joint], int(mj.jnt_dofadr[joint])
    if kind == mujoco.mjtJoint.mjJNT_FREE:
        return int(builder.add_joint_free(child, **common))
    anchor = transform(mj.jnt_pos[joint])
    inertial = {"armature": float(mj.dof_armature[dof]), "friction": float(mj.dof_frictionloss[dof])}
    frames = {"parent_xform": place * anchor, "child_xform": anchor}
    if kind == mujoco.mjtJoint.mjJNT_BALL:
        return int(builder.add_joint_ball(parent, child, **frames, **inertial, **common))
    limits = {}
    if mj.jnt_limited[joint]:
        lower, upper = mj.jnt_range[joint]
        limits = {"limit_lower": float(lower), "limit_upper": float(upper)}
    stiffness = {
        "mujoco:solreflimit": [wp.vec2(*mj.jnt_solref[joint])],
        "mujoco:solreflimit_mode": [_SOLREF_AS_GIVEN],
        "mujoco:solimplimit": [[float(v) for v in mj.jnt_solimp[joint]]],
    }
    axis = tuple(float(v) for v in mj.jnt_axis[joint])
    return int(
        builder.add_joint_revolute(
            parent, child, axis=axis, custom_attributes=stiffness, **limits, **frames, **inertial, **common
        )
    )


def _geom_attributes(mj: Any, geom: int) -> dict[str, Any]:
    return {
        "mujoco:contype": int(mj.geom_contype[geom]) & 0xFFFFFFFF,
        "mujoco:conaffinity": int(mj.geom_conaffinity[geom]) & 0xFFFFFFFF,
        "mujoco:collision_mask_domain": _ONE_DOMAIN,
        "mujoco:condim": int(mj.geom_condim[geom]),
        "mujoco:geom_priority": int(mj.geom_priority[geom]),
        "mujoco:geom_solmix": float(mj.geom_solmix[geom]),
        "mujoco:geom_solimp": [float(v) for v in mj.geom_solimp[geom]],
        "mujoco:solref": wp.vec2(*mj.geom_solref[geom]),
        "mujoco:solref_mode": _SOLREF_AS_GIVEN,
    }


def add_geom(
    builder: Any,
    mj: Any,
    geom: int,
    *,
    body: int,
    attributes: Mapping[str, Any] | None = None,
    color: tuple[float, float, float] | None = None,
) -> int | None:
    """The geom as a Newton shape on a body; returns its index, None for what Newton has no shape for.

    attributes: MuJoCo's, without which nothing collides with the shape. color: RGB in 0..1.
    """
    friction, size = mj.geom_friction[geom], [float(v) for v in mj.geom_size[geom]]
    collides = attributes is not None
    cfg = newton.ModelBuilder.ShapeConfig(
        density=0.0,
        mu=float(friction[0]),
        mu_torsional=float(friction[1]),
        mu_rolling=float(friction[2]),
        margin=float(mj.geom_margin[geom]),
        gap=float(mj.geom_gap[geom]),
        has_shape_collision=collides,
        has_particle_collision=False,
    )
    where = transform(mj.geom_pos[geom], mj.geom_quat[geom])
    options = {"xform": where, "body": body, "cfg": cfg, "color": color, "custom_attributes": attributes}
    kind = _GEOM(mj.geom_type[geom])
    shape: Any = None
    if kind == _GEOM.mjGEOM_PLANE:
        shape = builder.add_shape_plane(plane=None, width=0.0, length=0.0, **options)
    elif kind == _GEOM.mjGEOM_SPHERE:
        shape = builder.add_shape_sphere(radius=size[0], **options)
    elif kind == _GEOM.mjGEOM_CAPSULE:
        shape = builder.add_shape_capsule(radius=size[0], half_height=size[1], **options)
    elif kind == _GEOM.mjGEOM_CYLINDER:
        shape = builder.add_shape_cylinder(radius=size[0], half_height=size[1], **options)
    elif kind == _GEOM.mjGEOM_ELLIPSOID:
        shape = builder.add_shape_ellipsoid(rx=size[0], ry=size[1], rz=size[2], **options)
    elif kind == _GEOM.mjGEOM_BOX:
        shape = builder.add_shape_box(hx=size[0], hy=size[1], hz=size[2], **options)
    elif kind == _GEOM.mjGEOM_MESH:
        shape = builder.add_shape_mesh(mesh=_mesh(mj, int(mj.geom_dataid[geom])), **options)
    return None if shape is None else int(shape)


def _mesh(mj: Any, mesh: int) -> Any:
    vert, face = int(mj.mesh_vertadr[mesh]), int(mj.mesh_faceadr[mesh])
    vertices = mj.mesh_vert[vert : vert + int(mj.mesh_vertnum[mesh])]
    faces = mj.mesh_face[face : face + int(mj.mesh_facenum[mesh])]
    return newton.Mesh(vertices.astype(np.float32), faces.astype(np.int32).ravel(), compute_inertia=False)


def _add_drives(builder: Any, mj: Any) -> None:
    """MuJoCo's actuators as they are: a ball joint's three have its exponential map for their lengths."""
    for actuator in range(mj.nu):
        joint = int(mj.actuator_trnid[actuator, 0])
        limited = bool(mj.actuator_forcelimited[actuator])
        builder.add_custom_values(
            **{
                "mujoco:actuator_trnid": wp.vec2i(int(mj.jnt_dofadr[joint]), -1),
                "mujoco:actuator_gear": [float(v) for v in mj.actuator_gear[actuator]],
                "mujoco:actuator_gainprm": [float(v) for v in mj.actuator_gainprm[actuator]],
                "mujoco:actuator_biastype": int(mj.actuator_biastype[actuator]),
                "mujoco:actuator_biasprm": [float(v) for v in mj.actuator_biasprm[actuator]],
                "mujoco:actuator_forcelimited": int(limited),
                "mujoco:actuator_has_forcerange": int(limited),
                "mujoco:actuator_forcerange": wp.vec2(*mj.actuator_forcerange[actuator]),
                "mujoco:actuator_ctrllimited": 0,
                "mujoco:actuator_world": builder.current_world,
            }
        )
