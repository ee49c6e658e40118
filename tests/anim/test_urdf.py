"""URDF characters: what the file says is what is simulated, and what can't be is an error that says where."""

import logging
import math
import xml.etree.ElementTree as ET
from pathlib import Path

import mujoco
import numpy as np
import pytest

from mimickit.anim.char_file import load_spec
from mimickit.anim.char_model import CharModel
from mimickit.anim.mjcf import JointKind, read_mjcf
from mimickit.anim.source import CharacterError
from tests.anim.robots import LEG, write_robot, write_stl

MESH = '<mesh filename="{}"/>'


def numbers(text: str | None) -> np.ndarray:
    return np.array([float(v) for v in (text or "0 0 0").split()])


def rpy_matrix(rpy: np.ndarray) -> np.ndarray:
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    return np.array([
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ])  # fmt: skip


def matrix_of(quat: np.ndarray) -> np.ndarray:
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, quat)
    return matrix.reshape(3, 3)


def test_masses_inertias_and_joints_are_those_in_the_xml(tmp_path: Path) -> None:
    path = write_robot(tmp_path / "hopper.urdf")
    robot = ET.fromstring(path.read_text())
    model, info = load_spec(path).compile(), read_mjcf(path)
    assert [body.name for body in info.bodies] == ["base", "trunk", "thigh", "wheel", "foot"]
    for link in robot.iter("link"):
        body, inertial = model.body(link.get("name")), link.find("inertial")
        if inertial is None:
            assert body.mass[0] < 2e-6
            continue
        assert body.mass[0] == float(inertial.find("mass").get("value"))
        origin = inertial.find("origin")
        place = (None, None) if origin is None else (origin.get("xyz"), origin.get("rpy"))
        np.testing.assert_allclose(body.ipos, numbers(place[0]), atol=1e-12)
        i = {key: float(value) for key, value in inertial.find("inertia").attrib.items()}
        rows = (("ixx", "ixy", "ixz"), ("ixy", "iyy", "iyz"), ("ixz", "iyz", "izz"))
        given = np.array([[i[key] for key in row] for row in rows])
        turn, axes = rpy_matrix(numbers(place[1])), matrix_of(body.iquat)
        np.testing.assert_allclose(axes @ np.diag(body.inertia) @ axes.T, turn @ given @ turn.T, atol=1e-9)
    for joint in robot.findall("joint"):
        body = model.body(joint.find("child").get("link"))
        origin = joint.find("origin")
        np.testing.assert_allclose(body.pos, numbers(origin.get("xyz")), atol=1e-12)
        np.testing.assert_allclose(matrix_of(body.quat), rpy_matrix(numbers(origin.get("rpy"))), atol=1e-9)
        if joint.get("type") == "fixed":
            continue
        (found,) = [j for j in info.joints if j.name == joint.get("name")]
        np.testing.assert_array_equal(found.axes, [numbers(joint.find("axis").get("xyz"))])
        limit, dynamics = joint.find("limit"), joint.find("dynamics")
        if limit is not None:
            assert found.limits.tolist() == [[float(limit.get("lower")), float(limit.get("upper"))]]
            assert found.torque_limit.tolist() == [float(limit.get("effort"))]
        if dynamics is not None:
            assert found.frictionloss.tolist() == [float(dynamics.get("friction"))]


def test_the_root_is_free_and_stands_on_the_ground(tmp_path: Path) -> None:
    info = read_mjcf(write_robot(tmp_path / "hopper.urdf"))
    assert info.has_free_root
    # feet 0.1 - 0.05 - 0.2 - 0.1 m from the root, on a sphere of 0.05 m
    np.testing.assert_allclose(info.home, [0, 0, 0.3, 0, 0, 0, 0, 0], atol=1e-9)
    joint = '<joint name="w" type="fixed"><parent link="world"/><child link="base"/></joint>'
    world = LEG.replace('<link name="base"/>', f'<link name="world"/><link name="base"/>{joint}')
    fixed = read_mjcf(write_robot(tmp_path / "fixed.urdf", text=world))
    assert (fixed.bodies[0].name, fixed.has_free_root) == ("base", False)


def test_a_continuous_joint_turns_without_end(tmp_path: Path) -> None:
    path = write_robot(tmp_path / "hopper.urdf")
    (spin,) = [joint for joint in read_mjcf(path).joints if joint.name == "spin"]
    assert spin.limits.tolist() == [[-math.inf, math.inf]]
    char = CharModel.from_file(path)
    np.testing.assert_allclose(char.dof_limits[spin.dof_start], [-math.pi, math.pi], rtol=1e-6)


