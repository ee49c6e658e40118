"""Characters read from USD with UsdPhysics, written as MJCF: rigid bodies, joints, drives, masses, shapes, colours.

Needs the package usd-core. Lengths come out in metres, angles in radians, z is up.
"""

import math
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from mimickit.anim.drives import FloatArray, compiled
from mimickit.anim.source import CharacterError, CharacterSource
from mimickit.anim.usd_shapes import ShapeWriter, axis_vector, numbers, parts_of, placed, quaternion

_COMPILER = {"angle": "radian", "autolimits": "true"}
_BOUNDS = {"boundmass": "1e-6", "boundinertia": "1e-9"}  # kg, kg m^2: a body may move by what is fixed to it
_JOINTS = {"PhysicsRevoluteJoint": "hinge", "PhysicsSphericalJoint": "ball", "PhysicsFixedJoint": "",
           "PhysicsPrismaticJoint": "slide"}  # fmt: skip
_DRIVES = ("angular", "rotX", "rotY", "rotZ")


def read_usd(path: Path) -> CharacterSource:
    """The USD file as MJCF. Raises CharacterError, also where usd-core is not installed."""
    try:
        from pxr import Tf, Usd
    except ImportError as error:
        raise CharacterError(f"{path}: USD needs the package usd-core: pip install 'usd-core>=25.5'") from error
    try:
        stage = Usd.Stage.Open(str(path))
    except Tf.ErrorException as error:
        words = str(error).strip().splitlines()[-1]
        raise CharacterError(f"{path}: not a USD file that can be read: {words}") from None
    return _Converter(path, stage).convert()


