"""Kinematics against MuJoCo's own."""

import math
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mimickit.anim.char_model import CharModel
from mimickit.anim.mjcf import CharacterError
from mimickit.util.rotations import exp_map_to_quat, quat_angle, quat_conjugate, quat_mul, quat_normalize
from tests.anim.balls import ball_model, set_pose

HUMANOID = Path("data/assets/humanoid/humanoid.xml")
CROOKED = """
<mujoco><compiler angle="radian"/><worldbody>
  <body name="base" pos="1 2 3" quat=".5 .5 -.5 .5"><freejoint/><geom size=".1"/>
    <body name="hinged" pos=".1 .2 .3" quat=".9 .1 .3 -.2">
      <joint name="h" axis=".3 -.5 .8" pos=".05 -.1 .2"/><geom size=".1"/>
      <body name="balled" pos="0 .4 0" euler=".3 .2 .1">
        <joint name="b" type="ball" pos="0 0 -.3"/><geom size=".1"/>
        <body name="welded" pos=".1 0 .1" euler="0 1 0"><geom size=".1"/>
          <body name="group" pos="0 0 .5">
            <joint name="gy" axis="0 1 0" pos=".1 .1 0"/><joint name="gx" axis="1 0 0" pos=".1 .1 0"/>
            <joint name="gz" axis="0 0 -1" pos=".1 .1 0"/><geom size=".1"/>
          </body></body></body></body>
    <body name="second" pos="0 -.3 0"><joint name="s" axis="0 1 0"/><geom size=".1"/></body>
  </body>
</worldbody></mujoco>
"""