def test_a_joint_without_a_drive_gets_one_by_its_strength_else_by_the_weight(tmp_path: Path) -> None:
    hip, spin = (j for j in read_mjcf(write_robot(tmp_path / "hopper.urdf")).joints if j.kind is JointKind.HINGE)
    assert hip.stiffness[0] == 2.0 * 40.0
    assert hip.damping[0] == pytest.approx(0.3 + 0.05 * 80.0)  # the file's friction of the air beside the drive's
    weight = 9.81 * (4.0 + 1.5 + 0.5 + 0.2)
    assert spin.stiffness[0] == pytest.approx(2.0 * 0.1 * weight, rel=1e-5)
    assert spin.torque_limit[0] == math.inf


# ---------------------------------------------------------------------- meshes


@pytest.mark.parametrize(
    ("mesh", "reference"),
    [
        ("hopper/meshes/thigh.stl", "package://hopper/meshes/thigh.stl"),  # the package holds the URDF
        ("other/meshes/thigh.stl", "package://other/meshes/thigh.stl"),  # a package beside it
        ("hopper/meshes/thigh.stl", "package://renamed/meshes/thigh.stl"),  # a checkout under another name
        ("ros/elsewhere/thigh.stl", "package://elsewhere/thigh.stl"),  # on ROS_PACKAGE_PATH
        ("hopper/urdf/meshes/thigh.stl", "./meshes/thigh.stl"),
        ("hopper/meshes/thigh.stl", "../meshes/thigh.stl"),
        ("hopper/urdf/thigh.stl", "thigh.stl"),
        ("far/thigh.STL", "file://{folder}/far/thigh.STL"),
        ("far/thigh.stl", "{folder}/far/thigh.stl"),
    ],
)
def test_meshes_are_found(tmp_path: Path, mesh: str, reference: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"{tmp_path}/none:{tmp_path}/ros")
    write_stl(tmp_path / mesh)
    given = reference.replace("{folder}", str(tmp_path))
    model = load_spec(write_robot(tmp_path / "hopper/urdf/hopper.urdf", thigh=MESH.format(given))).compile()
    assert model.nmesh == 1
    np.testing.assert_allclose(sorted(np.ptp(model.mesh_vert, axis=0)), [0.05, 0.05, 0.2], atol=1e-6)


def test_meshes_of_one_name_and_of_several_scales_stay_apart(tmp_path: Path) -> None:
    write_stl(tmp_path / "a/part.stl", (0.1, 0.1, 0.1))
    write_stl(tmp_path / "b/part.stl", (0.2, 0.2, 0.2))
    thigh = MESH.format("a/part.stl") + "</geometry></visual><visual><geometry>" + MESH.format("b/part.stl")
    thigh += '</geometry></visual><visual><geometry><mesh filename="a/part.stl" scale="5 5 5"/>'
    model = load_spec(write_robot(tmp_path / "r.urdf", thigh=thigh)).compile()
    sizes = [np.ptp(model.mesh_vert[a : a + n], axis=0)[0]
             for a, n in zip(model.mesh_vertadr, model.mesh_vertnum, strict=True)]  # fmt: skip
    np.testing.assert_allclose(sorted(sizes), [0.1, 0.2, 0.5], rtol=1e-6)


def test_missing_meshes_are_one_error_that_says_where_was_looked(tmp_path: Path) -> None:
    thigh = MESH.format("package://hopper/meshes/a.stl") + "</geometry></visual><visual><geometry>"
    thigh += MESH.format("b.stl")
    path = write_robot(tmp_path / "hopper/urdf/hopper.urdf", thigh=thigh)
    with pytest.raises(CharacterError) as error:
        read_mjcf(path)
    words = [str(path), "link thigh", "'package://hopper/meshes/a.stl'", f"{tmp_path}/hopper/meshes/a.stl", "'b.stl'",
             f"{tmp_path}/hopper/urdf/b.stl"]  # fmt: skip
    for word in words:
        assert word in str(error.value)


def test_a_mesh_format_that_mujoco_lacks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_robot(tmp_path / "r.urdf", thigh=MESH.format("package://x/thigh.dae"))
    with caplog.at_level(logging.WARNING):
        model = load_spec(path).compile()
    assert "thigh.dae" in caplog.text
    thigh = model.geom_group[model.geom_bodyid == model.body("thigh").id]
    assert thigh.tolist() == [0]  # its collision shape is shown
    text = LEG.replace('<cylinder radius="0.03" length="0.2"/>', MESH.format("thigh.dae"))
    with pytest.raises(CharacterError, match=r"link thigh: mesh 'thigh.dae': expected a format"):
        read_mjcf(write_robot(tmp_path / "c.urdf", text=text))


