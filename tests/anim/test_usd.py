"""USD characters: what the stage says is what is simulated, in whatever units it says it."""

import builtins
import math
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from mimickit.anim.char_file import load_spec, source_of
from mimickit.anim.mjcf import JointKind, read_mjcf
from mimickit.anim.source import CharacterError
from tests.anim.usd_robots import UsdRobot, require_usd, write_walker


@pytest.fixture(autouse=True)
def _usd() -> None:
    require_usd()


@pytest.mark.parametrize(("meters", "up"), [(1.0, "Z"), (0.01, "Z"), (1.0, "Y"), (0.01, "Y")])
def test_a_robot_is_the_same_in_any_units(tmp_path: Path, meters: float, up: str) -> None:
    path = write_walker(tmp_path / "walker.usda", meters=meters, up=up)
    model, info = load_spec(path).compile(), read_mjcf(path)
    assert [(b.name, b.parent) for b in info.bodies] == [("trunk", -1), ("arm", 0), ("hand", 1), ("tip", 2)]
    assert info.has_free_root
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.xpos[1:], [[0, 0, z] for z in (0.5, 0.35, 0.15, 0.05)], atol=1e-6)
    ball_mass = 1000.0 * 4.0 / 3.0 * math.pi * 0.05**3  # water's density, where nothing is said
    np.testing.assert_allclose(model.body_mass[1:], [3.0, 1.0, ball_mass, 0.1], rtol=1e-6)
    np.testing.assert_allclose(sorted(model.body_inertia[1]), [0.01, 0.025, 0.03], rtol=1e-6)
    np.testing.assert_allclose(model.body_inertia[3], 0.4 * ball_mass * 0.05**2, rtol=1e-6)
    tip = 0.1 * (3 * 0.02**2 + 0.04**2) / 12  # a cylinder's, across
    np.testing.assert_allclose(sorted(model.body_inertia[4]), sorted([tip, tip, 0.1 * 0.02**2 / 2]), rtol=1e-5)
    elbow, wrist, weld = info.joints
    assert (elbow.kind, wrist.kind, weld.kind) == (JointKind.HINGE, JointKind.BALL, JointKind.FIXED)
    np.testing.assert_allclose(elbow.limits, np.radians([[-90, 45]]), rtol=1e-6)
    np.testing.assert_allclose([*elbow.stiffness, *elbow.damping], np.degrees([2.0, 0.1]), rtol=1e-5)  # given a degree
    np.testing.assert_allclose(elbow.torque_limit, 30.0, rtol=1e-6)
    np.testing.assert_allclose(wrist.limits, np.radians([[-60, 60]] * 3), rtol=1e-6)
    axis = np.zeros(3)
    mujoco.mju_rotVecQuat(axis, elbow.axes[0], data.xquat[2])
    np.testing.assert_allclose(axis, [0, -1, 0] if up == "Y" else [0, 1, 0], atol=1e-9)
    np.testing.assert_allclose(info.home[2], 0.47, atol=1e-6)  # its lowest point, the tip's at 0.03, is on the ground


def test_shapes_and_colours(tmp_path: Path) -> None:
    path = write_walker(tmp_path / "walker.usda", meters=0.01, up="Y")
    model, source = load_spec(path).compile(), source_of(path)
    assert len(source.files) == 1
    arm = np.flatnonzero(model.geom_bodyid == model.body("arm").id)
    assert {int(model.geom_type[g]): int(model.geom_group[g]) for g in arm} == {
        int(mujoco.mjtGeom.mjGEOM_CAPSULE): 3,  # a guide is not for the eye
        int(mujoco.mjtGeom.mjGEOM_MESH): 0,
    }
    np.testing.assert_allclose(sorted(np.ptp(model.mesh_vert, axis=0)), [0.03, 0.06, 0.2], rtol=0.05)
    (trunk,) = np.flatnonzero(model.geom_bodyid == model.body("trunk").id)
    np.testing.assert_allclose(model.geom_rgba[trunk], [0.9, 0.1, 0.1, 1.0], rtol=1e-6)
    np.testing.assert_allclose(sorted(model.geom_size[trunk]), [0.05, 0.1, 0.15], rtol=1e-6)


