"""Episodes under way: a checkpoint holds them, and what is attached to them is delivered once, at the end at least."""

import shutil
from collections import deque
from pathlib import Path

import numpy as np
import pytest
import torch

from mimickit.envs.base_env import EnvMode
from mimickit.learning.checkpoint import CHECKPOINT_FORMAT, load_file, save_file
from mimickit.loggers.text_logger import TextLogger, read_rows
from mimickit.media import Callback, html, image
from mimickit.media.plain import NotPlainError, from_plain, to_plain
from tests.media.test_callbacks import PICTURE, STEPS, agent_of, wrapped

HALF = STEPS // 2
ACTION = torch.zeros(4, 2)


class Notes(Callback):
    """Attaches to an episode at its first step and at its end, and sums up its rewards in between."""

    def __init__(self):
        self.episodes = []

    def step_envs(self, num_envs):
        return (1, 2)

    def on_episode_step(self, episode, env_index):
        if episode.length == 1:
            episode.media["start"] = [image(PICTURE), html("<p>")]
        episode.data.setdefault("rewards", []).append(episode.reward)

    def on_episode_end(self, episode, env_index):
        if env_index in (1, 2):
            episode.media["end"] = PICTURE
            self.episodes.append(episode)


def steps(env, count):
    for _ in range(count):
        env.step(ACTION)


def through_file(env, folder):
    """The state as a checkpoint holds it."""
    save_file(env.state_dict(), folder / "state.pt", CHECKPOINT_FORMAT)
    return load_file(folder / "state.pt", CHECKPOINT_FORMAT)


def resumed(state, folder):
    notes = Notes()
    env, _ = wrapped(folder, notes)
    env.load_state_dict(state)
    return env, notes


@pytest.mark.parametrize("place", ["same folder", "another folder", "moved"])
def test_an_episode_goes_on_where_a_checkpoint_was_made(tmp_path, place):
    whole = Notes()
    env, _ = wrapped(tmp_path / "whole", whole)
    env.reset()
    steps(env, STEPS)
    first = tmp_path / "first"
    env, _ = wrapped(first, Notes())
    env.set_training_progress(640)
    env.reset()
    steps(env, HALF)
    state = through_file(env, tmp_path)
    folder = first if place == "same folder" else tmp_path / "second"
    if place == "moved":
        first.rename(folder)
    env, notes = resumed(state, folder)
    steps(env, STEPS - HALF)
    for episode, other in zip(notes.episodes, whole.episodes, strict=True):
        assert episode.data == other.data
        assert (episode.length, episode.episode_return) == (other.length, other.episode_return)
        assert (episode.env_index, episode.samples) == (other.env_index, 640)
    media = env.pop_media()
    assert {name: len(items) for name, items in media.items()} == {"start": 4, "end": 2}
    for items in media.values():
        assert all(item.path.is_file() and item.path.is_relative_to(folder / "media") for item in items)


def test_what_is_gone_is_left_out_with_a_warning(tmp_path, caplog):
    env, _ = wrapped(tmp_path, Notes())
    env.reset()
    steps(env, 1)
    state = through_file(env, tmp_path)
    for path in tmp_path.rglob("*.png"):
        path.unlink()
    env, _ = resumed(state, tmp_path)
    assert [item.KIND for item in env.pop_media(wait=True)["start"]] == ["html"] * 2
    assert "an episode goes on without what was attached to it: media 'start': expected an image file" in caplog.text


def test_a_checkpoint_can_not_lose_a_file_to_a_value_that_is_set_anew(tmp_path):
    class Anew(Callback):
        def on_episode_step(self, episode, env_index):
            episode.media["x"] = html(f"<p>{episode.length}")

    env, _ = wrapped(tmp_path, Anew())
    env.reset()
    steps(env, 2)
    state = through_file(env, tmp_path)
    steps(env, 2)
    assert len(list(tmp_path.rglob("*.html"))) == 2, "that of the checkpoint and the last"
    env, _ = wrapped(tmp_path, Anew())
    env.load_state_dict(state)
    (item,) = env.pop_media(wait=True)["x"]
    assert item.path.read_text() == "<p>2"


