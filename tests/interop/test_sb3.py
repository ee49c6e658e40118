"""Environments as Stable-Baselines3's: the official checker, ends of episodes, seeds, pictures, evaluation."""

import numpy as np
import pytest
import torch

pytest.importorskip("stable_baselines3")
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecMonitor

from mimickit.factory import load_agent
from mimickit.interop.gymnasium_env import GymnasiumEnv
from mimickit.interop.sb3 import AgentPolicy, SB3VecEnv
from tests.interop.conftest import MODEL


@pytest.mark.filterwarnings("error")
def test_the_official_checker_has_no_complaint(make_walk):
    check_env(GymnasiumEnv(make_walk(1), render_mode="rgb_array"))


def test_the_end_of_an_episode(make_walk):
    venv, twin = SB3VecEnv(make_walk(3, episode_length=0.1)), make_walk(3, episode_length=0.1)
    venv.reset()
    twin.reset()
    for _ in range(3):
        obs, rewards, dones, infos = venv.step(np.zeros((3, 28), dtype=np.float32))
        last, *_ = twin.step(torch.zeros(3, 28))
    assert dones.all()
    assert rewards.dtype == np.float32
    for i, info in enumerate(infos):
        np.testing.assert_array_equal(info["terminal_observation"], last[i].numpy())
        assert info["TimeLimit.truncated"] is True
        assert info["outcome"] == "time"
    np.testing.assert_array_equal(obs, twin.reset().numpy())


def test_a_fall_is_no_truncation(make_walk):
    venv = SB3VecEnv(make_walk(4))
    venv.reset()
    ends = []
    while not ends:
        *_, dones, infos = venv.step(np.ones((4, 28), dtype=np.float32))
        ends = [infos[i] for i in np.flatnonzero(dones)]
    assert [(end["TimeLimit.truncated"], end["outcome"]) for end in ends] == [(False, "fail")] * len(ends)


def test_seeds_attributes_and_methods(make_walk):
    venv = SB3VecEnv(make_walk(2), render_mode="rgb_array")
    starts = []
    for seed in (5, 5, 6):
        assert venv.seed(seed) == [seed, seed + 1]
        starts.append(venv.reset())
    np.testing.assert_array_equal(starts[0], starts[1])
    assert not np.array_equal(starts[0], starts[2])
    assert venv.get_attr("max_episode_steps") == [300, 300]
    assert venv.get_attr("metadata", indices=0)[0]["render_fps"] == 30
    venv.set_attr("training_samples", 12)
    assert venv.env.training_samples == 12
    assert venv.env_method("record_diagnostics", indices=[1]) == [{}]
    assert venv.env_is_wrapped(VecMonitor) == [False, False]
    with pytest.raises(AttributeError):
        venv.get_attr("no_such_thing")


def test_pictures(make_walk):
    venv = SB3VecEnv(make_walk(4), render_mode="rgb_array")
    venv.reset()
    assert [image.shape for image in venv.get_images()] == [(96, 128, 3)] * 4
    assert venv.render().shape == (192, 256, 3)  # SB3's tiles
    assert venv.env_method("render", indices=2)[0].shape == (96, 128, 3)


def test_our_agent_is_evaluated_as_any_policy(make_walk):
    env = make_walk(4, episode_length=1.0)
    mean, _ = evaluate_policy(AgentPolicy(load_agent(MODEL, env)), VecMonitor(SB3VecEnv(env)), n_eval_episodes=4)
    assert mean > 0.9 * 30
