"""Characters as MuJoCo compiles them; structure recognised, what can't be used refused by name."""

import math
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from mimickit.anim.char_file import load_spec
from mimickit.anim.char_model import CharModel
from mimickit.anim.mjcf import JointKind, read_mjcf
from mimickit.anim.source import CharacterError
from mimickit.util.rotations import exp_map_to_quat

HUMANOID = Path("data/assets/humanoid/humanoid.xml")


def write(tmp_path: Path, children: str, *, head: str = "", root: str = "<freejoint/>", tail: str = "") -> Path:
    path = tmp_path / "character.xml"
    path.write_text(
        f"<mujoco model='c'>{head}<worldbody><body name='root'>{root}<geom size='.1'/>{children}</body>"
        f"</worldbody>{tail}</mujoco>"
    )
    return path


def body(joints: str, *, name: str = "arm", attributes: str = "") -> str:
    return f"<body name='{name}' {attributes}>{joints}<geom size='.1'/></body>"


def hinges(*axes: str, names: tuple[str, ...] = ("a", "b", "c"), extra: str = "") -> str:
    return "".join(f"<joint name='{n}' axis='{a}' armature='1' {extra}/>" for n, a in zip(names, axes, strict=False))


def test_the_humanoid_is_the_standard_one() -> None:
    info = read_mjcf(HUMANOID)
    assert [b.name for b in info.bodies] == [
        "pelvis", "torso", "head", "right_upper_arm", "right_lower_arm", "right_hand", "left_upper_arm",
        "left_lower_arm", "left_hand", "right_thigh", "right_shin", "right_foot", "left_thigh", "left_shin",
        "left_foot",
    ]  # fmt: skip
    sizes = [(j.name, j.dof_dim) for j in info.joints if j.dof_dim]
    assert sizes == [
        ("abdomen", 3), ("neck", 3),
        ("right_shoulder", 3), ("right_elbow", 1), ("left_shoulder", 3), ("left_elbow", 1),
        ("right_hip", 3), ("right_knee", 1), ("right_ankle", 3),
        ("left_hip", 3), ("left_knee", 1), ("left_ankle", 3),
    ]  # fmt: skip
    assert info.num_dofs == 28
    assert info.has_free_root
    assert sum(b.mass for b in info.bodies) == pytest.approx(45.0)
    assert info.bodies[0].pos[2] == pytest.approx(0.88, abs=0.005)
    elbows = {j.name: j for j in info.joints if "elbow" in j.name}
    np.testing.assert_allclose(elbows["right_elbow"].limits, [[0.0, 2.8]])
    np.testing.assert_allclose(elbows["left_elbow"].limits, [[-2.8, 0.0]])
    np.testing.assert_allclose(elbows["left_elbow"].axes, [[0.0, 0.0, 1.0]])


def test_the_humanoid_stands_without_touching_itself() -> None:
    model = load_spec(HUMANOID).compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.ncon == 0
    soles = [data.geom(f"{side}_foot").xpos[2] - model.geom(f"{side}_foot").size[2] for side in ("left", "right")]
    np.testing.assert_allclose(soles, 0.0, atol=1e-3)


DEFAULTS = """
<compiler angle="degree"/>
<default>
  <joint armature="0.5" range="-30 60" damping="2"/>
  <default class="outer"><joint range="-10 20" stiffness="7"/>
    <default class="inner"><joint axis="0 1 0" actuatorfrcrange="-9 9" frictionloss="0.25"/></default>
  </default>
</default>
"""
DEFAULT_BODIES = """
<body name="a" childclass="outer"><joint name="a"/><geom size=".1"/>
  <body name="b"><joint name="b" class="inner"/><geom size=".1"/></body></body>
<body name="c"><joint name="c" limited="false"/><geom size=".1"/>
  <body name="d"><joint name="d" axis="0 0 2" range="5 6"/><geom size=".1"/></body></body>
"""


