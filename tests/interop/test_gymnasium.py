"""Environments as Gymnasium's: the official checker, ids, ends of episodes, resets, pictures."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env

import mimickit.interop
from mimickit.config import project_root
from mimickit.interop.gymnasium_env import GymnasiumEnv, GymnasiumVectorEnv, make_vector
from mimickit.util.keys import ConfigError
from tests.interop.conftest import SMALL

NEW = hasattr(gymnasium.vector, "AutoresetMode")  # Gymnasium 1.1 and newer


def test_the_official_checker_has_no_complaint(recwarn):
    env = gymnasium.make("mimickit/HumanoidWalk-v0", render_mode="rgb_array", video=SMALL)
    check_env(env.unwrapped)
    said = [str(warning.message) for warning in recwarn]
    assert all("Box observation space" in text for text in said), said  # that it is unbounded, which it is


@pytest.mark.parametrize("env_id", mimickit.interop.IDS[1:])
def test_every_id_makes_an_environment(env_id):
    env = gymnasium.make(env_id)
    obs, _ = env.reset(seed=0)
    assert env.observation_space.contains(obs)
    assert env.metadata["render_fps"] == 30
    assert env.spec.id == env_id
    env.close()


@pytest.mark.skipif(not NEW, reason="make_vec passes no configuration before Gymnasium 1.0")
def test_an_id_makes_a_vector_in_one_simulation():
    envs = gymnasium.make_vec("mimickit/HumanoidWalk-v0", num_envs=3, render_mode="rgb_array", video=SMALL)
    assert isinstance(envs.unwrapped, GymnasiumVectorEnv)
    assert envs.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.SAME_STEP
    obs, _ = envs.reset(seed=1)
    assert obs.shape == envs.observation_space.shape == (3, *envs.single_observation_space.shape)
    pictures = envs.render()
    assert [picture.shape for picture in pictures] == [(96, 128, 3)] * 3
    assert all(picture.std() > 5 for picture in pictures)
    envs.close()


def test_the_same_seed_gives_the_same_episode():
    envs = make_vector(2, video=SMALL)
    action = np.zeros(envs.action_space.shape, dtype=np.float32)
    runs = []
    for seed in (7, 7, 8):
        obs, _ = envs.reset(seed=seed)
        runs.append([obs, *(envs.step(action)[0] for _ in range(5))])
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    envs.close()


def run(envs, steps):
    """Observations, rewards, terminated, truncated, infos of a rollout with actions of zero."""
    action = np.zeros(envs.action_space.shape, dtype=np.float32)
    return [envs.step(action) for _ in range(steps)]


def test_time_truncates_and_a_fall_terminates(make_walk):
    envs = GymnasiumVectorEnv(make_walk(4, episode_length=0.2))  # 6 steps
    envs.reset(seed=0)
    *_, (_, _, terminated, truncated, _) = run(envs, 6)
    assert truncated.all()
    assert not terminated.any()
    envs = GymnasiumVectorEnv(make_walk(4))
    envs.reset(seed=0)
    ends = [(t.copy(), u.copy()) for _, _, t, u, _ in run(envs, 60)]
    assert any(terminated.any() for terminated, _ in ends)  # untouched, the walker falls
    assert not any(truncated.any() for _, truncated in ends)


def test_a_reset_in_the_same_step_keeps_the_last_observation(make_walk):
    env = make_walk(3, episode_length=0.1)  # 3 steps
    twin = make_walk(3, episode_length=0.1)
    envs = GymnasiumVectorEnv(env)
    envs.reset()
    twin.reset()
    for _ in range(3):
        last, *_ = twin.step(torch.zeros(3, *twin.action_space.shape))
    obs, _, _, truncated, infos = run(envs, 3)[-1]
    final = infos["final_obs" if NEW else "final_observation"]
    assert truncated.all()
    np.testing.assert_array_equal(np.stack(list(final)), last.numpy())
    np.testing.assert_array_equal(obs, twin.reset().numpy())
    info = infos["final_info"]
    outcomes = list(info["outcome"]) if NEW else [one["outcome"] for one in info]
    assert outcomes == ["time"] * 3


def test_a_reset_in_the_next_step_ignores_its_action(make_walk):
    env, twin = make_walk(2, episode_length=0.1), make_walk(2, episode_length=0.1)
    envs = GymnasiumVectorEnv(env, autoreset="next_step")
    envs.reset()
    twin.reset()
    *_, (ended, _, _, truncated, infos) = run(envs, 3)
    for _ in range(3):
        last, *_ = twin.step(torch.zeros(2, *twin.action_space.shape))
    assert truncated.all()
    assert list(infos["outcome"]) == ["time"] * 2
    np.testing.assert_array_equal(ended, last.numpy())
    twin.step(torch.zeros(2, *twin.action_space.shape))
    obs, reward, terminated, truncated, _ = run(envs, 1)[0]
    np.testing.assert_array_equal(obs, twin.reset().numpy())
    assert not (reward.any() or terminated.any() or truncated.any())
    assert run(envs, 1)[0][1].all()  # and then it goes on


def test_without_autoreset_the_caller_says_what_is_reset(make_walk):
    envs = GymnasiumVectorEnv(make_walk(2, episode_length=0.1), autoreset="disabled")
    envs.reset()
    ended, _, _, truncated, _ = run(envs, 3)[-1]
    assert truncated.all()
    obs, _ = envs.reset(options={"reset_mask": np.array([False, True])})
    np.testing.assert_array_equal(obs[0], ended[0])
    assert not np.array_equal(obs[1], ended[1])


def test_what_can_not_be_meant_is_refused(make_walk):
    with pytest.raises(ConfigError, match="num_envs: expected 1"):
        GymnasiumEnv(make_walk(2))
    with pytest.raises(ConfigError, match="render_mode: expected rgb_array or none, found 'human'"):
        GymnasiumVectorEnv(make_walk(2), render_mode="human")
    with pytest.raises(ConfigError, match="autoreset: found 'same'; did you mean 'same_step'"):
        GymnasiumVectorEnv(make_walk(2), autoreset="same")
    with pytest.raises(ValueError, match=r"action: expected shape \(2, 28\), found \(28,\)"):
        GymnasiumVectorEnv(make_walk(2)).step(np.zeros(28))


@pytest.mark.parametrize(("module", "library", "line"), [
    ("sb3", "stable_baselines3", "pip install stable-baselines3"),
    ("rllib", "ray", 'pip install "ray[rllib]"'),
])  # fmt: skip
def test_a_missing_library_says_what_brings_it(module, library, line):
    program = f"import sys; sys.modules[{library!r}] = None; import mimickit.interop.{module}"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=project_root(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert line in done.stderr.splitlines()[-1]


def test_importing_the_package_is_light():
    program = "import sys, mimickit; print({'torch', 'mujoco', 'gymnasium', 'cv2'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=project_root(), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