def two_bodies(path: Path, **usd: Any) -> tuple[UsdRobot, str, str]:
    robot = UsdRobot(path, **usd)
    bodies = [robot.body(name, (0, 0, z), mass=1.0, inertia=(1, 1, 1)) for name, z in (("low", 0.0), ("high", 1.0))]
    return robot, bodies[0], bodies[1]


def test_a_fixed_root_and_a_joint_that_names_its_bodies_the_other_way_round(tmp_path: Path) -> None:
    robot, low, high = two_bodies(tmp_path / "r.usda")
    robot.joint("ground", "Fixed", (None, low), (0, 0, 0))
    robot.joint("turn", "Revolute", (high, low), (0, 0, -0.4), (0, 0, 0.6), axis="X", lowerLimit=-10.0, upperLimit=80.0)
    info = read_mjcf(robot.save())
    assert not info.has_free_root
    (turn,) = info.joints
    assert turn.body == 1
    np.testing.assert_allclose(turn.pos, [0, 0, -0.4], atol=1e-6)
    np.testing.assert_allclose(turn.axes, [[-1, 0, 0]], atol=1e-9)  # what is positive stays positive
    np.testing.assert_allclose(info.bodies[1].pos, [0, 0, 1.0], atol=1e-6)


def add(kind: str, **values: Any) -> Any:
    def change(robot: UsdRobot, low: str, high: str) -> None:
        robot.joint("j", kind, (low, high), (0, 0, 1), **values)

    return change


def loop(robot: UsdRobot, low: str, high: str) -> None:
    robot.joint("a", "Fixed", (low, high), (0, 0, 1))
    robot.joint("j", "Fixed", (None, high), (0, 0, 1))
    robot.joint("k", "Fixed", (None, low), (0, 0, 0))


def no_shape(robot: UsdRobot, low: str, high: str) -> None:
    robot.joint("j", "Fixed", (low, robot.body("heavy", (0, 0, 2), mass=2.0)), (0, 0, 2))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (add("Prismatic", axis="X", lowerLimit=0.0, upperLimit=1.0), ["body high", "joints j", "found slide"]),
        (add("Distance"), ["joint j", "PhysicsRevoluteJoint", "found PhysicsDistanceJoint"]),
        (add("Revolute", axis="X", lowerLimit=5.0, upperLimit=5.0), ["joint j", "lower limit", "[5.0, 5.0]"]),
        (lambda *_: None, ["one root body", "found 2: low, high"]),
        (loop, ["loop", "hangs on a joint already"]),
        (no_shape, ["body heavy", "diagonalInertia"]),
    ],
)
def test_what_a_usd_may_not_hold_is_named(tmp_path: Path, change: Any, words: list[str]) -> None:
    robot, low, high = two_bodies(tmp_path / "bad.usda")
    change(robot, low, high)
    with pytest.raises(CharacterError) as error:
        read_mjcf(robot.save())
    for word in ["bad.usda", *words]:
        assert word in str(error.value)


def test_files_that_are_no_robot(tmp_path: Path) -> None:
    path = tmp_path / "no.usda"
    path.write_text("not usd")
    with pytest.raises(CharacterError, match=r"no\.usda: not a USD file"):
        read_mjcf(path)
    path.write_text("#usda 1.0\n")
    with pytest.raises(CharacterError, match=r"no\.usda: expected rigid bodies"):
        read_mjcf(path)
    with pytest.raises(CharacterError, match="no such character file"):
        read_mjcf(tmp_path / "none.usd")


def test_a_missing_library_is_an_error_that_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_walker(tmp_path / "walker.usda")
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "pxr":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(CharacterError, match=r"pip install 'usd-core>=25\.5'"):
        read_mjcf(path)