def test_defaults_and_degrees_mean_what_mujoco_compiles(tmp_path: Path) -> None:
    path = write(tmp_path, DEFAULT_BODIES, head=DEFAULTS)
    model = load_spec(path).compile()
    info = read_mjcf(path)
    for joint in info.joints:
        compiled = model.joint(joint.source_joints[0])
        limited = bool(model.jnt_limited[compiled.id])
        expected = compiled.range if limited else [-math.inf, math.inf]
        np.testing.assert_array_equal(joint.limits, [expected])
        np.testing.assert_array_equal(joint.axes, [compiled.axis])
        np.testing.assert_array_equal(joint.damping, compiled.damping)
        np.testing.assert_array_equal(joint.armature, compiled.armature)
        np.testing.assert_array_equal(joint.frictionloss, compiled.frictionloss)
    a, b, c, d = info.joints
    np.testing.assert_allclose(np.degrees(a.limits), [[-10, 20]])
    np.testing.assert_allclose(np.degrees(d.limits), [[5, 6]])
    assert (a.stiffness[0], b.torque_limit[0], c.torque_limit[0]) == (7.0, 9.0, math.inf)
    np.testing.assert_allclose((b.axes[0], d.axes[0]), ((0, 1, 0), (0, 0, 1)))


@pytest.mark.parametrize("names", [("hip_x", "hip_y", "hip_z"), ("joint12", "q", "left"), ("", "", "")])
def test_three_hinges_are_a_ball_whatever_their_names(tmp_path: Path, names: tuple[str, ...]) -> None:
    texts = [f"name='{n}'" if n else "" for n in names]
    joints = "".join(f"<joint {t} axis='{a}'/>" for t, a in zip(texts, ("1 0 0", "0 1 0", "0 0 1"), strict=True))
    info = read_mjcf(write(tmp_path, body(joints)))
    (joint,) = info.joints
    assert joint.kind == JointKind.BALL
    assert joint.dof_dim == info.num_dofs == 3
    assert joint.name == ("hip" if names[0] == "hip_x" else "arm")
    np.testing.assert_array_equal(joint.axes, np.eye(3))


def test_hinges_in_another_order_or_sign_are_sorted_and_flipped(tmp_path: Path) -> None:
    joints = (
        "<joint name='z' axis='0 0 -1' range='-1 2' stiffness='3'/>"
        "<joint name='x' axis='1 0 0' range='-3 4' stiffness='1'/>"
        "<joint name='y' axis='0 -1 0' range='-.5 .25' stiffness='2'/>"
    )
    (joint,) = read_mjcf(write(tmp_path, body(joints), head="<compiler angle='radian'/>")).joints
    assert joint.source_joints == ("x", "y", "z")
    np.testing.assert_allclose(joint.limits, np.array([[-3.0, 4.0], [-0.25, 0.5], [-2.0, 1.0]]))
    np.testing.assert_allclose(joint.stiffness, [1, 2, 3])


def test_a_native_ball_and_a_common_anchor(tmp_path: Path) -> None:
    head = "<compiler angle='radian'/>"
    ball = body("<joint name='b' type='ball' range='0 1.5' damping='3'/>", name="one")
    group = body(hinges("1 0 0", "0 1 0", "0 0 1", names=("u", "v", "w"), extra="pos='0 0 .1'"), name="two")
    one, two = read_mjcf(write(tmp_path, ball + group, head=head)).joints
    assert one.kind == two.kind == JointKind.BALL
    np.testing.assert_allclose(one.limits, [[-1.5, 1.5]] * 3)
    np.testing.assert_allclose(one.damping, [3] * 3)
    np.testing.assert_allclose(two.pos, [0, 0, 0.1])
    assert np.isinf(two.limits).all()


def test_gains_and_torque_limits_come_from_actuators_where_joints_have_none(tmp_path: Path) -> None:
    bodies = "".join(body(f"<joint name='{n}' damping='1'/>", name=n) for n in "pmfn")
    tail = (
        "<actuator><position joint='p' kp='80' kv='4'/><motor joint='m' gear='20' ctrlrange='-2 1'/>"
        "<motor joint='f' gear='3' forcerange='-5 5' ctrlrange='-1 1'/></actuator>"
    )
    p, m, f, n = read_mjcf(write(tmp_path, bodies, tail=tail)).joints
    assert (p.stiffness[0], p.damping[0], p.torque_limit[0]) == (80.0, 4.0, math.inf)
    assert (m.stiffness[0], m.damping[0], m.torque_limit[0]) == (0.0, 1.0, 40.0)
    assert f.torque_limit[0] == 15.0
    assert n.torque_limit[0] == math.inf


