"""Callbacks: which hook is called when, what an episode says, and that a hook that isn't there costs nothing."""

from unittest import mock

import numpy as np
import pytest
import torch

from mimickit.envs.base_env import DoneFlags, EnvMode
from mimickit.learning.ppo_agent import PPOAgent
from mimickit.loggers.text_logger import TextLogger, read_rows
from mimickit.media import Callback, MediaError, Run, image
from mimickit.media.callback_env import CallbackEnv
from mimickit.media.callbacks import CallbackError
from mimickit.media.observer import CallbackObserver
from mimickit.media.store import MediaStore
from mimickit.util.keys import ConfigError
from tests.learning.conftest import CONFIG
from tests.learning.point_mass import PointMassEnv

STEPS = 10  # of an episode
PICTURE = np.zeros((4, 6, 3), np.uint8)


class Told(Callback):
    """Writes down all that it is told."""

    def __init__(self, envs=(1, 3)):
        self.told, self.envs = [], envs

    def step_envs(self, num_envs):
        return self.envs

    def on_train_start(self):
        self.told.append("train")

    def on_iteration_end(self, result):
        self.told.append(f"iteration {result['iteration']}")

    def on_test_start(self):
        self.told.append("test")

    def on_test_end(self, result):
        self.told.append(f"tested {result['num_eps']}")

    def on_episode_start(self, episode, env_index):
        self.told.append(("start", env_index, episode.is_test, episode.length))

    def on_episode_step(self, episode, env_index):
        self.told.append(("step", env_index, episode.length, episode.episode_return))

    def on_episode_end(self, episode, env_index):
        self.told.append(("end", env_index, episode.length, episode.outcome, episode.episode_return))

    def of(self, kind):
        return [words for words in self.told if words[0] == kind]


def wrapped(folder, *callbacks, num_envs=4, steps=STEPS):
    env = PointMassEnv(num_envs=num_envs, steps=steps)
    run = Run(folder, env, MediaStore(folder), seed=7)
    run.env = CallbackEnv(env, callbacks, run)
    return run.env, CallbackObserver(callbacks, run)


def agent_of(folder, *callbacks, **config):
    env, observer = wrapped(folder, *callbacks, num_envs=8)
    agent = PPOAgent({**CONFIG, "steps_per_iter": STEPS, "test_episodes": 8, **config}, env)
    observer.follow(agent)
    agent.observer = observer
    return agent


def train(agent, folder, iterations, **options):
    logger = TextLogger(folder)
    return agent.train(
        max_samples=iterations * STEPS * 8, out_dir=folder, logger=logger, progress=False, **options
    )


def test_hooks_are_called_in_their_order(tmp_path):
    told = Told()
    train(agent_of(tmp_path, told), tmp_path, 2)
    milestones = [words for words in told.told if isinstance(words, str)]
    assert milestones == ["train", "iteration 1", "iteration 2", "test", "tested 8"]
    # 8 of two iterations each, and 8 of the test, all in their environments; the fresh ones after the second iteration
    assert len(told.of("end")) == 24
    assert [words[2] for words in told.of("start")].count(True) == 8
    assert {words[1] for words in told.of("step")} == {1, 3}
    assert all(words[3] == 0 for words in told.of("start"))


def test_an_episode_says_how_it_went(tmp_path):
    episodes = []

    class Keep(Callback):
        def on_episode_end(self, episode, env_index):
            episodes.append(episode)

    env, _ = wrapped(tmp_path, Keep())
    env.set_training_progress(640)
    env.reset()
    rewards = torch.zeros(4)
    for _ in range(STEPS):
        action = torch.zeros(4, 2)
        obs, reward, done, info = env.step(action)
        rewards += reward
        assert info == {}
    assert [episode.env_index for episode in episodes] == [0, 1, 2, 3]
    for index, episode in enumerate(episodes):
        assert (episode.length, episode.outcome, episode.seed, episode.samples) == (STEPS, "time", 7, 640)
        assert episode.episode_return == pytest.approx(float(rewards[index]))
        assert episode.reward == pytest.approx(float(reward[index]))
        np.testing.assert_array_equal(episode.obs, obs[index])
        np.testing.assert_array_equal(episode.action, action[index])
        assert not episode.is_test
    assert bool((done == DoneFlags.TIME).all())


def test_media_are_delivered_once_and_broken_off_episodes_too(tmp_path):
    class Start(Callback):
        def on_episode_start(self, episode, env_index):
            if env_index == 2:
                episode.media["start"] = image(PICTURE)

    env, _ = wrapped(tmp_path, Start())
    env.reset()
    env.step(torch.zeros(4, 2))
    assert env.pop_media() == {}
    env.set_mode(EnvMode.TEST)  # the episode is broken off
    assert [item.path.is_file() for item in env.pop_media()["start"]] == [True]
    assert env.pop_media() == {}
    env.reset()
    for _ in range(STEPS):
        env.step(torch.zeros(4, 2))
    assert len(env.pop_media()["start"]) == 1