def test_a_joint_that_mimics_another_has_its_own_drive(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = LEG.replace('<axis xyz="0 1 0"/></joint>', '<axis xyz="0 1 0"/><mimic joint="hip"/></joint>')
    with caplog.at_level(logging.WARNING):
        model = load_spec(write_robot(tmp_path / "r.urdf", text=text)).compile()
    assert "joint spin: doesn't follow hip" in caplog.text
    assert model.neq == 0


def test_looks_are_shown_and_collision_shapes_are_not(tmp_path: Path) -> None:
    model = load_spec(write_robot(tmp_path / "hopper.urdf")).compile()
    shown = {model.body(b).name: sorted(model.geom_group[model.geom_bodyid == b].tolist()) for b in range(1, 6)}
    assert shown == {"base": [], "trunk": [1, 3], "thigh": [1, 3], "wheel": [0], "foot": [0]}
    np.testing.assert_allclose(model.geom_rgba[model.geom_bodyid == model.body("trunk").id][0], [0.1, 0.2, 0.9, 1])


# ---------------------------------------------------------------------- what is refused

HIP_LIMIT = '<limit lower="-1.2" upper="0.8" effort="40" velocity="10"/>'
REFUSED = {
    "no limit": ((HIP_LIMIT, ""), ["joint hip", "lower below upper", "continuous"]),
    "equal limits": (('lower="-1.2" upper="0.8"', 'lower="0.5" upper="0.5"'), ["joint hip", "[0.5, 0.5]"]),
    "limits turned": (('lower="-1.2" upper="0.8"', 'lower="1" upper="-1"'), ["joint hip", "[1.0, -1.0]"]),
    "prismatic": (('"hip" type="revolute"', '"hip" type="prismatic"'), ["body thigh", "hip", "found slide"]),
    "floating": (('"spin" type="continuous"', '"spin" type="floating"'), ["wheel", "free joint"]),
    "inertia": (('izz="0.04"', 'izz="4.0"'), ["trunk", "inertia must satisfy"]),
    "negative mass": (('<mass value="0.5"/>', '<mass value="-1"/>'), ["link wheel", "mass value", "found -1"]),
    "infinite mass": (('<mass value="0.5"/>', '<mass value="inf"/>'), ["link wheel", "mass value", "found inf"]),
    "inertia that is no number": (('izz="0.04"', 'izz="nan"'), ["link trunk", "inertia izz", "NaN"]),
    "negative effort": (('effort="40"', 'effort="-40"'), ["joint hip", "limit effort", "found -40"]),
    "a place that is no number": (('xyz="0.05 0 -0.05"', 'xyz="0.05 zero 0"'), ["joint hip", "origin xyz", "'zero'"]),
    "no number": (('upper="0.8"', 'upper="wide"'), ["joint hip", "upper", "'wide'"]),
    "no link": (('<child link="foot"/>', ""), ["joint foot_fixed", "<child link=...>"]),
    "two roots": (('<link name="base"/>', '<link name="base"/><link name="lost"/>'), ["found 2: base, lost"]),
    "xacro": (('<robot name="hopper">', '<robot name="hopper" xmlns:xacro="http://www.ros.org/wiki/xacro">'
               '<xacro:property name="r" value="1"/>'), ["xacro"]),
    "no XML": (("</robot>", ""), ["not XML"]),
    "a link twice": (('<link name="base"/>', '<link name="base"/><link name="base"/>'), ["link 'base'", "no other"]),
    "a joint twice": (('"spin" type', '"hip" type'), ["joint 'hip'", "no other"]),
    "two parents": (('<child link="foot"/>', '<child link="wheel"/>'), ["foot_fixed", "'wheel'", "spin", "tree"]),
    "a ring": (('<parent link="base"/>', '<parent link="foot"/>'), ["ring", "foot", "trunk"]),
    "unknown link": (('<parent link="wheel"/>', '<parent link="whel"/>'), ["joint foot_fixed", "'whel'", "'wheel'"]),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_urdf_may_not_hold_is_named(tmp_path: Path, case: str) -> None:
    (old, new), words = REFUSED[case]
    assert old in LEG
    path = write_robot(tmp_path / "bad.urdf", text=LEG.replace(old, new, 1))
    with pytest.raises(CharacterError) as error:
        read_mjcf(path)
    for word in [str(path), *words]:
        assert word in str(error.value)
