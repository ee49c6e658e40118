"""Turns an object of a compiled MuJoCo scene into a USD file for Isaac Lab, kept in a cache by its content.

Masses, inertia, joints, limits and contact parameters are those that the MuJoCo engine computes with, because they are
taken from the very model it would simulate. What USD's physics has no word for is written as `mjc:` attributes, which
Newton physics reads and PhysX ignores. Drives, armature and friction of joints are left to Isaac Lab's actuators.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade, Vt  # noqa: TID253  (imported by the Isaac Lab engine alone)

from mimickit.engines.mujoco_scene import GROUND, ObjectLayout, excluded_pairs

_VERSION = 5  # of what is written: files of other versions in the cache are left alone
_GEOM, _JOINT = mujoco.mjtGeom, mujoco.mjtJoint
_PER_ITEM = {"body": "nbody", "jnt": "njnt", "dof": "nv", "geom": "ngeom", "mat": "nmat"}
_AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
_USD = (".usd", ".usda", ".usdc", ".usdz")
_JOINTS = (UsdPhysics.RevoluteJoint, UsdPhysics.SphericalJoint)  # that are here what they are to the character
_ROUND = 1e-6  # of a unit axis's components


def cache_folder() -> Path:
    """Where converted files are kept: MIMICKIT_CACHE, else the user's cache folder."""
    own = os.environ.get("MIMICKIT_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return (Path(own) if own else base / "mimickit") / "usd"


def usd_of(mj: Any, obj: ObjectLayout) -> Path:
    """The USD file of an object of a scene: its own, or a conversion, written if the cache doesn't have it."""
    if is_taken_as_it_is(obj):
        return Path(obj.spec.asset_file)
    bodies = range(mj.nbody)[obj.bodies]
    key = _content_key(mj, bodies, f"{obj.spec.name} {obj.is_free}")
    return _cached(f"{usd_name(Path(obj.spec.asset_file).stem)}_{key}", lambda stage: _write_object(stage, mj, obj))


def is_taken_as_it_is(obj: ObjectLayout) -> bool:
    """Whether Isaac Lab can have the character's file: USD in metres with z up, an articulation whose bodies and joints
    have the names that the character knows, and nothing asked of it that the file doesn't say.
    """
    spec, info = obj.spec, obj.info
    file = Path(spec.asset_file)
    if file.suffix.lower() not in _USD or spec.is_visual or spec.fix_root or not spec.enable_self_collisions:
        return False
    stage = Usd.Stage.Open(str(file))
    if UsdGeom.GetStageMetersPerUnit(stage) != 1.0 or UsdGeom.GetStageUpAxis(stage) != UsdGeom.Tokens.z:
        return False
    prims = list(stage.Traverse())
    bodies = [prim.GetName() for prim in prims if prim.HasAPI(UsdPhysics.RigidBodyAPI)]
    joints = {prim.GetName() for prim in prims if any(prim.IsA(kind) for kind in _JOINTS)}
    roots = [prim for prim in prims if prim.HasAPI(UsdPhysics.ArticulationRootAPI)]
    moving = {joint.name for joint in info.joints if joint.dof_dim}
    is_whole = sorted(bodies) == sorted(body.name for body in info.bodies) and moving <= joints
    return bool(stage.GetDefaultPrim()) and is_whole and len(roots) == (len(bodies) > 1)


def usd_of_ground(mj: Any) -> Path:
    """The USD file of a scene's ground."""
    geom = mj.geom(GROUND).id
    return _cached(f"ground_{_content_key(mj, range(1), 'ground')}", lambda stage: _write_ground(stage, mj, geom))


def usd_name(name: str) -> str:
    """The name as USD can have it: letters, digits and underscores, no digit first."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return plain if plain and not plain[0].isdigit() else f"_{plain}"


def usd_names(names: Iterable[str]) -> list[str]:
    """usd_name of each, numbered where two would be the same."""
    found: list[str] = []
    for name in names:
        wanted = candidate = usd_name(name)
        number = 1
        while candidate in found:
            number += 1
            candidate = f"{wanted}_{number}"
        found.append(candidate)
    return found


# ---------------------------------------------------------------------- cache


def _cached(name: str, write: Any) -> Path:
    path = cache_folder() / f"{name}.usdc"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            part = Path(folder) / path.name
            stage = Usd.Stage.CreateNew(str(part))
            UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
            UsdGeom.SetStageMetersPerUnit(stage, 1.0)
            UsdPhysics.SetStageKilogramsPerUnit(stage, 1.0)
            write(stage)
            stage.Save()
            part.replace(path)  # two processes that write it at once write the same
    return path


def _content_key(mj: Any, bodies: range, also: str) -> str:
    """Of everything in the model that belongs to the bodies."""
    geoms = np.flatnonzero(np.isin(mj.geom_bodyid, bodies))
    meshes = sorted({int(mj.geom_dataid[geom]) for geom in geoms if mj.geom_type[geom] == _GEOM.mjGEOM_MESH})
    items = {
        "body": np.array([body for body in bodies if body], dtype=np.int64),  # the world's sums are of all objects
        "jnt": np.flatnonzero(np.isin(mj.jnt_bodyid, bodies)),
        "dof": np.flatnonzero(np.isin(mj.dof_bodyid, bodies)),
        "geom": geoms,
        "mat": np.unique(mj.geom_matid[geoms][mj.geom_matid[geoms] >= 0]),
    }
    excluded = [pair for pair in excluded_pairs(mj) if pair[0] in bodies]
    words = _VERSION, also, [mj.body(int(body)).name for body in bodies], excluded
    digest = hashlib.sha256(repr(words).encode())
    for prefix, ids in items.items():
        for name in sorted(n for n in dir(mj) if n.startswith(f"{prefix}_")):
            values = getattr(mj, name)
            if isinstance(values, np.ndarray) and len(values) == getattr(mj, _PER_ITEM[prefix]):
                digest.update(name.encode())
                digest.update(np.ascontiguousarray(values[ids]).tobytes())
    for mesh in meshes:
        for part in mesh_arrays(mj, mesh):
            digest.update(part.tobytes())
    return digest.hexdigest()[:24]


def mesh_arrays(mj: Any, mesh: int) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (V, 3) in m and triangles (F, 3)."""
    vert, face = int(mj.mesh_vertadr[mesh]), int(mj.mesh_faceadr[mesh])
    vertices = mj.mesh_vert[vert : vert + int(mj.mesh_vertnum[mesh])]
    return vertices, mj.mesh_face[face : face + int(mj.mesh_facenum[mesh])]


# ---------------------------------------------------------------------- writing


def _write_object(stage: Any, mj: Any, obj: ObjectLayout) -> None:
    root = UsdGeom.Xform.Define(stage, "/Object").GetPrim()
    stage.SetDefaultPrim(root)
    bodies = range(mj.nbody)[obj.bodies]
    names = usd_names(body.name for body in obj.info.bodies)
    rest = _rest_poses(mj, bodies)
    paths = {}
    for body, name in zip(bodies, names, strict=True):
        paths[body] = f"/Object/{name}"
        _write_body(stage, mj, body, paths[body], rest[body])
    solid = set(mj.geom_bodyid[(mj.geom_contype != 0) | (mj.geom_conaffinity != 0)].tolist())
    for first, second in excluded_pairs(mj):
        if first in paths and {first, second} <= solid:
            filtered = UsdPhysics.FilteredPairsAPI.Apply(stage.GetPrimAtPath(paths[first]))
            filtered.CreateFilteredPairsRel().AddTarget(paths[second])
    if len(bodies) > 1:
        UsdPhysics.ArticulationRootAPI.Apply(root)
        _set(root, "newton:selfCollisionEnabled", Sdf.ValueTypeNames.Bool, True)  # contype says which
        _set(root, "physxArticulation:enabledSelfCollisions", Sdf.ValueTypeNames.Bool, obj.spec.enable_self_collisions)
    if not obj.is_free and len(bodies) == 1:
        UsdPhysics.RigidBodyAPI(stage.GetPrimAtPath(paths[bodies[0]])).CreateKinematicEnabledAttr(True)
    elif not obj.is_free:
        joint = UsdPhysics.FixedJoint.Define(stage, "/Object/joints/root")
        joint.CreateBody1Rel().SetTargets([paths[bodies[0]]])
    for body, joint_info, name in zip(bodies[1:], obj.info.joints, joint_names(obj), strict=True):
        if joint_info.body != body - bodies[0]:
            raise AssertionError("joints are one a body, in the bodies' order")
        _write_joint(stage, mj, body, f"/Object/joints/{name}", paths)


def joint_names(obj: ObjectLayout) -> list[str]:
    """What the joints are called in the USD file, one for every body but the root."""
    return usd_names(joint.name for joint in obj.info.joints)


def _rest_poses(mj: Any, bodies: range) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Position (3,) m and rotation (4,) w x y z of every body where the root is at the origin."""
    poses = {bodies[0]: (np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))}
    for body in bodies[1:]:
        pos, rot = poses[int(mj.body_parentid[body])]
        poses[body] = (pos + _rotate(rot, mj.body_pos[body]), _multiply(rot, mj.body_quat[body]))
    return poses


def _write_body(stage: Any, mj: Any, body: int, path: str, rest: tuple[np.ndarray, np.ndarray]) -> None:
    xform = UsdGeom.Xform.Define(stage, path)
    _place(xform, *rest)
    prim = xform.GetPrim()
    UsdPhysics.RigidBodyAPI.Apply(prim)
    mass = UsdPhysics.MassAPI.Apply(prim)
    mass.CreateMassAttr(float(mj.body_mass[body]))
    mass.CreateCenterOfMassAttr(Gf.Vec3f(*_floats(mj.body_ipos[body])))
    mass.CreateDiagonalInertiaAttr(Gf.Vec3f(*_floats(mj.body_inertia[body])))
    mass.CreatePrincipalAxesAttr(Gf.Quatf(*_floats(mj.body_iquat[body])))
    if mj.body_gravcomp[body]:
        _set(prim, "mjc:gravcomp", Sdf.ValueTypeNames.Float, float(mj.body_gravcomp[body]))
        _set(prim, "physxRigidBody:disableGravity", Sdf.ValueTypeNames.Bool, True)
    first = int(mj.body_geomadr[body])
    for geom in range(first, first + int(mj.body_geomnum[body])):
        _write_geom(stage, mj, geom, f"{path}/geom_{geom - first}")


def _write_joint(stage: Any, mj: Any, body: int, path: str, paths: dict[int, str]) -> None:
    parent = int(mj.body_parentid[body])
    anchor, axis, kind = np.zeros(3), np.zeros(3), None
    if mj.body_jntnum[body]:
        j = int(mj.body_jntadr[body])
        anchor, axis, kind = mj.jnt_pos[j], mj.jnt_axis[j], _JOINT(mj.jnt_type[j])
    turn, token = np.array([1.0, 0.0, 0.0, 0.0]), "X"
    if kind == _JOINT.mjJNT_HINGE:
        joint = UsdPhysics.RevoluteJoint.Define(stage, path)
        token, turn = _axis_frame(axis)
        joint.CreateAxisAttr(token)
        if mj.jnt_limited[j]:
            lower, upper = np.rad2deg(mj.jnt_range[j])
            joint.CreateLowerLimitAttr(float(lower))
            joint.CreateUpperLimitAttr(float(upper))
            _set(joint.GetPrim(), "mjc:solreflimit", Sdf.ValueTypeNames.DoubleArray, _floats(mj.jnt_solref[j]))
            _set(joint.GetPrim(), "mjc:solimplimit", Sdf.ValueTypeNames.DoubleArray, _floats(mj.jnt_solimp[j]))
    elif kind == _JOINT.mjJNT_BALL:
        joint = UsdPhysics.SphericalJoint.Define(stage, path)
    else:
        joint = UsdPhysics.FixedJoint.Define(stage, path)
    rest_pos, rest_rot = mj.body_pos[body], mj.body_quat[body]
    joint.CreateBody0Rel().SetTargets([paths[parent]])
    joint.CreateBody1Rel().SetTargets([paths[body]])
    joint.CreateLocalPos0Attr(Gf.Vec3f(*_floats(rest_pos + _rotate(rest_rot, anchor))))
    joint.CreateLocalRot0Attr(Gf.Quatf(*_floats(_multiply(rest_rot, turn))))
    joint.CreateLocalPos1Attr(Gf.Vec3f(*_floats(anchor)))
    joint.CreateLocalRot1Attr(Gf.Quatf(*_floats(turn)))
    joint.CreateCollisionEnabledAttr(False)  # as MuJoCo has it, which would not say so of a root that is fixed


def _axis_frame(axis: np.ndarray) -> tuple[str, np.ndarray]:
    """USD's axis of a hinge, and the turn (w x y z) of the joint's frame that makes it the file's."""
    for token, unit in _AXES.items():
        if np.abs(axis - unit).max() < _ROUND:
            return token, np.array([1.0, 0.0, 0.0, 0.0])
    turn = np.zeros(4)
    mujoco.mju_quatZ2Vec(turn, axis)
    return "Z", turn


# ---------------------------------------------------------------------- geoms


def _write_geom(stage: Any, mj: Any, geom: int, path: str) -> None:
    size = _floats(mj.geom_size[geom])
    kind = _GEOM(mj.geom_type[geom])
    scale = None
    if kind == _GEOM.mjGEOM_SPHERE:
        shape = UsdGeom.Sphere.Define(stage, path)
        shape.CreateRadiusAttr(size[0])
    elif kind in (_GEOM.mjGEOM_CAPSULE, _GEOM.mjGEOM_CYLINDER):
        shape = (UsdGeom.Capsule if kind == _GEOM.mjGEOM_CAPSULE else UsdGeom.Cylinder).Define(stage, path)
        shape.CreateRadiusAttr(size[0])
        shape.CreateHeightAttr(2.0 * size[1])
        shape.CreateAxisAttr("Z")
    elif kind == _GEOM.mjGEOM_ELLIPSOID:
        shape, scale = UsdGeom.Sphere.Define(stage, path), size
        shape.CreateRadiusAttr(1.0)
    elif kind == _GEOM.mjGEOM_BOX:
        shape, scale = UsdGeom.Cube.Define(stage, path), size
        shape.CreateSizeAttr(2.0)
    elif kind == _GEOM.mjGEOM_MESH:
        shape = _write_mesh(stage, mj, int(mj.geom_dataid[geom]), path)
    else:
        return  # nothing that collides with anything here
    _place(shape, mj.geom_pos[geom], mj.geom_quat[geom], scale)
    shape.CreateDisplayColorAttr([Gf.Vec3f(*geom_color(mj, geom)[:3])])
    if mj.geom_contype[geom] or mj.geom_conaffinity[geom]:
        _make_collider(stage, mj, geom, shape.GetPrim())


def geom_color(mj: Any, geom: int) -> list[float]:
    """RGBA in 0..1, the material's where there is one."""
    material = int(mj.geom_matid[geom])
    return _floats(mj.geom_rgba[geom] if material < 0 else mj.mat_rgba[material])


def _write_mesh(stage: Any, mj: Any, mesh: int, path: str) -> Any:
    shape = UsdGeom.Mesh.Define(stage, path)
    vertices, faces = mesh_arrays(mj, mesh)
    shape.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(vertices, dtype=np.float32)))
    shape.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(np.ascontiguousarray(faces, dtype=np.int32).ravel()))
    shape.CreateFaceVertexCountsAttr(Vt.IntArray(len(faces), 3))
    shape.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    return shape


