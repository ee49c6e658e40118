"""Small robots in USD, written by pxr."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest


def require_usd() -> None:
    """Skip the test where there is no usd-core; fail it where the environment says CI."""
    try:
        import pxr  # noqa: F401
    except ImportError:
        if os.environ.get("CI"):
            pytest.fail("no usd-core: pip install usd-core")
        pytest.skip("no usd-core: pip install usd-core")


class UsdRobot:
    """A stage that grows; lengths in its own units."""

    def __init__(self, path: Path, *, meters: float = 1.0, up: str = "Z") -> None:
        from pxr import Usd, UsdGeom

        self.path = path
        self.stage = Usd.Stage.CreateNew(str(path))
        UsdGeom.SetStageMetersPerUnit(self.stage, meters)
        UsdGeom.SetStageUpAxis(self.stage, up)
        self.stage.SetDefaultPrim(UsdGeom.Xform.Define(self.stage, "/robot").GetPrim())

    def body(self, name: str, pos: Sequence[float], *, mass: float | None = None, inertia: Sequence[float] = ()) -> str:
        from pxr import Gf, UsdGeom, UsdPhysics

        path = f"/robot/{name}"
        xform = UsdGeom.Xform.Define(self.stage, path)
        xform.AddTranslateOp().Set(Gf.Vec3d(*pos))
        UsdPhysics.RigidBodyAPI.Apply(xform.GetPrim())
        api = UsdPhysics.MassAPI.Apply(xform.GetPrim())
        if mass is not None:
            api.CreateMassAttr(mass)
        if inertia:
            api.CreateDiagonalInertiaAttr(Gf.Vec3f(*inertia))
            api.CreateCenterOfMassAttr(Gf.Vec3f(0, 0, 0))
        return path

    def shape(self, body: str, kind: str, *, pos: Sequence[float] = (0, 0, 0), scale: Sequence[float] = (1, 1, 1),
              collides: bool = True, guide: bool = False, color: Sequence[float] = (), **sizes: Any) -> Any:
        from pxr import Gf, UsdGeom, UsdPhysics

        number = len(self.stage.GetPrimAtPath(body).GetChildren())
        geom = getattr(UsdGeom, kind).Define(self.stage, f"{body}/shape{number}")
        geom.AddTranslateOp().Set(Gf.Vec3d(*pos))
        geom.AddScaleOp().Set(Gf.Vec3f(*scale))
        for key, value in sizes.items():
            geom.GetPrim().GetAttribute(key).Set(value)
        if collides:
            UsdPhysics.CollisionAPI.Apply(geom.GetPrim())
        if guide:
            geom.CreatePurposeAttr("guide")
        if color:
            geom.CreateDisplayColorAttr([Gf.Vec3f(*color)])
        return geom

    def joint(self, name: str, kind: str, bodies: tuple[str | None, str], pos0: Sequence[float],
              pos1: Sequence[float] = (0, 0, 0), **values: Any) -> Any:  # fmt: skip
        from pxr import Gf, UsdPhysics

        joint = getattr(UsdPhysics, f"{kind}Joint").Define(self.stage, f"/robot/{name}")
        for relation, body in zip((joint.CreateBody0Rel(), joint.CreateBody1Rel()), bodies, strict=True):
            if body:
                relation.SetTargets([body])
        joint.CreateLocalPos0Attr(Gf.Vec3f(*pos0))
        joint.CreateLocalPos1Attr(Gf.Vec3f(*pos1))
        joint.CreateLocalRot0Attr(Gf.Quatf(1, 0, 0, 0))
        joint.CreateLocalRot1Attr(Gf.Quatf(1, 0, 0, 0))
        for key, value in values.items():
            joint.GetPrim().GetAttribute(f"physics:{key}").Set(value)
        return joint

    def drive(self, joint: Any, stiffness: float, damping: float, most: float) -> None:
        from pxr import UsdPhysics

        drive = UsdPhysics.DriveAPI.Apply(joint.GetPrim(), "angular")
        drive.CreateStiffnessAttr(stiffness)
        drive.CreateDampingAttr(damping)
        drive.CreateMaxForceAttr(most)

    def save(self) -> Path:
        self.stage.GetRootLayer().Save()
        return self.path


def write_walker(path: Path, *, meters: float = 1.0, up: str = "Z") -> Path:
    """A trunk with an arm on a hinge, a ball at its end, and a fixed hand; the same robot in any units."""
    from pxr import Gf

    def at(x: float, y: float, z: float) -> tuple[float, float, float]:
        x, y, z = x / meters, y / meters, z / meters
        return (x, z, -y) if up == "Y" else (x, y, z)

    robot, m2 = UsdRobot(path, meters=meters, up=up), meters**2
    swap = (lambda x, y, z: (x, z, y)) if up == "Y" else (lambda x, y, z: (x, y, z))
    trunk = robot.body("trunk", at(0, 0, 0.5), mass=3.0, inertia=swap(0.03 / m2, 0.025 / m2, 0.01 / m2))
    robot.shape(trunk, "Cube", scale=swap(0.2 / meters, 0.1 / meters, 0.3 / meters), size=1.0, color=(0.9, 0.1, 0.1))
    arm = robot.body("arm", at(0, 0, 0.35), mass=1.0)
    robot.shape(arm, "Capsule", pos=at(0, 0, -0.1), radius=0.03 / meters, height=0.14 / meters, axis=up, guide=True)
    mesh = robot.shape(arm, "Mesh", collides=False)
    mesh.CreatePointsAttr([Gf.Vec3f(*at(*p)) for p in ((0, 0, 0), (0.03, 0, -0.2), (-0.03, 0, -0.2), (0, 0.03, -0.2))])
    mesh.CreateFaceVertexCountsAttr([3, 3, 3, 3])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2, 0, 2, 3, 0, 3, 1, 1, 3, 2])
    hand = robot.body("hand", at(0, 0, 0.15))
    robot.shape(hand, "Sphere", radius=0.05 / meters)
    tip = robot.body("tip", at(0, 0, 0.05), mass=0.1)
    robot.shape(tip, "Cylinder", radius=0.02 / meters, height=0.04 / meters, axis=up)
    hinge = robot.joint("elbow", "Revolute", (trunk, arm), at(0, 0, -0.15),
                        axis="Z" if up == "Y" else "Y", lowerLimit=-90.0, upperLimit=45.0)  # fmt: skip
    robot.drive(hinge, 2.0 / m2, 0.1 / m2, 30.0 / m2)
    robot.joint("wrist", "Spherical", (arm, hand), at(0, 0, -0.2), coneAngle0Limit=60.0, coneAngle1Limit=60.0)
    robot.joint("weld", "Fixed", (hand, tip), at(0, 0, -0.1))
    return robot.save()
