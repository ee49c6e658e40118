"""The tracking environment on the real engine, character and clips."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from mimickit.engines.mujoco_engine import MujocoEngine
from mimickit.envs.base_env import DoneFlags, EnvMode
from mimickit.envs.deepmimic_env import DeepMimicEnv
from mimickit.util.keys import ConfigError
from mimickit.util.rotations import exp_map_to_quat

ENV_FILE = "data/envs/deepmimic_humanoid_walk_env.yaml"


def make(n: int = 4, *, seed: int = 0, sim_freq: int = 120, **changes: Any) -> DeepMimicEnv:
    config = {**yaml.safe_load(Path(ENV_FILE).read_text()), **changes}
    engine = MujocoEngine({"control_mode": "pos", "control_freq": 30, "sim_freq": sim_freq}, num_envs=n)
    return DeepMimicEnv(config, engine, num_envs=n, seed=seed, config_source=ENV_FILE)


def zero(env: DeepMimicEnv) -> torch.Tensor:
    return torch.zeros(env.num_envs, env.action_space.shape[0])


def test_a_held_reference_stays_where_it_is() -> None:
    """Before any training: the drives, given the reference's own dofs, keep it for a control step."""
    env = make(16, action_mode="absolute")
    start = env._reference.dof_pos[:, 0].clone()
    obs, reward, done, _ = env.step(torch.clamp(start, env._low, env._high) if hasattr(env, "_low") else start)
    error = (env._engine.get_dof_pos(env._char_id) - start).abs()
    assert float(error.mean()) < 0.05
    assert float(reward.min()) > 0.5
    assert not bool((done == DoneFlags.FAIL).any())
    assert torch.isfinite(obs).all()


def test_residual_actions_of_zero_follow_the_clip_for_a_while() -> None:
    env = make(16)
    rewards = [env.step(zero(env))[1].mean() for _ in range(5)]
    assert min(float(r) for r in rewards) > 0.7


def test_episodes_start_on_the_clip() -> None:
    env = make(8)
    char, ref = env._char_state(), env._reference.now()
    for name in ("root_pos", "root_rot", "root_vel", "root_ang_vel", "dof_vel", "body_pos"):
        torch.testing.assert_close(getattr(char, name), getattr(ref, name), atol=2e-4, rtol=1e-3, msg=name)


def test_same_seed_same_episodes_and_another_seed_others() -> None:
    def film(seed: int) -> torch.Tensor:
        env = make(4, seed=seed)
        for _ in range(10):
            obs, _, done, _ = env.step(zero(env))
            env.reset(torch.nonzero(done).squeeze(-1))
        return obs

    assert torch.equal(film(3), film(3))
    assert not torch.equal(film(3), film(4))


def test_time_ends_an_episode_and_the_last_observation_is_its_own() -> None:
    env = make(2, episode_length=0.2, enable_early_termination=False)
    assert env.max_episode_steps == 6
    for step in range(6):
        obs, _, done, _ = env.step(zero(env))
        assert done.tolist() == [DoneFlags.TIME if step == 5 else DoneFlags.NULL] * 2
    assert not torch.equal(env.reset(torch.tensor([0]))[0], obs[0])
    assert torch.equal(env.reset(torch.tensor([], dtype=torch.int64))[1], obs[1])


def test_a_fall_is_a_failure() -> None:
    env = make(2, pose_termination=False)
    one, side = torch.tensor([1]), exp_map_to_quat(torch.tensor([0.0, math.pi / 2, 0.0]))
    env._engine.set_root_rot(one, env._char_id, side)
    env._engine.set_root_pos(one, env._char_id, torch.tensor([0.0, 0.0, 0.2]))
    done = [env.step(zero(env))[2].tolist() for _ in range(8)]
    assert done[0][0] == DoneFlags.NULL
    assert [0, DoneFlags.FAIL] in done


