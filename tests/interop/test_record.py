"""record_and_save_video(): every kind of policy, environment and logger, and what the clip shows."""

import json
import logging
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch

from mimickit import load_agent, record_and_save_video
from mimickit.interop.gymnasium_env import GymnasiumEnv, GymnasiumVectorEnv
from mimickit.loggers.wandb_logger import WandbLogger
from mimickit.util.keys import ConfigError
from mimickit.video.clip import Clip
from tests.house.wandb_reader import read_history
from tests.interop.conftest import MODEL
from tests.interop.pictures import LENGTH, Square
from tests.video.films import read_frames

SHORT = {"episode_length": 0.5}  # s: 15 steps
FRAMES = 16


def zeros(obs):
    """A policy: no action, whatever is seen."""
    return np.zeros((len(obs), 28), dtype=np.float32)


def check(clip: Clip, num_frames: int = FRAMES) -> list[np.ndarray]:
    """The clip is what its side file says, and shows something."""
    frames = read_frames(clip.path)
    assert len(frames) == clip.num_frames == num_frames
    assert frames[0].std() > 5
    assert json.loads(clip.side_file.read_text())["num_frames"] == num_frames
    return frames


# ---------------------------------------------------------------------- policies and environments of MimicKit


def test_our_agent_a_model_file_and_a_folder(make_walk, tmp_path):
    env = make_walk(2, **SHORT)
    folder = tmp_path / "new" / "nested"
    clips = [
        record_and_save_video(folder, policy, env)
        for policy in (load_agent(MODEL, env), MODEL, str(MODEL / "model.pt"))
    ]
    for clip in clips:
        frames = check(clip)
        np.testing.assert_array_equal(frames, read_frames(clips[0].path))
        assert clip.mean_return > 0.9 * 15
        assert [episode.outcome for episode in clip.episodes] == ["time"]
    assert {clip.path.parent for clip in clips} == {folder}
    assert len({clip.path for clip in clips}) == 3
    assert not list(folder.glob("*.part"))


def test_a_callable_and_what_video_kwargs_may_say(make_walk, tmp_path):
    options = {"envs": [0, 2], "camera": "side", "width": 160, "ghost": "beside", "name": "mine", "num_episodes": 2}
    clip = record_and_save_video(tmp_path, zeros, make_walk(3, episode_length=0.2), options)
    check(clip, 2 * (1 + 6))  # the starts, and what every step leads to
    assert clip.path == tmp_path / "mine.mp4"
    assert (clip.env_ids, clip.camera, clip.width) == ((0, 2), "side", 160)
    assert [episode.env_id for episode in clip.episodes] == [0, 2, 0, 2]


def test_a_callable_may_answer_with_tensors(make_walk, tmp_path):
    env = make_walk(1, **SHORT)
    check(record_and_save_video(tmp_path, lambda obs: torch.zeros(1, 28), env, {"max_steps": 4}), 5)


@pytest.mark.parametrize("autoreset", ["same_step", "next_step", "disabled"])
def test_a_vector_of_gymnasium_with_wrappers(make_walk, tmp_path, autoreset):
    envs = GymnasiumVectorEnv(make_walk(2, **SHORT), autoreset=autoreset)
    if autoreset == "next_step" and hasattr(gymnasium.wrappers, "vector"):  # the only mode that the wrapper takes
        envs = gymnasium.wrappers.vector.NormalizeObservation(envs)
    check(record_and_save_video(tmp_path, MODEL, envs))


def test_a_single_environment_of_gymnasium(make_walk, tmp_path):
    env = gymnasium.wrappers.TimeLimit(GymnasiumEnv(make_walk(1, **SHORT)), 8)
    check(record_and_save_video(tmp_path, lambda obs: np.zeros(28), env), 9)
    check(record_and_save_video(tmp_path, MODEL, GymnasiumEnv(make_walk(1, **SHORT))))


def test_single_environments_side_by_side_have_engines_of_their_own(make_walk, tmp_path):
    walks = [GymnasiumEnv(make_walk(1, episode_length=length)) for length in (0.2, 0.3)]
    envs = gymnasium.vector.SyncVectorEnv([lambda env=env: env for env in walks])
    check(record_and_save_video(tmp_path, MODEL, envs, {"env": 1}), 10)
    with pytest.raises(ConfigError, match="video_kwargs: env: expected one below 2, found 2"):
        record_and_save_video(tmp_path, MODEL, envs, {"env": 2})


# ---------------------------------------------------------------------- other environments


@pytest.mark.parametrize("count", [1, 3])
def test_any_vector_that_renders(tmp_path, count):
    envs = gymnasium.vector.SyncVectorEnv([Square] * count)
    options = {"envs": list(range(count)), "num_episodes": 2, "quality": "high"}
    right = lambda obs: np.tile(np.array([0.7, 0.0], dtype=np.float32), (count, 1))  # noqa: E731
    clip = record_and_save_video(tmp_path, right, envs, options)
    next_step = "autoreset_mode" in (envs.metadata or {})
    frames = check(clip, 2 * (LENGTH + 1) if next_step else 2 * LENGTH)
    assert clip.fps == 12
    rows, columns = (1, 1) if count == 1 else (2, 2)
    assert frames[0].shape == (rows * 95 + rows % 2, columns * 127 + columns % 2, 3)  # even
    middles = [np.argwhere(frame[:95, :127, 0] > 128)[:, 1].mean() for frame in frames[:LENGTH]]
    assert np.all(np.diff(middles) > 5)  # it moves to the right
    assert next(episode.length for episode in clip.episodes if episode.env_id == 0) == LENGTH
    assert any("even numbers" in note for note in clip.notes) == (count == 1)


