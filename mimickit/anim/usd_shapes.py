"""Shapes of USD bodies as MJCF geoms: primitives, and meshes as OBJ."""

import hashlib
import math
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from mimickit.anim.drives import FloatArray

_AXES = {"X": 0, "Y": 1, "Z": 2}
_HIDDEN = "3"  # geom group of what only collides; 0 to 2 are drawn
_COLORS = ("diffuseColor", "diffuse_color_constant")  # inputs of UsdPreviewSurface and OmniPBR


def numbers(values: Iterable[float]) -> str:
    """Numbers as MJCF has them, to the last digit."""
    return " ".join(repr(float(value)) for value in values)


def quaternion(turn: Any) -> FloatArray:
    """(3, 3) rotation of a Gf.Quat."""
    matrix, quat = np.zeros(9), np.array([turn.GetReal(), *turn.GetImaginary()], dtype=np.float64)
    mujoco.mju_quat2Mat(matrix, quat / np.linalg.norm(quat))
    return matrix.reshape(3, 3)


def parts_of(linear: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A proper rotation (3, 3), and the scales (3,) along its columns, of a matrix without shear."""
    scale = np.linalg.norm(linear, axis=0)
    if np.linalg.det(linear) < 0.0:
        scale[0] = -scale[0]
    return linear / scale, scale


def placed(pose: FloatArray) -> dict[str, str]:
    """pos and quat of a pose (4, 4) without scale."""
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(pose[:3, :3]).ravel())
    return {"pos": numbers(pose[:3, 3]), "quat": numbers(quat)}


def axis_vector(name: str) -> FloatArray:
    """(3,) X, Y or Z."""
    return np.eye(3)[_AXES[name]]


class ShapeWriter:
    """Writes the shapes of bodies; collects the meshes that they need."""

    def __init__(self, path: Path, world_matrix: Callable[[Any], FloatArray]) -> None:
        self._path, self._world_matrix = path, world_matrix
        self.assets = ET.Element("asset")
        self.files: dict[str, Path | bytes] = {}

    def write(self, body: Any, pose: FloatArray) -> list[ET.Element]:
        """Geoms of a body that stands at pose (4, 4)."""
        from pxr import Usd, UsdGeom, UsdPhysics

        found: list[tuple[ET.Element, bool, bool]] = []
        prims = iter(Usd.PrimRange(body, Usd.TraverseInstanceProxies()))
        for prim in prims:
            if prim != body and prim.HasAPI(UsdPhysics.RigidBodyAPI):
                prims.PruneChildren()
            elif prim.IsA(UsdGeom.Gprim):
                collides, shows = _collides(prim, body), _shows(prim)
                matrix = np.linalg.inv(pose) @ self._world_matrix(prim)
                geom = self._geom(prim, matrix, collides=collides) if collides or shows else None
                if geom is not None:
                    found.append((geom, collides, shows))
        has_looks = any(shows for _, _, shows in found)
        for geom, collides, shows in found:
            if not collides:
                geom.attrib.update(contype="0", conaffinity="0", density="0")
            if has_looks and not shows:
                geom.set("group", _HIDDEN)
        return [geom for geom, _, _ in found]

    def _geom(self, prim: Any, matrix: FloatArray, *, collides: bool) -> ET.Element | None:
        """matrix (4, 4): from the prim to its body."""
        rotation, scale = parts_of(matrix[:3, :3])
        pose = matrix.copy()
        pose[:3, :3] = rotation
        kind = prim.GetTypeName()
        if kind == "Mesh":
            geom = ET.Element("geom", type="mesh", mesh=self._add_mesh(prim, matrix, collides=collides))
        else:
            shape = _primitive(prim, np.abs(scale))
            if shape is None:
                return None
            geom, turn = shape
            pose[:3, :3] = rotation @ turn
            geom.attrib.update(placed(pose))
        color = _color(prim)
        if color is not None:
            geom.set("rgba", numbers([*color, 1.0]))
        return geom

    def _add_mesh(self, prim: Any, matrix: FloatArray, *, collides: bool) -> str:
        """The name of the mesh, its points in the body's frame."""
        from pxr import UsdGeom

        mesh = UsdGeom.Mesh(prim)
        points = np.array(mesh.GetPointsAttr().Get(), dtype=np.float64) @ matrix[:3, :3].T + matrix[:3, 3]
        faces = _triangles(np.array(mesh.GetFaceVertexCountsAttr().Get()),
                           np.array(mesh.GetFaceVertexIndicesAttr().Get()))  # fmt: skip
        is_left = mesh.GetOrientationAttr().Get() == UsdGeom.Tokens.leftHanded
        if is_left != (np.linalg.det(matrix[:3, :3]) < 0.0):
            faces = faces[:, ::-1]
        lines = [f"v {numbers(point)}" for point in points]
        lines += [f"f {a} {b} {c}" for a, b, c in (faces + 1).tolist()]
        content = "\n".join(lines).encode()
        # what is only seen may be open or flat; what collides does it as its hull
        inertia = "convex" if collides else "shell"
        name = f"{inertia}_{hashlib.sha256(content).hexdigest()[:16]}"
        if f"mesh/{name}" not in self.files:
            self.files[f"mesh/{name}"] = content
            ET.SubElement(self.assets, "mesh", name=name, file=f"{name}.obj", inertia=inertia)
        return name


def _triangles(counts: Any, indices: Any) -> Any:
    """(F, 3) corners of triangles; of polygons, fans."""
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    corners = [(start, start + k, start + k + 1) for start, count in zip(starts, counts, strict=True)
               for k in range(1, count - 1)]  # fmt: skip
    return indices[np.array(corners, dtype=np.int64).reshape(-1, 3)]


def _primitive(prim: Any, scale: FloatArray) -> tuple[ET.Element, FloatArray] | None:
    """A geom, and how it is turned (3, 3) in the prim's frame: MuJoCo's shapes lie along z. None for other kinds."""
    kind, mean = prim.GetTypeName(), float(scale.mean())
    if kind == "Cube":
        half = float(prim.GetAttribute("size").Get()) / 2.0
        return ET.Element("geom", type="box", size=numbers(half * scale)), np.eye(3)
    if kind == "Sphere":
        radius = float(prim.GetAttribute("radius").Get())
        if np.ptp(scale) > 1e-6 * mean:
            return ET.Element("geom", type="ellipsoid", size=numbers(radius * scale)), np.eye(3)
        return ET.Element("geom", type="sphere", size=numbers([radius * mean])), np.eye(3)
    if kind in ("Capsule", "Cylinder"):
        along = _AXES[prim.GetAttribute("axis").Get()]
        radius, height = (float(prim.GetAttribute(key).Get()) for key in ("radius", "height"))
        across = math.sqrt(float(np.delete(scale, along).prod()))
        size = numbers([radius * across, height / 2.0 * scale[along]])
        # the axis becomes z, the other two follow in their order
        turn = np.eye(3)[:, [(along + 1) % 3, (along + 2) % 3, along]]
        return ET.Element("geom", type=kind.lower(), size=size), turn
    return None


def _collides(prim: Any, body: Any) -> bool:
    """Whether the prim or what holds it, up to the body, is a collider."""
    from pxr import UsdPhysics

    while prim:
        if prim.HasAPI(UsdPhysics.CollisionAPI):
            return UsdPhysics.CollisionAPI(prim).GetCollisionEnabledAttr().Get() is not False
        if prim == body:
            break
        prim = prim.GetParent()
    return False


def _shows(prim: Any) -> bool:
    from pxr import UsdGeom

    looks = UsdGeom.Imageable(prim)
    is_seen = looks.ComputeVisibility() != UsdGeom.Tokens.invisible
    return is_seen and looks.ComputePurpose() in (UsdGeom.Tokens.default_, UsdGeom.Tokens.render)


def _color(prim: Any) -> FloatArray | None:
    """(3,) of the material bound to it, else its displayColor."""
    from pxr import UsdGeom, UsdShade

    material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()
    for shader in (UsdShade.Shader(child) for child in material.GetPrim().GetChildren()) if material else ():
        for name in _COLORS:
            value = shader.GetInput(name).Get() if shader and shader.GetInput(name) else None
            if value is not None:
                return np.array(value, dtype=np.float64)[:3]
    values = UsdGeom.Gprim(prim).GetDisplayColorAttr().Get()
    return np.array(values[0], dtype=np.float64) if values else None
