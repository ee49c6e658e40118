"""Training goes on bit for bit as if nothing had been filmed."""

import copy
import random

import gymnasium
import numpy as np
import pytest
import torch

from mimickit import record_and_save_video
from mimickit.envs.base_env import EnvMode
from mimickit.envs.char_env import CharEnv
from mimickit.factory import make_env
from mimickit.interop.gymnasium_env import GymnasiumVectorEnv
from mimickit.learning.ppo_agent import PPOAgent
from mimickit.loggers.base import Logger
from tests.interop.conftest import MODEL, SMALL, assert_same
from tests.interop.pictures import Square

FEW = {"max_steps": 5}


class FilmingLogger(Logger):
    """Films the training's own environment whenever a row is written."""

    def __init__(self, folder) -> None:
        super().__init__()
        self.folder, self.agent, self.clips = folder, None, []

    def _write_row(self, row, step):
        if self.folder is not None:
            self.clips.append(record_and_save_video(self.folder, self.agent, self.agent._env, FEW))

    def _write_media(self, key, items, step):
        raise AssertionError("the training has no media of its own")


AGENT = {
    "model": {"actor_net": [16], "critic_net": [16]}, "steps_per_iter": 6, "iters_per_output": 100, "test_episodes": 0,
    "minibatch_size": 12, "actor_epochs": 1, "critic_epochs": 1,
}  # fmt: skip


@pytest.mark.parametrize("filming", [False, True])  # whether the environment has films of its own going on
def test_training_with_our_agent(make_walk, tmp_path, filming):
    ends = []
    for name in ("plain", "filmed"):
        film = {"enabled": filming, "out_dir": tmp_path / name / "own", "every": 3}
        env = make_walk(4, default_reset_prob=0.5, episode_length=0.3, video=film)
        agent = PPOAgent(AGENT, env, seed=1)
        logger = FilmingLogger(tmp_path / name if name == "filmed" else None)
        logger.agent = agent
        agent.train(max_samples=4 * 6 * 4, out_dir=tmp_path / name, logger=logger, progress=False)
        agent.save_checkpoint(tmp_path / f"{name}.pt")
        ends.append(torch.load(tmp_path / f"{name}.pt", weights_only=True))
        assert len(logger.clips) == (4 if name == "filmed" else 0)
    for end in ends:
        for timing in ("train_seconds", "wall_seconds"):
            del end[timing]
    assert_same(*ends)


def test_training_with_stable_baselines3(make_walk, tmp_path):
    pytest.importorskip("stable_baselines3")
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import VecFrameStack, VecMonitor, VecNormalize

    from mimickit.interop.sb3 import SB3VecEnv

    class Film(BaseCallback):
        def __init__(self, folder):
            super().__init__()
            self.folder, self.clips = folder, []

        def _on_step(self):
            if self.folder is not None and self.n_calls % 7 == 0:  # in the middle of rollouts and episodes
                clip = record_and_save_video(self.folder, self.model, self.training_env, FEW, self.logger)
                self.clips.append(clip)
            return True

    ends = []
    for name in ("plain", "filmed"):
        monitor = VecMonitor(SB3VecEnv(make_walk(4, episode_length=0.4)), str(tmp_path / name))
        venv = VecNormalize(VecFrameStack(monitor, 2))
        model = PPO("MlpPolicy", venv, n_steps=10, batch_size=20, n_epochs=1, seed=3, device="cpu")
        film = Film(tmp_path / "clips" if name == "filmed" else None)
        model.learn(80, callback=film)
        assert len(film.clips) == (2 if name == "filmed" else 0)
        episodes = [{key: value for key, value in info.items() if key != "t"} for info in model.ep_info_buffer]
        statistics = [vars(venv.obs_rms), vars(venv.ret_rms), venv.returns, venv.training, episodes, model._last_obs]
        randomness = [torch.get_rng_state(), np.random.get_state()[1:3], random.getstate()]  # noqa: NPY002
        rows = [line.split(",")[:2] for line in (tmp_path / f"{name}.monitor.csv").read_text().splitlines()[2:]]
        env = venv.unwrapped.env
        ends.append([model.policy.state_dict(), statistics, randomness, rows, env.state_dict(), env.mode])
        assert model.policy.training is (ends[0][-1] and model.policy.training)
    assert_same(*ends)


def test_a_vector_of_gymnasium_in_the_middle_of_episodes(make_walk, tmp_path):
    runs = []
    for film in (False, True):
        envs = GymnasiumVectorEnv(make_walk(3, episode_length=0.5), autoreset="next_step")
        envs.reset(seed=2)
        envs.action_space.seed(4)
        steps = []
        for number in range(40):
            if film and number in (9, 15):  # where episodes go on, and where they have just ended
                record_and_save_video(tmp_path, lambda obs, envs=envs: envs.action_space.sample(), envs, FEW)
            steps.append(envs.step(envs.action_space.sample())[:4])
        runs.append(steps)
    assert_same(*runs)


