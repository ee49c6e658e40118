"""Environments without a policy, objects beside a character, and action bounds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from mimickit.engines.mujoco_engine import MujocoEngine
from mimickit.envs.base_env import DoneFlags, EnvMode
from mimickit.envs.char_dof_test_env import CharDofTestEnv
from mimickit.envs.char_env import CharEnv
from mimickit.envs.char_stand_test_env import CharStandTestEnv
from mimickit.envs.deepmimic_env import DeepMimicEnv
from mimickit.envs.sim_env import SimEnv
from mimickit.envs.view_motion_env import ViewMotionEnv
from mimickit.util.keys import ConfigError
from tests.anim.robots import write_robot

CHAR_FILE = "data/assets/humanoid/humanoid.xml"
CLIPS = sorted(Path("data/motions/humanoid").glob("*.npz"))


def make(cls: type[SimEnv], config: dict[str, Any], n: int = 1, mode: str = "pos") -> Any:
    engine = MujocoEngine({"control_mode": mode, "control_freq": 30, "sim_freq": 120}, num_envs=n)
    return cls({"char_file": CHAR_FILE, **config}, engine, num_envs=n, config_source="test.yaml")


@pytest.mark.parametrize("clip", CLIPS, ids=lambda clip: clip.stem)
def test_a_viewed_clip_is_shown_exactly_and_stands_on_the_ground(clip: Path) -> None:
    """The engine's step leaves the pose as it was put, and nothing is more than 5 cm below the ground."""
    env = make(ViewMotionEnv, {"motion_file": str(clip), "episode_length": 2.0})
    env.reset()
    done = 0
    while not done:
        done = int(env.step(torch.zeros(1, 1))[2])
        time = (env._steps * env._dt).float()
        frame = env._lib.frame(env._motion_ids, time)
        body_pos, _ = env._char.forward_kinematics(frame.root_pos, frame.root_rot, frame.joint_rot)
        torch.testing.assert_close(env._engine.get_body_pos(env._char_id), body_pos, atol=2e-3, rtol=0.0)
        assert float(body_pos[0, [11, 14], 2].min()) > 0.0  # the feet's origins are their ankles
    assert done == DoneFlags.TIME


def test_a_dataset_is_viewed_clip_by_clip() -> None:
    env = make(ViewMotionEnv, {"motion_file": "data/motions/humanoid/humanoid_locomotion.yaml"}, n=4)
    count = env._lib.num_motions
    assert count > 1
    assert env._motion_ids.tolist() == [i % count for i in range(4)]


def test_each_dof_swings_through_its_range_in_turn() -> None:
    config = yaml.safe_load(Path("data/envs/char_dof_test_humanoid_env.yaml").read_text())
    env = make(CharDofTestEnv, config)
    env.set_mode(EnvMode.TEST)
    env.reset()
    reached = torch.zeros(28)
    for _ in range(env.max_episode_steps):
        _, _, done, _ = env.step(torch.zeros(1, 1))
        dof = env._engine.get_dof_pos(env._char_id)[0]
        reached = torch.maximum(reached, dof.abs())
    assert int(done) == DoneFlags.TIME
    limits = env._char.dof_limits
    assert bool((reached > 0.8 * limits.abs().amax(-1)).all()), reached / limits.abs().amax(-1)


def test_dofs_swing_about_a_pose_that_is_not_zero(tmp_path: Path) -> None:
    write_robot(tmp_path / "hopper.urdf")
    description = tmp_path / "hopper.yaml"
    description.write_text("file: hopper.urdf\nhome: {hip: 0.3}\n")
    env = make(CharDofTestEnv, {"char_file": str(description), "episode_length": 2.0})
    env.reset()
    torch.testing.assert_close(env._engine.get_dof_pos(0), torch.tensor([[0.3, 0.0]]))
    found = []
    for _ in range(60):
        env.step(torch.zeros(1, 1))
        found.append(env._engine.get_dof_pos(0)[0])
    hip, spin = torch.stack(found).T
    assert -1.25 < float(hip.min()) < -1.0
    assert 0.65 < float(hip.max()) < 0.85
    assert float(spin.abs().max()) < 0.15
    assert float(env._engine.get_ground_contact_forces(0).abs().max()) == 0.0  # it hangs


def test_a_character_stands_in_its_home_pose(tmp_path: Path) -> None:
    """A block, from which an arm sticks out that its drive has to hold."""
    inertial = "<inertial><mass value='{}'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/></inertial>"
    path = tmp_path / "block.urdf"
    path.write_text(
        f"<robot name='block'><link name='block'>{inertial.format(20)}<collision><geometry><box size='1 1 0.4'/>"
        f"</geometry></collision></link><link name='arm'>{inertial.format(1)}</link>"
        "<joint name='lift' type='revolute'><parent link='block'/><child link='arm'/><origin xyz='0 0 1'/>"
        "<axis xyz='0 1 0'/><limit lower='0.4' upper='2' effort='50' velocity='1'/></joint></robot>"
    )
    env = make(CharStandTestEnv, {"char_file": str(path), "episode_length": 1.0})
    env.reset()
    torch.testing.assert_close(env._engine.get_root_pos(0), torch.tensor([[0.0, 0.0, 0.2]]))
    done = torch.zeros(1)
    while not done:
        _, _, done, _ = env.step(torch.zeros(1, 1))
    assert int(done) == DoneFlags.TIME
    torch.testing.assert_close(env._engine.get_root_pos(0), torch.tensor([[0.0, 0.0, 0.2]]), atol=2e-3, rtol=0.0)
    torch.testing.assert_close(env._engine.get_dof_pos(0), torch.tensor([[0.4]]), atol=0.02, rtol=0.0)