def _make_collider(stage: Any, mj: Any, geom: int, prim: Any) -> None:
    """What it touches, and how: MuJoCo's own numbers, and friction as USD says it."""
    UsdPhysics.CollisionAPI.Apply(prim)
    if prim.IsA(UsdGeom.Mesh):
        UsdPhysics.MeshCollisionAPI.Apply(prim).CreateApproximationAttr(UsdPhysics.Tokens.convexHull)
    types = Sdf.ValueTypeNames
    for name, kind, value in (
        ("contype", types.Int, _signed(mj.geom_contype[geom])),
        ("conaffinity", types.Int, _signed(mj.geom_conaffinity[geom])),
        ("condim", types.Int, int(mj.geom_condim[geom])),
        ("priority", types.Int, int(mj.geom_priority[geom])),
        ("solmix", types.Double, float(mj.geom_solmix[geom])),
        ("solref", types.DoubleArray, _floats(mj.geom_solref[geom])),
        ("solimp", types.DoubleArray, _floats(mj.geom_solimp[geom])),
        ("margin", types.Double, float(mj.geom_margin[geom])),
        ("gap", types.Double, float(mj.geom_gap[geom])),
    ):
        _set(prim, f"mjc:{name}", kind, value)
    # masks mean the same on all shapes: without this they are thrown away
    _set(prim, "newton:mujoco:collision_mask_domain", types.Int, 1)
    sliding, torsional, rolling = _floats(mj.geom_friction[geom])
    name = usd_name(f"friction_{sliding:g}_{torsional:g}_{rolling:g}")
    path = f"{prim.GetStage().GetDefaultPrim().GetPath()}/materials/{name}"
    material = UsdShade.Material.Define(stage, path)
    physics = UsdPhysics.MaterialAPI.Apply(material.GetPrim())
    physics.CreateStaticFrictionAttr(sliding)
    physics.CreateDynamicFrictionAttr(sliding)
    _set(material.GetPrim(), "mjc:torsionalfriction", types.Double, torsional)
    _set(material.GetPrim(), "mjc:rollingfriction", types.Double, rolling)
    UsdShade.MaterialBindingAPI.Apply(prim).Bind(material, materialPurpose="physics")