def test_a_picture_that_is_none_is_refused(tmp_path):
    envs = gymnasium.vector.SyncVectorEnv([lambda: Square(render_mode=None)])
    envs.envs[0].render = lambda: None
    with pytest.raises(ConfigError, match="render_mode='rgb_array'"):
        record_and_save_video(tmp_path, lambda obs: np.zeros((1, 2)), envs)
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------- loggers


def test_weights_and_biases_has_the_clip_as_it_is(make_walk, tmp_path):
    logger = WandbLogger(tmp_path, mode="offline")
    clip = record_and_save_video(tmp_path / "clips", MODEL, make_walk(1, **SHORT), {"step": 42}, logger)
    logger.log("reward", 1.0)
    logger.write(42)
    logger.close()
    rows = read_history(tmp_path)
    (row,) = [row for row in rows if "policy_video/path" in row or "policy_video" in row]
    assert row["samples"] == 42
    (copy,) = tmp_path.glob("wandb/offline-run-*/files/media/videos/**/*.mp4")
    assert copy.read_bytes() == clip.path.read_bytes()


def test_a_logger_of_another_kind_is_refused(make_walk, tmp_path):
    with pytest.raises(ConfigError, match=r"logger: expected .* found builtins.dict"):
        record_and_save_video(tmp_path, MODEL, make_walk(1, **SHORT), None, {})


# ---------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(("options", "message"), [
    ({"camrea": "side"}, "video_kwargs: unknown key 'camrea'; did you mean 'camera'"),
    ({"env": 4}, "video_kwargs: env: expected less than 1, found 4"),
    ({"num_episodes": 0}, "video_kwargs: num_episodes: expected 1 or more, found 0"),
    ({"keep_last": 3}, "video_kwargs: unknown key 'keep_last'"),
    ({"deterministic": "perhaps"}, "video_kwargs: deterministic: expected true or false"),
    ({"fov": 500}, "video_kwargs: .*fov: expected 1 to 170 degrees"),
])  # fmt: skip
def test_keys_that_can_not_be_meant_are_refused_before_anything_is_done(make_walk, tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        record_and_save_video(tmp_path / "clips", MODEL, make_walk(1, **SHORT), options)
    assert not list(tmp_path.iterdir())


def test_policies_and_environments_that_are_none_are_refused(make_walk, tmp_path):
    with pytest.raises(ConfigError, match="policy: expected an agent"):
        record_and_save_video(tmp_path, 3, make_walk(1))
    with pytest.raises(ConfigError, match=r"eval_venv: expected .* found builtins.object"):
        record_and_save_video(tmp_path, zeros, object())
    with pytest.raises(ConfigError, match="needs an environment of MimicKit"):
        record_and_save_video(tmp_path, MODEL, gymnasium.vector.SyncVectorEnv([Square]))
    with pytest.raises(ConfigError, match="unknown key 'camera'"):
        record_and_save_video(tmp_path, zeros, gymnasium.vector.SyncVectorEnv([Square]), {"camera": "side"})


@pytest.mark.parametrize("kind", ["ours", "rendered"])
def test_when_the_policy_fails_the_clip_so_far_is_finished(make_walk, tmp_path, caplog, kind):
    calls = 0

    def failing(obs):
        nonlocal calls
        calls += 1
        if calls == 4:
            raise ZeroDivisionError("the policy's own")
        return zeros(obs) if kind == "ours" else np.zeros((1, 2))

    env = make_walk(1, **SHORT) if kind == "ours" else gymnasium.vector.SyncVectorEnv([Square])
    with caplog.at_level(logging.WARNING), pytest.raises(ZeroDivisionError, match="the policy's own"):
        record_and_save_video(tmp_path, failing, env, {"name": "partial"})
    assert len(read_frames(tmp_path / "partial.mp4")) == 4
    assert not list(tmp_path.glob("*.part"))
    assert "partial.mp4" in caplog.text


@pytest.mark.parametrize("name", ["", "../out", "a/b", ".hidden"])
def test_the_name_is_one_of_a_file(make_walk, tmp_path, name):
    with pytest.raises(ConfigError, match="video_kwargs: name: expected a file's name"):
        record_and_save_video(tmp_path, MODEL, make_walk(1, **SHORT), {"name": name})
    assert not list(tmp_path.iterdir())


def test_the_name_may_have_its_ending(make_walk, tmp_path):
    clip = record_and_save_video(tmp_path, MODEL, make_walk(1, **SHORT), {"name": "mine.mp4"})
    assert clip.path.name == "mine.mp4"


def test_a_disk_that_can_not_be_written_is_an_error(make_walk, tmp_path):
    (tmp_path / "taken").write_text("a file")
    env = make_walk(1, **SHORT)
    with pytest.raises((OSError, RuntimeError)):
        record_and_save_video(tmp_path / "taken" / "clips", MODEL, env)
    assert env.mode.value == "train"
    check(record_and_save_video(Path(tmp_path), MODEL, env))