class Own(CharEnv):
    """Of one's own, with state that its state_dict() says nothing of."""

    def _prepare(self):
        super()._prepare()
        self.heat = torch.zeros(self.num_envs)
        self.count = 0
        self.seen = []

    def _after_step(self):
        self.heat += 1.0
        self.count += 1
        self.seen.append(self.count)

    def _compute_reward(self):
        return self.heat + self.count


def test_an_environment_of_ones_own(tmp_path):
    char = "data/assets/humanoid/humanoid.xml"
    config = {"env_name": f"{__name__}:Own", "char_file": char, "enable_early_termination": False}
    env = make_env(config, num_envs=2, video=SMALL)
    action = torch.zeros(2, *env.action_space.shape)
    env.step(action)
    before = copy.deepcopy([env.state_dict(), env.heat, env.count, env.seen])
    clip = record_and_save_video(tmp_path, lambda obs: np.zeros((2, 28)), env, FEW)
    assert clip.num_frames == 6
    assert_same(before, [env.state_dict(), env.heat, env.count, env.seen])
    assert env.step(action)[1].tolist() == [4.0, 4.0]
    env.close()


def test_after_a_failure_too(make_walk, tmp_path):
    def failing(obs):
        random.random()
        np.random.rand()  # noqa: NPY002
        torch.rand(1)
        raise ZeroDivisionError

    env = make_walk(2)
    env.step(torch.zeros(2, 28))
    kept = [env.state_dict(), torch.get_rng_state(), np.random.get_state()[1:], random.getstate()]  # noqa: NPY002
    kept = copy.deepcopy(kept)
    with pytest.raises(ZeroDivisionError):
        record_and_save_video(tmp_path, failing, env)
    assert_same(kept, [env.state_dict(), torch.get_rng_state(), np.random.get_state()[1:], random.getstate()])  # noqa: NPY002
    assert env.mode is EnvMode.TRAIN
    assert not env.engine.is_recording_video()
    assert not env.pop_media()


def test_an_environment_of_another_library(tmp_path):
    runs = []
    for film in (False, True):
        envs = gymnasium.vector.SyncVectorEnv([Square] * 2)
        envs.reset(seed=5)
        steps = []
        for number in range(15):
            if film and number in (3, 6):
                record_and_save_video(tmp_path, lambda obs: np.ones((2, 2)), envs, FEW)
            steps.append(envs.step(np.full((2, 2), 0.1, dtype=np.float32))[:4])
        runs.append(steps)
    assert_same(*runs)


def test_a_simulation_of_another_library(tmp_path, monkeypatch):
    pytest.importorskip("imageio")  # which it needs, as it needs a Gymnasium that knows v5
    if "InvertedPendulum-v5" not in gymnasium.registry:
        pytest.skip("Gymnasium's older simulations don't run on MuJoCo 3")
    monkeypatch.setenv("MUJOCO_GL", "egl")
    runs = []
    for film in (False, True):
        env = gymnasium.make("InvertedPendulum-v5", render_mode="rgb_array", width=64, height=64)
        env.reset(seed=1)
        env.render()  # its renderer holds the simulation from here on
        steps = []
        for number in range(8):
            if film and number == 4:
                record_and_save_video(tmp_path, lambda obs: np.array([3.0]), env, FEW)
            steps.append(env.step(np.array([0.1], dtype=np.float32))[:4])
        runs.append(steps)
        env.close()
    assert_same(*runs)


def test_a_test_under_way_goes_on(make_walk, tmp_path):
    runs = []
    for film in (False, True):
        env = make_walk(2, episode_length=0.2)
        env.set_mode(EnvMode.TEST)
        trace = [env.reset()]
        for number in range(14):
            if film and number == 3:
                record_and_save_video(tmp_path, MODEL, env, FEW)
            obs, reward, done, _ = env.step(torch.zeros(2, 28))
            trace += [obs, reward, done, env.reset(torch.nonzero(done).squeeze(-1))]
        runs.append([trace, env.record_diagnostics(), env.mode])
    assert_same(*runs)


def test_filming_from_a_callback(make_walk, tmp_path):
    """The callbacks see no episode of the film, and training goes on as it would have."""
    from mimickit.media.callback_env import CallbackEnv
    from mimickit.media.callbacks import Callback, Run
    from mimickit.media.store import MediaStore

    class Ends(Callback):
        def __init__(self):
            self.ends = []

        def on_episode_end(self, episode, env_index):
            self.ends.append((env_index, episode.length, episode.episode_return, episode.is_test))

    runs = []
    for film in (False, True):
        inner, ends = make_walk(2, episode_length=0.2), Ends()
        run = Run(tmp_path, inner, MediaStore(tmp_path, fps=30.0), seed=0)
        env = CallbackEnv(inner, [ends], run)
        env.reset()
        for number in range(20):
            if film and number in (3, 12):
                clip = record_and_save_video(tmp_path, MODEL, env)
                assert clip.engine == "mujoco"
            done = env.step(torch.zeros(2, 28))[2]
            env.reset(torch.nonzero(done).squeeze(-1))
        runs.append([ends.ends, env.state_dict()])
    assert len(runs[0][0]) >= 6
    assert_same(*runs)