def test_training_and_test_results_and_the_log_have_the_media(tmp_path):
    results = []

    class Attach(Callback):
        def on_episode_end(self, episode, env_index):
            if env_index == 0:
                episode.media["end"] = PICTURE

        def on_iteration_end(self, result):
            self.run.attach("iteration", [PICTURE, image(PICTURE)])
            result["own"] = 0.25
            results.append(result)

        def on_test_end(self, result):
            result["episode_media"]["raw"] = PICTURE
            results.append(result)

    found = train(agent_of(tmp_path, Attach()), tmp_path, 2)
    counts = [{name: len(items) for name, items in result["episode_media"].items()} for result in results]
    assert counts == [{"end": 1, "iteration": 2}, {"end": 1, "iteration": 2}, {"end": 1, "raw": 1}]
    assert {name: len(items) for name, items in found["episode_media"].items()} == {"end": 2, "iteration": 2, "raw": 1}
    rows = read_rows(tmp_path / "log.jsonl")
    assert [row["own"] for row in rows if "own" in row] == [0.25, 0.25]
    logged = [(row["samples"], name, len(items)) for row in rows for name, items in row.get("media", {}).items()]
    assert logged == [(80, "end", 1), (80, "iteration", 2), (160, "end", 1), (160, "iteration", 2), (160, "end", 1),
                      (160, "raw", 1)]  # fmt: skip
    for row in rows:
        for items in row.get("media", {}).values():
            assert all((tmp_path / item["path"]).is_file() for item in items)


def test_what_is_no_media_ends_the_hook_with_its_key(tmp_path):
    class Wrong(Callback):
        def on_episode_end(self, episode, env_index):
            episode.media["mine"] = 3

    with pytest.raises(CallbackError, match=r"^Wrong.on_episode_end: MediaError: media 'mine': ") as found:
        train(agent_of(tmp_path, Wrong()), tmp_path, 1)
    assert isinstance(found.value.__cause__, MediaError)