class _Converter:
    """One stage on its way to MJCF. Poses are (4, 4) matrices in metres, free of scale."""

    def __init__(self, path: Path, stage: Any) -> None:
        from pxr import Usd, UsdGeom, UsdPhysics

        self._path, self._stage, self._physics = path, stage, UsdPhysics
        self._meters = UsdGeom.GetStageMetersPerUnit(stage)
        self._kilograms = UsdPhysics.GetStageKilogramsPerUnit(stage)
        self._to_z_up = np.eye(4)
        if UsdGeom.GetStageUpAxis(stage) == UsdGeom.Tokens.y:
            self._to_z_up[:3, :3] = [[1, 0, 0], [0, 0, -1], [0, 1, 0]]
        self._cache = UsdGeom.XformCache()
        prims = list(Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies()))
        self._bodies = [p for p in prims if p.HasAPI(UsdPhysics.RigidBodyAPI)]
        if not self._bodies:
            raise CharacterError(f"{path}: expected rigid bodies (PhysicsRigidBodyAPI), found none")
        self._names = _unique_names(self._bodies)
        self._joints = [UsdPhysics.Joint(p) for p in prims if p.IsA(UsdPhysics.Joint) and self._counts(p)]
        self._shapes = ShapeWriter(path, self._world_matrix)

    def convert(self) -> CharacterSource:
        """The whole character."""
        shapes = {body.GetPath(): self._shapes.write(body, self._pose(body)) for body in self._bodies}
        measured = self._measure(shapes)
        root = self._document(_BOUNDS)
        world = ET.SubElement(root, "worldbody")
        elements = {}
        for body in self._bodies:
            element = ET.Element("body", {"name": self._names[body.GetPath()], **placed(self._pose(body))})
            self._add_inertial(element, body, measured[body.GetPath()])
            element.extend(shapes[body.GetPath()])
            elements[body.GetPath()] = element
        below = self._build_tree(elements)
        for path, element in elements.items():
            if path not in below:
                ET.SubElement(element, "freejoint", name=f"{element.get('name')}_free")
                world.append(element)
            elif below[path] is None:
                world.append(element)
        return CharacterSource(self._path, ET.tostring(root, encoding="unicode"), self._shapes.files)

    def _document(self, bounds: Mapping[str, str]) -> ET.Element:
        root = ET.Element("mujoco", model=self._path.stem)
        ET.SubElement(root, "compiler", {**_COMPILER, **bounds})
        root.append(self._shapes.assets)
        return root

    # ------------------------------------------------------------------ bodies

    def _world_matrix(self, prim: Any) -> FloatArray:
        """(4, 4) from a prim's own coordinates to the world's, in metres, z up, with whatever scale there is."""
        matrix = np.array(self._cache.GetLocalToWorldTransform(prim)).T
        matrix[:3] *= self._meters
        return np.asarray(self._to_z_up @ matrix)

    def _pose(self, body: Any) -> FloatArray:
        pose = self._world_matrix(body)
        pose[:3, :3], _ = parts_of(pose[:3, :3])
        return pose

    def _measure(self, shapes: dict[Any, list[ET.Element]]) -> dict[Any, tuple[float, FloatArray, FloatArray]]:
        """Mass (kg), centre (3,) and inertia (3, 3) about it of every body, as its shapes have them."""
        root = self._document({})
        world = ET.SubElement(root, "worldbody")
        for body in self._bodies:
            ET.SubElement(world, "body", name=self._names[body.GetPath()]).extend(shapes[body.GetPath()])
        files = {f"{key.removeprefix('mesh/')}.obj": content for key, content in self._shapes.files.items()}
        try:
            spec = mujoco.MjSpec.from_string(ET.tostring(root, encoding="unicode"), assets=files)
        except ValueError as error:
            raise CharacterError(f"{self._path}: MuJoCo can't take over this file: {error}") from error
        model = compiled(spec, str(self._path))
        found = {}
        for body in self._bodies:
            b = model.body(self._names[body.GetPath()]).id
            axes = np.zeros(9)
            mujoco.mju_quat2Mat(axes, model.body_iquat[b])
            turn = axes.reshape(3, 3)
            inertia = turn @ np.diag(model.body_inertia[b]) @ turn.T
            found[body.GetPath()] = (float(model.body_mass[b]), model.body_ipos[b].copy(), inertia)
        return found

    def _add_inertial(self, element: ET.Element, body: Any, measured: tuple[float, FloatArray, FloatArray]) -> None:
        """What the file says of the mass, else what the shapes do."""
        volume_mass, center, inertia = measured
        api = self._physics.MassAPI(body)
        mass = float(api.GetMassAttr().Get() or 0.0) * self._kilograms
        density = float(api.GetDensityAttr().Get() or 0.0) * self._kilograms / self._meters**3
        if not mass and density:
            mass = volume_mass * density / 1000.0  # which MuJoCo has measured with
        mass = mass or volume_mass
        if not mass:
            return
        inertia = inertia * (mass / volume_mass if volume_mass else 0.0)
        _, scale = parts_of(self._world_matrix(body)[:3, :3])
        given = np.array(api.GetCenterOfMassAttr().Get() or [-math.inf] * 3, dtype=np.float64)
        center = given * scale if np.isfinite(given).all() else center
        diagonal = np.array(api.GetDiagonalInertiaAttr().Get() or [0.0] * 3, dtype=np.float64)
        if diagonal.any():
            turn = api.GetPrincipalAxesAttr().Get()
            axes = np.eye(3) if turn is None or not turn.GetLength() else quaternion(turn)
            inertia = axes @ np.diag(diagonal * self._kilograms * self._meters**2) @ axes.T
        elif not volume_mass:
            raise CharacterError(f"{self._path}: body {element.get('name')}: expected a diagonalInertia or a collision "
                                 "shape beside its mass, found neither")  # fmt: skip
        full = [inertia[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
        ET.SubElement(element, "inertial", pos=numbers(center), mass=numbers([mass]), fullinertia=numbers(full))

    # ------------------------------------------------------------------ joints

    def _counts(self, prim: Any) -> bool:
        joint = self._physics.Joint(prim)
        enabled = joint.GetJointEnabledAttr().Get() is not False
        return enabled and not joint.GetExcludeFromArticulationAttr().Get()

    def _build_tree(self, elements: dict[Any, ET.Element]) -> dict[Any, Any]:
        """Hang bodies below each other, from the root outwards; returns the parent (None: the world) of every body
        that a joint leads to.
        """
        below: dict[Any, Any] = {}
        left = list(self._joints)
        ends = {joint: self._ends(joint) for joint in left}
        children = {child for _, child in ends.values()}
        reached = [body for body in elements if body not in children] or list(elements)[:1]
        grounded = [joint for joint in left if None in ends[joint]]
        for joint in grounded:
            child = next(end for end in ends[joint] if end is not None)
            self._hang(joint, elements, below, None, child)
            left.remove(joint)
            reached.insert(0, child)
        while reached:
            body = reached.pop(0)
            for joint in [joint for joint in left if body in ends[joint]]:
                left.remove(joint)
                child = next(end for end in ends[joint] if end != body)
                self._hang(joint, elements, below, body, child)
                reached.append(child)
        return below

    def _ends(self, joint: Any) -> tuple[Any, Any]:
        """Paths of the bodies that a joint connects, None for the world."""
        found = []
        for relation in (joint.GetBody0Rel(), joint.GetBody1Rel()):
            targets = relation.GetTargets()
            prim = self._stage.GetPrimAtPath(targets[0]) if targets else None
            while prim and not prim.HasAPI(self._physics.RigidBodyAPI):
                prim = prim.GetParent()  # a frame within a body; nothing above it is the world
            found.append(prim.GetPath() if prim else None)
        if found[0] == found[1]:
            raise self._error(joint.GetPrim(), f"expected two bodies, found {found[0]}")
        return found[0], found[1]

    def _hang(
        self, joint: Any, elements: dict[Any, ET.Element], below: dict[Any, Any], parent: Any, child: Any
    ) -> None:
        if child in below:
            raise self._error(joint.GetPrim(), f"body {self._names[child]} hangs on a joint already; of a loop one "
                              "joint must be excluded from the articulation")  # fmt: skip
        below[child] = parent
        first, second = self._frames(joint)
        is_turned = self._ends(joint)[0] == child
        outer, inner = (second, first) if is_turned else (first, second)
        place = placed(outer @ np.linalg.inv(inner))
        elements[child].attrib.update(place)
        self._add_joint(elements[child], joint, inner, is_turned=is_turned)
        if parent is not None:
            elements[parent].append(elements[child])

    def _frames(self, joint: Any) -> tuple[FloatArray, FloatArray]:
        """The joint's frame (4, 4) in each of the two bodies, of the world in the world."""
        found = []
        for end, pos, rot in (
            (self._ends(joint)[0], joint.GetLocalPos0Attr().Get(), joint.GetLocalRot0Attr().Get()),
            (self._ends(joint)[1], joint.GetLocalPos1Attr().Get(), joint.GetLocalRot1Attr().Get()),
        ):
            frame = np.eye(4)
            frame[:3, :3] = quaternion(rot)
            if end is None:
                frame[:3, 3] = np.array(pos) * self._meters
                frame = self._to_z_up @ frame
            else:
                _, scale = parts_of(self._world_matrix(self._stage.GetPrimAtPath(end))[:3, :3])
                frame[:3, 3] = np.array(pos) * scale
            found.append(frame)
        return found[0], found[1]

    def _add_joint(self, element: ET.Element, joint: Any, frame: FloatArray, *, is_turned: bool) -> None:
        prim = joint.GetPrim()
        kind = _JOINTS.get(prim.GetTypeName())
        if kind is None:
            raise self._error(prim, f"expected one of {', '.join(_JOINTS)}, found {prim.GetTypeName()}")
        if not kind:
            return
        values = {"name": prim.GetName(), "type": kind, "pos": numbers(frame[:3, 3])}
        if kind != "ball":
            axis = frame[:3, :3] @ axis_vector(prim.GetAttribute("physics:axis").Get())
            values["axis"] = numbers(-axis if is_turned else axis)
        limits = self._limits(prim, kind)
        if limits is not None:
            values["range"] = numbers(limits)
        armature = prim.GetAttribute("physxJoint:armature")
        if armature and armature.Get():
            values["armature"] = numbers([armature.Get() * self._kilograms * self._meters**2])
        ET.SubElement(element, "joint", {**values, **self._drive(prim)})

    def _limits(self, prim: Any, kind: str) -> Sequence[float] | None:
        """rad; None without end."""
        if kind == "ball":
            cones = [prim.GetAttribute(f"physics:coneAngle{i}Limit").Get() for i in (0, 1)]
            return None if min(cones) < 0.0 else [0.0, math.radians(max(cones))]
        lower, upper = (float(prim.GetAttribute(f"physics:{side}Limit").Get()) for side in ("lower", "upper"))
        if lower >= upper:
            raise self._error(prim, f"expected a lower limit below the upper (degrees), found {[lower, upper]}")
        return None if math.isinf(lower) or math.isinf(upper) else [math.radians(lower), math.radians(upper)]

    def _error(self, prim: Any, what: str) -> CharacterError:
        return CharacterError(f"{self._path}: joint {prim.GetName()}: {what}")

    def _drive(self, prim: Any) -> dict[str, str]:
        """A drive's gains, which USD gives for degrees."""
        name = next((name for name in _DRIVES if prim.HasAPI(self._physics.DriveAPI, name)), None)
        if name is None:
            return {}
        drive, unit = self._physics.DriveAPI(prim, name), self._kilograms * self._meters**2
        values = {}
        for key, attribute in (("stiffness", drive.GetStiffnessAttr()), ("damping", drive.GetDampingAttr())):
            values[key] = numbers([math.degrees(float(attribute.Get() or 0.0)) * unit])
        most = float(drive.GetMaxForceAttr().Get() or math.inf) * unit
        if math.isfinite(most):
            values["actuatorfrcrange"] = numbers([-most, most])
        return values


def _unique_names(bodies: Sequence[Any]) -> dict[Any, str]:
    names = [body.GetName() for body in bodies]
    return {
        body.GetPath(): name if names.count(name) == 1 else str(body.GetPath()).strip("/").replace("/", "_")
        for body, name in zip(bodies, names, strict=True)
    }