def test_objects_stand_where_the_file_puts_them(tmp_path: Path) -> None:
    box = tmp_path / "box.xml"
    box.write_text('<mujoco><worldbody><body name="b"><geom type="box" size="1 1 1"/></body></worldbody></mujoco>')
    objects = [{"file": str(box), "pos": [5.0, 0.0, 1.0], "rot": [0.0, 0.0, 1.0, 0.0]}]
    env = make(CharEnv, {"objects": objects}, n=2)
    env.step(torch.zeros(2, 28))
    torch.testing.assert_close(env._engine.get_root_pos(1), torch.tensor([[5.0, 0.0, 1.0]] * 2))
    with pytest.raises(ConfigError, match=r"objects\[0\].*file"):
        make(CharEnv, {"objects": [{"pos": [0, 0, 0]}]})


def test_position_targets_span_the_joints_ranges() -> None:
    env = make(CharEnv, {})
    limits = env._char.dof_limits.numpy()
    for joint in env._char.joints:
        dofs = slice(joint.dof_start, joint.dof_start + joint.dof_dim)
        assert np.all(env.action_space.high[dofs] >= limits[dofs, 1] - 1e-6), joint.name
        assert np.all(env.action_space.low[dofs] <= limits[dofs, 0] + 1e-6), joint.name
    centred = make(CharEnv, {"zero_center_action": True})
    np.testing.assert_allclose(centred.action_space.low, -centred.action_space.high)


def test_an_engine_without_drives_is_refused() -> None:
    with pytest.raises(ConfigError, match="control_mode"):
        make(CharEnv, {}, mode="none")
    with pytest.raises(ConfigError, match=r"residual.*control_mode.*'torque'"):
        make(DeepMimicEnv, {"motion_file": str(CLIPS[0]), "action_mode": "residual"}, mode="torque")


def test_a_character_stands_in_its_initial_pose_and_fails_when_it_falls() -> None:
    env = make(CharEnv, {"contact_bodies": ["right_foot", "left_foot"], "episode_length": 20.0})
    assert float(env._engine.get_root_pos(env._char_id)[0, 2]) == pytest.approx(0.8814, abs=1e-4)
    low = torch.from_numpy(env.action_space.low).unsqueeze(0)
    for _ in range(env.max_episode_steps):
        done = int(env.step(0.6 * low)[2])
        if done:
            break
    assert done == DoneFlags.FAIL


def test_rewards_that_are_no_numbers_are_said_once_and_count_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(CharEnv):
        def _compute_reward(self) -> torch.Tensor:
            return torch.tensor([1.0, float("nan")])

    env = make(Broken, {}, n=2)
    rewards = [env.step(torch.zeros(2, 28))[1].tolist() for _ in range(3)]
    assert rewards == [[1.0, 0.0]] * 3
    assert [r.message for r in caplog.records if "Broken._compute_reward" in r.message and "1 values" in r.message]
    assert len([r for r in caplog.records if "Broken" in r.message]) == 1


def test_a_reward_of_another_shape_is_refused_by_name() -> None:
    class Misshapen(CharEnv):
        def _compute_reward(self) -> torch.Tensor:
            return torch.zeros(3)

    with pytest.raises(ValueError, match=r"Misshapen\._compute_reward: expected shape \(2,\), found \(3,\)"):
        make(Misshapen, {}, n=2).step(torch.zeros(2, 28))


def test_a_viewed_dataset_goes_through_its_clips() -> None:
    config = {"motion_file": "data/motions/humanoid/humanoid_locomotion.yaml", "episode_length": 0.1}
    env = make(ViewMotionEnv, config)
    seen = []
    for _ in range(env._lib.num_motions):
        seen.append(int(env._motion_ids[0]))
        while not int(env.step(torch.zeros(1, 1))[2]):
            pass
        env.reset(torch.tensor([0]))
    assert seen == list(range(env._lib.num_motions))


def test_a_character_without_joints_has_nothing_to_swing(tmp_path: Path) -> None:
    ball = tmp_path / "ball.xml"
    ball.write_text('<mujoco><worldbody><body name="ball"><geom size="0.1"/></body></worldbody></mujoco>')
    with pytest.raises(ConfigError, match="expected a character with joints to swing, found none"):
        CharDofTestEnv({"char_file": str(ball)}, MujocoEngine({"control_mode": "pos"}, num_envs=1), num_envs=1)


def test_a_character_is_named_by_its_path() -> None:
    with pytest.raises(ConfigError, match="char_file: expected the path of a character or robot:NAME, found"):
        CharDofTestEnv({"char_file": {"robot": None}}, MujocoEngine({}, num_envs=1), num_envs=1)
