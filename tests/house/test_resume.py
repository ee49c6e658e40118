"""Trainings that were stopped, by Ctrl-C, by kill -9 or at their very end, and go on."""

import json
import shutil

import pytest
import torch

from mimickit.cli import main
from mimickit.loggers.text_logger import read_rows
from tests.house.test_cli import SMALL, _until, clips_of, press_ctrl_c, read_clip, result_of, start

SMALL_RUN = (
    *("--num_envs", "4", "--test_episodes", "4", "--env.episode_length", "0.5", "--agent.iters_per_output", "2"),
    *("--agent.steps_per_iter", "8"),
)
ITERATION = 32  # samples


def train(*words):
    return main([str(word) for word in words])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A training that took four iterations."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert train(*SMALL_RUN, "--max_samples", 4 * ITERATION, "--out_dir", folder) == 0
    return folder


@pytest.fixture
def killed(whole, tmp_path):
    """The same, as kill -9 in its fourth iteration leaves it: its log is ahead of its checkpoint."""
    folder = tmp_path / "run"
    assert train(*SMALL_RUN, "--max_samples", 2 * ITERATION, "--out_dir", folder) == 0
    for name in ("log.txt", "log.jsonl"):
        shutil.copy(whole / name, folder / name)
    (folder / "result.json").unlink()
    return folder


def samples(log):
    return [row["samples"] for row in read_rows(log)]


def test_rows_past_the_checkpoint_are_not_repeated_and_not_lost(killed):
    before = [(killed / name).read_text() for name in ("log.txt", "log.jsonl")]
    checkpoint = torch.load(killed / "checkpoint.pt")
    assert train("--resume", killed, "--max_samples", 5 * ITERATION) == 0
    rows = read_rows(killed / "log.jsonl")
    assert [row["samples"] for row in rows] == [ITERATION * i for i in (1, 2, 3, 4, 5)]
    table = [line.split() for line in (killed / "log.txt").read_text().splitlines() if not line.startswith("#")]
    assert [int(row[0]) for row in table[1:]] == [row["samples"] for row in rows]
    assert [(killed / name).read_text() for name in ("log.1.txt", "log.1.jsonl")] == before
    assert rows[2]["wall_time_s"] > checkpoint["wall_seconds"] > 0.0
    assert result_of(killed)["wall_time_s"] > rows[-1]["wall_time_s"]


def test_a_log_that_is_not_ahead_is_gone_on_with(whole, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "run")
    assert train("--resume", folder, "--max_samples", 5 * ITERATION) == 0
    assert samples(folder / "log.jsonl") == [ITERATION * i for i in (1, 2, 3, 4, 5)]
    assert not (folder / "log.1.jsonl").exists()


def test_with_nothing_left_to_train_the_result_is_that_of_a_test(whole, tmp_path, capsys):
    folder = shutil.copytree(whole, tmp_path / "run")
    full = result_of(folder)
    assert train("--resume", folder) == 0
    assert "nothing to train: 128 of 128 samples" in capsys.readouterr().err
    again = result_of(folder)
    assert set(again) == set(full)
    assert (again["samples"], again["num_eps"]) == (128, 4)
    assert json.loads((folder / "result.1.json").read_text()) == full
    assert train("--resume", folder, "--out_dir", tmp_path / "other") == 0
    assert set(result_of(tmp_path / "other")) == set(full)
    assert (tmp_path / "other" / "model.pt").is_file()


def test_a_checkpoint_that_is_damaged_leaves_the_run_as_it_was(whole, tmp_path, capsys):
    folder = shutil.copytree(whole, tmp_path / "run")
    (folder / "checkpoint.pt").write_bytes(b"half of it")
    names = sorted(path.name for path in folder.iterdir())
    assert train("--resume", folder, "--max_samples", 1000) == 2
    assert "checkpoint.pt: not a mimickit checkpoint" in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == names


def test_an_interrupted_training_names_the_clips_of_its_last_test(tmp_path):
    folder = tmp_path / "run"
    process = start(*SMALL_RUN, "--video", *SMALL, "--out_dir", folder, cwd=tmp_path)
    _until(lambda: (folder / "log.jsonl").is_file() and '"test_video"' in (folder / "log.jsonl").read_text(), process)
    press_ctrl_c(process)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    result = result_of(folder)
    assert result["interrupted"] is True
    assert (result["num_eps"], result["mean_return"] > 0.0) == (4, True)
    logged = [row["media"]["test_video"] for row in read_rows(folder / "log.jsonl") if "media" in row]
    clips = clips_of(folder)
    assert clips[-1].name == logged[-1][-1]["path"].removeprefix("videos/")
    assert all(read_clip(clip)[0] > 0 for clip in clips)