def test_what_a_checkpoint_can_not_hold_is_said_once(tmp_path, caplog):
    class Odd(Callback):
        def on_episode_step(self, episode, env_index):
            episode.data |= {"odd": deque([1]), "plain": np.arange(3), "path": Path("x")}

        def state_dict(self):
            return {"odd": object()}

        def load_state_dict(self, state):
            raise AssertionError("there is none")

        def on_episode_end(self, episode, env_index):
            self.data = episode.data

    env, _ = wrapped(tmp_path, Odd())
    env.reset()
    steps(env, 1)
    for _ in range(2):
        state = through_file(env, tmp_path)
    assert caplog.text.count("episode.data['odd']: a checkpoint can't hold collections.deque") == 1
    assert caplog.text.count("Odd.state_dict: expected plain values and tensors, found builtins.object") == 1
    env, _ = wrapped(tmp_path, Odd())
    env.load_state_dict(state)
    (episode,) = env._open.values()
    assert episode.data["plain"].tolist() == [0, 1, 2]
    assert episode.data.keys() == {"plain", "path"}


def test_plain_values_come_back_as_they_were(tmp_path):
    others = [np.arange(6, dtype=np.uint8)[::-2], np.array(2.0), np.zeros((0, 3)), torch.ones(2)]
    value = {"a": [1, 2.5, None, True, "ü", b"x"], 3: (np.float32(0.5), {1, 2}), (1, "b"): Path("x"), "arrays": others}
    save_file({"value": to_plain(value)}, tmp_path / "a.pt", CHECKPOINT_FORMAT)
    found = from_plain(load_file(tmp_path / "a.pt", CHECKPOINT_FORMAT)["value"])
    arrays = found.pop("arrays")
    assert found == {key: part for key, part in value.items() if part is not others}
    for array, other in zip(arrays, others, strict=True):
        assert (type(array), array.dtype, array.shape) == (type(other), other.dtype, other.shape)
        assert array.tolist() == other.tolist()
    own: list = []
    own.append(own)
    for odd in (own, object(), {"a": deque()}, np.array([object()]), np.array(["a"]), {Path("x"): 1}):
        with pytest.raises(NotPlainError):
            to_plain(odd)


@pytest.mark.parametrize("end", ["wait", "mode", "ended"])
def test_what_is_under_way_at_an_end_is_delivered_once(tmp_path, end):
    env, _ = wrapped(tmp_path, Notes())
    env.reset()
    steps(env, HALF)
    assert env.pop_media() == {}
    if end == "mode":
        env.set_mode(EnvMode.TEST)
    if end == "ended":
        env.set_training_ended(True)
    assert len(env.pop_media(wait=end == "wait")["start"]) == 4
    assert env.pop_media(wait=True) == {}
    if end != "mode":
        steps(env, STEPS - HALF)
        assert {name: len(items) for name, items in env.pop_media().items()} == {"end": 2}


def test_media_of_no_episode_are_not_left_either(tmp_path):
    class Attaches(Callback):
        def on_test_start(self):
            self.run.attach("x", PICTURE)

    env, observer = wrapped(tmp_path, Attaches())
    observer.on_test_start()
    assert len(env.pop_media()["x"]) == 1
    assert env.pop_media() == {}


def test_a_training_that_goes_on_delivers_what_one_in_one_go_does(tmp_path):
    """Iterations of six steps, episodes of ten: the checkpoint lies in the middle of an episode."""

    class KeepFirst(Notes):
        def on_iteration_end(self, result):
            if result["iteration"] == 2:
                shutil.copy(self.run.out_dir / "checkpoint.pt", self.run.out_dir / "first.pt")

    config = {"steps_per_iter": 6, "iters_per_output": 1, "test_episodes": 0}

    def go(folder, callback, max_samples, resume=None):
        agent = agent_of(folder, callback, **config)
        agent.train(max_samples=max_samples, out_dir=folder, logger=TextLogger(folder), progress=False, resume=resume)
        agent._env.pop_media(wait=True)
        return agent

    def delivered(folder, after=0):
        rows = [row for row in read_rows(folder / "log.jsonl") if row["samples"] > after]
        return [(row["samples"], name, len(items)) for row in rows for name, items in row.get("media", {}).items()]

    whole, parts = tmp_path / "whole", tmp_path / "parts"
    go(whole, KeepFirst(), 144)
    go(parts, Notes(), 144, resume=whole / "first.pt")
    assert delivered(parts) == delivered(whole, after=48) == [(96, "start", 4), (96, "end", 2)]
    ended = tmp_path / "ended"
    go(ended, Notes(), 48)  # its media are delivered at its end
    go(ended, Notes(), 144, resume=ended)
    assert delivered(ended) == [(96, "end", 2)]