def test_callbacks_change_nothing_of_the_training(tmp_path):
    told, plain = agent_of(tmp_path / "a", Told()), agent_of(tmp_path / "b")
    first, second = train(told, tmp_path / "a", 3), train(plain, tmp_path / "b", 3)
    assert first["mean_return"] == second["mean_return"]
    for mine, other in zip(told._model.parameters(), plain._model.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_a_hook_that_is_not_overridden_costs_nothing(tmp_path):
    class Results(Callback):
        def on_test_end(self, result):
            pass

    env, _ = wrapped(tmp_path, Results(), Callback())
    with mock.patch.object(CallbackEnv, "_follow", side_effect=AssertionError("episodes are followed")):
        env.reset()
        for _ in range(STEPS):
            env.step(torch.zeros(4, 2))


def test_a_step_hook_sees_no_other_environment(tmp_path):
    told = Told(envs=(3,))
    env, _ = wrapped(tmp_path, told, num_envs=4096)
    env.reset()
    told.told.clear()
    env.step(torch.zeros(4096, 2))
    assert [words[:3] for words in told.told] == [("step", 3, 1)]


@pytest.mark.parametrize(
    ("envs", "words"),
    [
        ((9,), "expected environments below 4, found 9"),
        ((0, -1), "expected environments below 4, found -1"),
        (2, "expected a list of environments, found 2"),
        (None, "expected a list of environments, found None"),
        (torch.tensor(1), r"expected a list of environments, found tensor\(1\)"),
        ("01", "expected numbers of environments, found '0'"),
        ([1.0], "expected numbers of environments, found 1.0"),
        ([False, True], "expected numbers of environments, found False"),
    ],
)
def test_environments_that_can_not_be_watched_are_named(tmp_path, envs, words):
    with pytest.raises(ConfigError, match=rf"^Told.step_envs: {words}"):
        wrapped(tmp_path, Told(envs=envs))


@pytest.mark.parametrize("envs", [[3, 3], torch.tensor([3]), np.array([3]), {3}, iter([3])])
def test_every_kind_of_list_names_environments_and_none_is_told_twice(tmp_path, envs):
    told = Told(envs=envs)
    env, _ = wrapped(tmp_path, told)
    env.reset()
    env.step(torch.zeros(4, 2))
    assert [words[:3] for words in told.of("step")] == [("step", 3, 1)]


@pytest.mark.parametrize("hook", ["on_train_start", "on_iteration_end", "on_test_start", "on_test_end",
                                  "on_episode_start", "on_episode_step", "on_episode_end", "step_envs"])  # fmt: skip
def test_what_a_hook_raises_is_named_by_callback_and_hook(tmp_path, hook):
    def fail(*args):
        raise ConfigError("mine")

    callback = type("Fails", (Told,), {hook: fail})()
    with pytest.raises(CallbackError, match=rf"^Fails.{hook}: ConfigError: mine$") as found:
        train(agent_of(tmp_path, callback), tmp_path, 1)
    assert isinstance(found.value.__cause__, ConfigError)
    assert not isinstance(found.value, ValueError), "which the command line takes for a refusal"


DAMAGES = {
    "removed": (lambda result: result.pop("mean_return"), "mean_return: expected what was there, found it removed"),
    "text": (lambda result: result.update(mean_return="high"), "mean_return: expected a number, found 'high'"),
    "no media": (lambda result: result.update(episode_media=None), "episode_media: expected a dict .*, found NoneType"),
    "media removed": (lambda result: result.pop("episode_media"), "episode_media: expected what was there, found it"),
    "added text": (lambda result: result.update(note="good"), "note: expected a number, found 'good'"),
    "added None": (lambda result: result.update(note=None), "note: expected a number, found None"),
    "added bool": (lambda result: result.update(note=True), "note: expected a number, found True"),
    "added list": (lambda result: result.update(note=[1.0]), r"note: expected a number, found \[1.0\]"),
    "added array": (lambda result: result.update(note=torch.zeros(2)), r"note: expected a number, found tensor"),
    "added too much": (lambda result: result.update(note=10**400), "note: expected a number, found int 1000"),
    "added no name": (lambda result: result.update({3: 1.0}), "expected names of figures, found 3"),
    "no such media": (lambda result: result["episode_media"].update(x=5), "media 'x': expected media"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_to_a_result_is_named(tmp_path, name):
    damage, words = DAMAGES[name]

    class Damages(Callback):
        def on_test_end(self, result):
            damage(result)

    with pytest.raises(CallbackError, match=rf"^Damages.on_test_end: {words}"):
        train(agent_of(tmp_path, Damages()), tmp_path, 1)


def test_numbers_of_every_kind_are_logged(tmp_path):
    class Adds(Callback):
        def on_test_end(self, result):
            result.update(a=np.float32(0.5), b=torch.tensor([0.25]), c=np.array(3), mean_return=torch.tensor(7.0))

    train(agent_of(tmp_path, Adds()), tmp_path, 1)
    (row,) = [row for row in read_rows(tmp_path / "log.jsonl") if "test/a" in row]
    assert [row[f"test/{key}"] for key in ("a", "b", "c", "mean_return")] == [0.5, 0.25, 3, 7.0]


def test_training_goes_on_with_what_callbacks_know(tmp_path):
    class Counting(Callback):
        count = 0

        def __init__(self):
            self.lengths = []

        def on_episode_end(self, episode, env_index):
            self.count += 1
            self.lengths.append(episode.length)

        def state_dict(self):
            return {"count": self.count}

        def load_state_dict(self, state):
            self.count = state["count"]

    config = {"steps_per_iter": 6, "iters_per_output": 1, "test_episodes": 0}
    agent = agent_of(tmp_path / "first", Counting(), **config)
    agent.train(max_samples=48, out_dir=tmp_path / "first", logger=TextLogger(tmp_path), progress=False)
    counting = Counting()
    resumed = agent_of(tmp_path / "second", counting, **config)
    folder = tmp_path / "second"
    resumed.train(
        max_samples=96, out_dir=folder, logger=TextLogger(folder), progress=False, resume=tmp_path / "first"
    )
    assert counting.lengths[:8] == [STEPS] * 8, "episodes that the first training began are whole"
    assert counting.count == len(counting.lengths)
    without = agent_of(tmp_path / "third", **config)
    without.load_checkpoint(tmp_path / "first")
    assert without.samples == 48


def test_the_wrapped_environment_is_the_environment(tmp_path):
    env, _ = wrapped(tmp_path, Callback())
    assert (env.num_envs, env.max_episode_steps, env.mode) == (4, STEPS, EnvMode.TRAIN)
    assert env.obs_space is env.inner.obs_space
    assert env.resets == env.inner.resets
    env.set_mode(EnvMode.TEST)
    assert env.inner.mode is env.mode is EnvMode.TEST
    with pytest.raises(AttributeError, match="unheard_of"):
        _ = env.unheard_of


def test_episodes_over_short_fragments_have_their_whole_return(tmp_path):
    """Iterations of three steps, episodes of ten: the best and the worst are those of whole episodes."""

    class Returns(Callback):
        def __init__(self):
            self.found, self.sums = [], {}

        def step_envs(self, num_envs):
            return range(num_envs)

        def on_episode_step(self, episode, env_index):
            episode.data["sum"] = episode.data.get("sum", 0.0) + episode.reward

        def on_episode_end(self, episode, env_index):
            self.found.append((episode.episode_return, episode.data["sum"], episode.length))

    returns = Returns()
    agent = agent_of(tmp_path, returns, steps_per_iter=3, iters_per_output=100, test_episodes=0)
    agent.train(max_samples=3 * 8 * 12, out_dir=tmp_path, logger=TextLogger(tmp_path), progress=False)
    assert len(returns.found) == 24
    assert {length for _, _, length in returns.found} == {STEPS}
    whole, summed = np.array([found[:2] for found in returns.found]).T
    np.testing.assert_allclose(whole, summed, rtol=1e-6)
    assert (whole.argmax(), whole.argmin()) == (summed.argmax(), summed.argmin())