REFUSED = {
    "two hinges": (hinges("1 0 0", "0 1 0"), ["arm", "a, b", "found hinge, hinge"]),
    "four hinges": (
        hinges("1 0 0", "0 1 0", "0 0 1", "1 0 0", names=("a", "b", "c", "d")),
        ["arm", "a, b, c, d"],
    ),
    "slide": ("<joint name='s' type='slide'/>", ["arm", "joints s", "found slide"]),
    "oblique": (hinges("1 1 0", "0 1 0", "0 0 1"), ["arm", "a, b, c", "0.707107 0.707107 0"]),
    "same axis twice": (hinges("1 0 0", "0 1 0", "0 1 0"), ["arm", "a, b, c", "x, y and z"]),
    "anchors apart": (
        hinges("1 0 0", "0 1 0") + "<joint name='c' axis='0 0 1' pos='0 0 .1'/>",
        ["arm", "a, b, c", "common pos"],
    ),
    "reference angle": ("<joint name='r' axis='1 0 0' ref='30'/>", ["arm", "joints r", "ref"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_character_may_not_hold_is_named(tmp_path: Path, case: str) -> None:
    joints, words = REFUSED[case]
    path = write(tmp_path, body(joints))
    with pytest.raises(CharacterError) as error:
        read_mjcf(path)
    for word in [str(path), *words]:
        assert word in str(error.value)


def test_the_root_is_free_or_fixed(tmp_path: Path) -> None:
    assert not read_mjcf(write(tmp_path, "", root="")).has_free_root
    with pytest.raises(CharacterError, match="root body may have a free joint or none"):
        read_mjcf(write(tmp_path, "", root="<joint name='turn'/>"))


def test_files_that_are_no_single_character(tmp_path: Path) -> None:
    path = tmp_path / "two.xml"
    path.write_text(
        "<mujoco><worldbody><body name='p'><geom size='1'/></body><body name='q'><geom size='1'/></body>"
        "</worldbody></mujoco>"
    )
    with pytest.raises(CharacterError, match="found 2: p, q"):
        read_mjcf(path)
    with pytest.raises(CharacterError, match="no such character file"):
        read_mjcf(tmp_path / "none.xml")
    path.write_text("<mujoco><worldbody><body><geom size='1'/></worldbody></mujoco>")
    with pytest.raises(CharacterError, match="can't read this file"):
        read_mjcf(path)
    path.write_text("<mujoco><worldbody><body><geom type='mesh' mesh='none'/></body></worldbody></mujoco>")
    with pytest.raises(CharacterError, match=r"two\.xml: MuJoCo can't"):
        read_mjcf(path)


def test_missing_files_of_a_character_are_named_with_where_was_looked(tmp_path: Path) -> None:
    path = tmp_path / "r.xml"
    for kind, folder in (("mesh", "meshdir='parts'"), ("texture", "texturedir='parts'")):
        kind_of = "type='2d'" if kind == "texture" else ""
        path.write_text(
            f"<mujoco><compiler {folder}/><asset><{kind} name='skin' {kind_of} file='skin.png'/></asset>"
            "<worldbody><body><geom size='1'/></body></worldbody></mujoco>"
        )
        with pytest.raises(CharacterError) as error:
            read_mjcf(path)
        for word in (str(path), f"{kind} skin", "'skin.png'", f"{tmp_path}/parts/skin.png"):
            assert word in str(error.value)


def test_the_pose_to_begin_in_is_the_keyframe_home(tmp_path: Path) -> None:
    """Of hinges that make a ball joint too, which turn one after the other."""
    arm = body(hinges("0 0 1", "0 -1 0", "1 0 0", names=("z", "y", "x")), attributes="quat='.6 0 .8 0' pos='0 .3 0'")
    fore = body("<joint name='h' axis='0 0 -1'/>", name="fore", attributes="pos='.4 0 .1'")
    keys = "".join(f"<key name='{n}' qpos='1 2 3 .6 .8 0 0 {a} .5 -.4 .3'/>" for n, a in (("up", 0), ("home", 0.7)))
    nested = arm.replace("</body>", f"{fore}</body>", 1)
    path = write(tmp_path, nested, tail=f"<keyframe>{keys}</keyframe>")
    char = CharModel.from_file(path)
    home = torch.from_numpy(char.info.home).float()
    pos, rot = char.forward_kinematics(home[:3], exp_map_to_quat(home[3:6]), char.dof_to_rot(home[6:]))
    model = load_spec(path).compile()
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 1)
    mujoco.mj_kinematics(model, data)
    np.testing.assert_allclose(pos, data.xpos[1:], atol=1e-6)
    np.testing.assert_allclose(np.abs((rot.numpy() * np.roll(data.xquat[1:], -1, axis=1)).sum(-1)), 1.0, atol=1e-6)
    assert float(home[-1]) == pytest.approx(0.3)
    humanoid = read_mjcf(HUMANOID)
    assert humanoid.home.tolist() == [*humanoid.bodies[0].pos, *np.zeros(31)]