@pytest.mark.parametrize("measure", ["max", "mean"])
def test_straying_from_the_reference_is_a_failure(measure: str) -> None:
    env = make(2, pose_termination_measure=measure, pose_termination_dist=1.0)
    pos = env._engine.get_root_pos(env._char_id)[1] + torch.tensor([1.2, 0.0, 0.0])
    env._engine.set_root_pos(torch.tensor([1]), env._char_id, pos)
    assert env.step(zero(env))[2].tolist() == [DoneFlags.NULL, DoneFlags.FAIL]


def test_a_diverging_simulation_fails_its_episode_alone() -> None:
    env = make(4)
    env._engine.set_dof_vel(torch.tensor([2]), env._char_id, torch.full((28,), float("inf")))
    obs, reward, done, info = env.step(zero(env))
    assert done.tolist() == [0, 0, DoneFlags.FAIL, 0]
    assert info["sim_failed"].tolist() == [False, False, True, False]
    assert torch.isfinite(obs).all()
    assert torch.isfinite(reward).all()
    env.reset(torch.tensor([2]))
    assert env.step(zero(env))[2].tolist() == [0, 0, 0, 0]


def test_test_mode_spreads_its_starts_and_reports_errors_with_units() -> None:
    env = make(16)
    env.set_mode(EnvMode.TEST)
    env.reset()
    phases = torch.sort(env._motion_times / env._lib.lengths[0]).values
    assert float(phases[0]) == 0.0
    assert float(phases.diff().max()) < 0.13
    first = env._motion_times.clone()
    env.step(zero(env))
    errors = env.record_diagnostics()
    assert errors["body_pos_err_m"] > 0.0
    assert {name.rsplit("_", 1)[-1] for name in errors} <= {"m", "rad", "s"}
    env.set_mode(EnvMode.TRAIN)
    assert env.record_diagnostics() == {}
    env.set_mode(EnvMode.TEST)
    env.reset()
    assert torch.equal(env._motion_times, first)


def test_a_clip_keeps_its_duration_in_any_control_rate() -> None:
    env = make(1, motion_file="data/motions/humanoid/humanoid_spinkick.npz", enable_early_termination=False)
    env.set_mode(EnvMode.TEST)
    env.reset()
    steps = 0
    while True:
        steps += 1
        if int(env.step(zero(env))[2][0]) != DoneFlags.NULL:
            break
    assert steps / 30 == pytest.approx(float(env._lib.lengths[0]), abs=1 / 30)
    assert steps == env.max_episode_steps


def test_a_resumed_environment_goes_on_as_if_nothing_had_been() -> None:
    def go(env: DeepMimicEnv, n: int) -> torch.Tensor:
        for _ in range(n):
            obs, _, done, _ = env.step(zero(env))
            obs = env.reset(torch.nonzero(done).squeeze(-1))
        return obs

    env = make(4)
    go(env, 25)
    state = env.state_dict()
    expected = go(env, 25)
    other = make(4, seed=99)
    other.load_state_dict(state)
    assert torch.equal(go(other, 25), expected)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"key_bodies": ["right_hnad"]}, ["key_bodies", "right_hnad", "right_hand"]),
        ({"pose_terminaton": True}, ["pose_terminaton", "pose_termination"]),
        ({"joint_err_w": [1.0, 2.0]}, ["joint_err_w", "12", "2"]),
        ({"action_mode": "residul"}, ["action_mode", "residual"]),
        ({"episode_length": "long"}, ["episode_length", "long", "number"]),
        ({"init_pose": [0.0] * 33}, ["init_pose", "34", "33"]),
        ({"init_pose": 3}, ["init_pose", "list of numbers", "3"]),
        ({"key_bodies": "head"}, ["key_bodies", "list", "head"]),
        ({"tar_obs_steps": 2}, ["tar_obs_steps", "list", "2"]),
        ({"ref_char_offset": ["a", 0, 0]}, ["ref_char_offset", "number", "'a'"]),
        ({"joint_err_w": {"head": 1}}, ["joint_err_w", "list"]),
        ({"objects": ["box.xml"]}, ["objects[0]", "block", "box.xml"]),
    ],
)
def test_bad_configurations_are_refused_by_name(changes: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        make(1, **changes)
    for word in [ENV_FILE, *words]:
        assert word in str(error.value)