@pytest.fixture(params=["humanoid", "crooked"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "humanoid":
        return HUMANOID
    crooked = tmp_path / "crooked.xml"
    crooked.write_text(CROOKED)
    return crooked


def random_poses(char: CharModel, n: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Roots (n, 7) and joint rotations (n, J, 4)."""
    generator = torch.Generator().manual_seed(seed)
    root = torch.randn(n, 7, generator=generator)
    root[:, 3:] = quat_normalize(root[:, 3:])
    dofs = torch.randn(n, char.num_dofs, generator=generator)
    return root, char.dof_to_rot(dofs)


def test_body_poses_are_mujocos(path: Path) -> None:
    char = CharModel.from_file(path)
    model = ball_model(path, char)
    data = mujoco.MjData(model)
    root, joint_rot = random_poses(char, 20)
    pos, rot = char.forward_kinematics(root[:, :3], root[:, 3:], joint_rot)
    for i in range(len(root)):
        set_pose(model, data, char, root[i], joint_rot[i])
        np.testing.assert_allclose(pos[i], data.xpos[1:], atol=2e-6)
        expected = torch.tensor(np.roll(data.xquat[1:], -1, axis=1), dtype=torch.float32)
        assert quat_angle(quat_mul(quat_conjugate(rot[i]), expected)).max() < 2e-3


def test_three_hinges_turn_a_body_as_the_ball_does() -> None:
    """About one axis of three, the hinges of the file and the ball joint are the same, whatever the angle."""
    char = CharModel.from_file(HUMANOID)
    model = mujoco.MjModel.from_xml_path(str(HUMANOID))
    data = mujoco.MjData(model)
    dofs = torch.zeros(char.num_dofs)
    for joint in char.joints:
        if joint.dof_dim:
            dofs[joint.dof_start + joint.dof_dim // 2] = 0.1 * joint.dof_start - 1.0
    data.qpos[:3], data.qpos[3:7], data.qpos[7:] = 0.0, [1.0, 0.0, 0.0, 0.0], dofs
    mujoco.mj_kinematics(model, data)
    identity = torch.tensor([0.0, 0.0, 0.0, 1.0])
    pos, _ = char.forward_kinematics(torch.zeros(3), identity, char.dof_to_rot(dofs))
    np.testing.assert_allclose(pos, data.xpos[1:], atol=2e-6)


def test_leading_shapes_broadcast() -> None:
    char = CharModel.from_file(HUMANOID)
    root, joint_rot = random_poses(char, 6)
    flat_pos, flat_rot = char.forward_kinematics(root[:, :3], root[:, 3:], joint_rot)
    shaped = char.forward_kinematics(root[:, :3].view(2, 3, 3), root[:, 3:].view(2, 3, 4), joint_rot.view(2, 3, -1, 4))
    torch.testing.assert_close(shaped[0].view(6, -1, 3), flat_pos)
    torch.testing.assert_close(shaped[1].view(6, -1, 4), flat_rot)
    one_root, _ = char.forward_kinematics(root[0, :3], root[0, 3:], joint_rot)
    again, _ = char.forward_kinematics(root[:1, :3].expand(6, 3), root[:1, 3:].expand(6, 4), joint_rot)
    torch.testing.assert_close(one_root, again)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1.75, 1.75, width=32), min_size=28, max_size=28))
def test_dofs_survive_the_way_there_and_back(values: list[float]) -> None:
    char = CharModel.from_file(HUMANOID)
    dofs = torch.tensor(values)
    torch.testing.assert_close(char.rot_to_dof(char.dof_to_rot(dofs)), dofs, atol=2e-5, rtol=1e-5)


def test_dof_velocities_are_mujocos(path: Path) -> None:
    char = CharModel.from_file(path)
    model = ball_model(path, char)
    root, joint_rot = random_poses(char, 2, seed=3)
    near = quat_mul(joint_rot[0], exp_map_to_quat(0.2 * torch.randn(char.num_joints, 3)))
    second = char.dof_to_rot(char.rot_to_dof(near))
    poses = []
    for rot in (joint_rot[0], second):
        data = mujoco.MjData(model)
        set_pose(model, data, char, root[0], rot)
        poses.append(data.qpos.copy())
    qvel = np.zeros(model.nv)
    mujoco.mj_differentiatePos(model, qvel, 0.05, *poses)
    np.testing.assert_allclose(char.dof_vel(joint_rot[0], second, 0.05), qvel[6:], atol=2e-4)


def test_limits_are_never_empty(tmp_path: Path) -> None:
    text = (
        "<mujoco><compiler angle='radian'/><worldbody><body><geom size='1'/>"
        "<body name='arm'>{}<geom size='1'/></body></body></worldbody></mujoco>"
    )
    file = tmp_path / "c.xml"
    for unlimited in ("", "range='0 0'", "range='.5 .5'", "limited='false' range='0 1'"):
        file.write_text(text.format(f"<joint name='loose' {unlimited}/>"))
        torch.testing.assert_close(CharModel.from_file(file).dof_limits, torch.tensor([[-math.pi, math.pi]]))
    for stuck in ("limited='true' range='.5 .5'", "range='0 1e-9'"):
        file.write_text(text.format(f"<joint name='stuck' {stuck}/>"))
        with pytest.raises(CharacterError, match=r"(?s)c\.xml.*stuck"):
            CharModel.from_file(file)


def test_bodies_are_found_by_name_and_a_misspelt_one_is_told() -> None:
    char = CharModel.from_file(HUMANOID)
    assert char.body_names[char.body_id("left_foot")] == "left_foot"
    with pytest.raises(KeyError, match="right_foot"):
        char.body_id("right_fot")


def test_a_single_body_has_no_joints(tmp_path: Path) -> None:
    file = tmp_path / "box.xml"
    file.write_text("<mujoco><worldbody><body><freejoint/><geom type='box' size='1 1 1'/></body></worldbody></mujoco>")
    char = CharModel.from_file(file)
    pos, rot = char.forward_kinematics(torch.ones(5, 3), torch.ones(5, 4), char.dof_to_rot(torch.zeros(5, 0)))
    assert (pos.shape, rot.shape, char.num_dofs) == ((5, 1, 3), (5, 1, 4), 0)