def _write_ground(stage: Any, mj: Any, geom: int) -> None:
    root = UsdGeom.Xform.Define(stage, "/Ground")
    stage.SetDefaultPrim(root.GetPrim())
    plane = UsdGeom.Plane.Define(stage, "/Ground/plane")
    plane.CreateAxisAttr("Z")
    plane.CreateDisplayColorAttr([Gf.Vec3f(0.5, 0.5, 0.5)])
    _make_collider(stage, mj, geom, plane.GetPrim())


# ---------------------------------------------------------------------- small things


def _place(shape: Any, pos: np.ndarray, quat_wxyz: np.ndarray, scale: list[float] | None = None) -> None:
    xform = UsdGeom.Xformable(shape)
    xform.AddTranslateOp().Set(Gf.Vec3d(*_floats(pos)))
    xform.AddOrientOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Quatd(*_floats(quat_wxyz)))
    xform.AddScaleOp().Set(Gf.Vec3f(*(scale or (1.0, 1.0, 1.0))))


def _set(prim: Any, name: str, kind: Any, value: Any) -> None:
    prim.CreateAttribute(name, kind).Set(value)


def _signed(mask: int) -> int:
    return int(np.uint32(int(mask) & 0xFFFFFFFF).view(np.int32))


def _floats(values: np.ndarray) -> list[float]:
    return [float(value) for value in values]


def _rotate(quat: np.ndarray, vector: np.ndarray) -> np.ndarray:
    turned = np.zeros(3)
    mujoco.mju_rotVecQuat(turned, vector, quat)
    return turned


def _multiply(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    product = np.zeros(4)
    mujoco.mju_mulQuat(product, first, second)
    return product
