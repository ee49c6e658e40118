"""Whole runs from the command line: what they leave behind, print, and answer."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import cv2
import pytest
import torch
import yaml

from mimickit.cli import main
from mimickit.config import project_root
from tests.house.wandb_reader import read_history, read_run

ROOT = project_root()
DOFS = ("--env_config", "data/envs/char_dof_test_humanoid_env.yaml")
RUN_ENV = "data/envs/deepmimic_humanoid_run_env.yaml"
SMALL = ("--video_size", "160x90", "--video_quality", "draft")
FILM = ("--video", "true", *SMALL)


def run(*words):
    return main([str(word) for word in words])


def result_of(folder):
    return json.loads((folder / "result.json").read_text())


def clips_of(folder):
    return [Path(item["path"]) for items in result_of(folder)["episode_media"].values() for item in items]


def read_clip(path):
    """Number of frames, size, and mean brightness of the first and last frame."""
    reader, frames = cv2.VideoCapture(str(path)), []
    while (frame := reader.read()[1]) is not None:
        frames.append(frame)
    return len(frames), frames[0].shape[:2], frames[0].mean(), frames[-1].mean()


def headless(**more):
    environment = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "MUJOCO_GL")}
    return environment | more


def start(*words, cwd):
    command = [sys.executable, str(ROOT / "run.py"), *(str(word) for word in words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=cwd, env=headless(), start_new_session=True, **pipes)


def press_ctrl_c(process):
    """As a terminal does: the signal goes to the process and all that it has started, encoder and W&B included."""
    os.killpg(process.pid, signal.SIGINT)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A run folder with a model that was trained for a moment."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    words = ("--num_envs", 4, "--max_samples", 128, "--agent.iters_per_output", 1, "--test_episodes", 4)
    assert run(*words, "--env.episode_length", 0.5, "--out_dir", folder) == 0
    return folder


# ---------------------------------------------------------------------- what a run leaves behind


def test_no_display_no_gl_named_another_folder(tmp_path):
    """A clip without a policy: exit 0, the path printed, a playable file that is not black."""
    process = start("--mode", "view", *DOFS, "--env.episode_length", 1, *SMALL, cwd=tmp_path)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    (folder,) = (tmp_path / "output").iterdir()
    assert folder.name.startswith("view_char_dof_test_humanoid_")
    (clip,) = clips_of(folder)
    assert str(clip.relative_to(tmp_path)) in out
    frames, size, first, last = read_clip(clip)
    assert (frames, size) == (31, (90, 160))
    assert min(first, last) > 20


def test_a_test_of_a_model_says_how_good_it_is_and_where_the_clip_lies(trained, tmp_path, capsys):
    words = ("--mode", "test", "--model_file", trained / "model.pt", "--num_envs", 3, "--test_episodes", 3)
    assert run(*words, *FILM, "--out_dir", tmp_path / "test", "--rand_seed", 7) == 0
    result, out = result_of(tmp_path / "test"), capsys.readouterr().out
    assert (result["num_eps"], result["seed"], result["engine"], result["samples"]) == (3, 7, "mujoco", 128)
    assert result["model_file"] == str(trained / "model.pt")
    assert 0 < result["normalised_return"] <= 1
    assert result["mean_return"] == pytest.approx(result["normalised_return"] * 15)
    for key in (
        "mean_ep_len",
        "falls",
        "wall_time_s",
        "root_pos_err_m",
        "body_pos_err_m",
        "root_rot_err_rad",
    ):
        assert isinstance(result[key], (int, float)), key
    (clip,) = clips_of(tmp_path / "test")
    (item,) = result["episode_media"]["test_video"]
    assert item["type"] == "video"
    assert tmp_path / "test" / item["file"] == clip
    for word in (str(clip), "normalised_return", "body_pos_err_m"):
        assert word in out
    side = json.loads(clip.with_suffix(".json").read_text())
    assert side["model_file"] == str(trained / "model.pt")
    assert "test_video" in (tmp_path / "test" / "log.txt").read_text()


def test_without_video_nothing_is_filmed(trained, tmp_path):
    words = ("--mode", "test", "--model_file", trained / "model.pt", "--num_envs", 2, "--test_episodes", 2)
    assert run(*words, "--out_dir", tmp_path) == 0
    assert clips_of(tmp_path) == []
    assert not list(tmp_path.rglob("*.mp4"))


def test_a_run_folder_is_complete_and_its_configuration_merged(trained):
    config = yaml.safe_load((trained / "config.yaml").read_text())
    assert (config["num_envs"], config["env"]["episode_length"], config["agent"]["iters_per_output"]) == (
        4,
        0.5,
        1,
    )
    assert config["engine"]["engine_name"] == "mujoco"
    lines = [json.loads(line) for line in (trained / "log.jsonl").read_text().splitlines()]
    assert [line["samples"] for line in lines] == [64, 128]
    assert result_of(trained)["samples"] == 128


def test_every_logger_takes_figures_and_the_clip(tmp_path):
    folder = tmp_path / "walk_seed3"
    words = ("--mode", "view", *DOFS, "--env.episode_length", 0.5, *SMALL, "--out_dir", folder)
    assert run(*words, "--logger", "txt", "tb", "wandb", "--wandb_mode", "offline", "--wandb_group", "seeds") == 0
    assert read_run(folder).display_name == "walk_seed3"
    assert read_run(folder).run_group == "seeds"
    assert any("test_video/path" in row for row in read_history(folder))
    assert list(folder.glob("events.out.tfevents.*"))
    clip = clips_of(folder)[0]
    assert (folder / "log.txt").read_text().splitlines()[-1] == f"# samples 0: test_video: videos/{clip.name}"


OWN_LOGGER = """
from mimickit.loggers.base import Logger

class Notebook(Logger):
    NAME = "notebook"

    def __init__(self, out_dir):
        super().__init__()
        self._file = out_dir / "notebook.txt"

    def _write_row(self, row, step):
        self._note(f"{step} {sorted(row)}")

    def _write_media(self, key, items, step):
        self._note(f"{step} {key} {len(items)}")

    def _note(self, line):
        with self._file.open("a") as file:
            print(line, file=file)
"""


def test_a_logger_of_ones_own_in_one_file(tmp_path, monkeypatch):
    (tmp_path / "my_notebook.py").write_text(OWN_LOGGER)
    monkeypatch.chdir(tmp_path)
    words = ("--mode", "view", *DOFS, "--env.episode_length", 0.2, *SMALL, "--out_dir", "run")
    assert run(*words, "--logger", "my_notebook:Notebook") == 0
    lines = (tmp_path / "run" / "notebook.txt").read_text().splitlines()
    assert lines == ["0 ['falls', 'mean_ep_len', 'mean_return', 'num_eps']", "0 test_video 1"]


def test_the_same_folder_twice_keeps_what_is_there(tmp_path):
    for length in (0.2, 0.4):
        assert run("--mode", "view", *DOFS, "--env.episode_length", length, *SMALL, "--out_dir", tmp_path) == 0
    assert sorted(read_clip(path)[0] for path in tmp_path.glob("videos/*.mp4")) == [7, 13]
    for name in ("result.json", "result.1.json", "log.txt", "log.1.txt", "config.yaml", "config.1.yaml"):
        assert (tmp_path / name).is_file(), name
    assert read_clip(clips_of(tmp_path)[0])[0] == 13


def test_a_default_run_folder_is_a_new_one_each_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert run("--mode", "view", *DOFS, "--env.episode_length", 0.1, "--video", "false") == 0
    assert len(list((tmp_path / "output").iterdir())) == 2


# ---------------------------------------------------------------------- training goes on


def test_a_training_is_gone_on_with_and_never_written_over(trained, tmp_path, capsys):
    assert run("--max_samples", 64, "--out_dir", trained) == 2
    assert "holds a trained model.pt already; go on with it (--resume" in capsys.readouterr().err
    assert run("--resume", trained, "--max_samples", 192, "--out_dir", tmp_path / "more") == 0
    assert result_of(tmp_path / "more")["samples"] == 192
    assert run("--resume", tmp_path / "more", "--max_samples", 256) == 0
    lines = [json.loads(line) for line in (tmp_path / "more" / "log.jsonl").read_text().splitlines()]
    assert [line["samples"] for line in lines] == [192, 256]


def test_training_begins_from_a_model(trained, tmp_path):
    assert run("--model_file", trained / "model.pt", "--num_envs", 2, "--max_samples", 32, "--out_dir", tmp_path) == 0
    assert result_of(tmp_path)["model_file"] == str(trained / "model.pt")


# ---------------------------------------------------------------------- the end of a run


def _until(condition, process, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.1)


def terminate(process):
    process.terminate()


@pytest.mark.parametrize(("stop", "code"), [(press_ctrl_c, 130), (terminate, 143)])
def test_a_signal_in_an_endless_test_finishes_the_film(trained, tmp_path, stop, code):
    words = (
        "--mode",
        "test",
        "--model_file",
        trained / "model.pt",
        "--num_envs",
        2,
        "--test_episodes",
        "inf",
    )
    loggers = ("--logger", "tb", "wandb", "--wandb_mode", "offline")
    process = start(*words, *FILM, *loggers, "--out_dir", tmp_path / "run", cwd=tmp_path)
    _until(lambda: list(tmp_path.glob("run/videos/*")), process)
    time.sleep(1.0)
    stop(process)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert "Traceback" not in err
    result = result_of(tmp_path / "run")
    assert result["interrupted"] is True
    assert result["num_eps"] > 0
    (clip,) = clips_of(tmp_path / "run")
    assert str(clip.relative_to(tmp_path)) in out
    assert read_clip(clip)[0] == json.loads(clip.with_suffix(".json").read_text())["num_frames"]
    assert [row["samples"] for row in read_history(tmp_path / "run") if "test_video/path" in row] == [128]


def test_ctrl_c_in_training_saves_what_can_be_gone_on_with(tmp_path):
    folder = tmp_path / "run"
    words = ("--num_envs", 4, "--test_episodes", 4, "--env.episode_length", 0.5, "--out_dir", folder)
    process = start(*words, cwd=tmp_path)
    _until(lambda: (folder / "log.jsonl").is_file() and (folder / "log.jsonl").stat().st_size > 0, process)
    press_ctrl_c(process)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    samples = result_of(folder)["samples"]
    assert samples > 0
    assert run("--resume", folder, "--max_samples", samples + 64) == 0
    assert result_of(folder)["samples"] == samples + 64


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--mode", "tset"), "--mode: found 'tset'; did you mean 'test'?"),
        (("--mode", "view", "--env.char_fiel", "x"), "unknown key 'char_fiel'; did you mean 'char_file'?"),
        (("--mode", "view", "--env.motion_file", "no.npz"), "motion_file: no such file: "),
        (("--mode", "view", "--env.motion_file", __file__), "test_cli.py"),
        (("--mode", "view", "--env.env_name", "nobodys:Env"), "no module named 'nobodys'"),
        (("--mode", "test", "--num_envs", 1, "--model_file", __file__), "expected a mimickit model"),
        (("--mode", "test", "--num_envs", 1, "--env_config", RUN_ENV), "--model_file is missing"),
        (("--mode", "view", "--devices", "tpu"), "--devices: expected cpu or cuda:N, found 'tpu'\n"),
        (("--engine.control_freq", 7, "--num_envs", 1), "sim_freq: expected a whole multiple of control_f"),
        (("--agent.discuont", 0.9, "--num_envs", 1), "unknown key 'discuont'; did you mean 'discount'?"),
    ],
)  # fmt: skip
def test_a_mistake_is_explained_and_leaves_nothing_behind(tmp_path, capsys, words, message):
    assert run(*words, "--out_dir", tmp_path / "run") == 2
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err
    assert not (tmp_path / "run").exists()


def test_a_hostile_model_file_runs_nothing(tmp_path, capsys):
    class Hostile:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "owned"),))

    torch.save({"format": "mimickit model", "model": Hostile()}, tmp_path / "model.pt")
    words = ("--mode", "test", "--num_envs", 1, "--model_file", tmp_path / "model.pt")
    assert run(*words, "--out_dir", tmp_path / "run") == 2
    assert "refused" in capsys.readouterr().err
    assert not (tmp_path / "owned").exists()


BROKEN_ENV = """
from mimickit.envs.char_dof_test_env import CharDofTestEnv

class Broken(CharDofTestEnv):
    def _apply_action(self, action):
        if self._steps[0] == 10:
            raise ZeroDivisionError("at step ten")
        super()._apply_action(action)
"""


def test_a_run_that_fails_finishes_its_film_and_answers_1(tmp_path, monkeypatch, capsys):
    (tmp_path / "my_broken_env.py").write_text(BROKEN_ENV)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "run"
    words = ("--mode", "view", *DOFS, "--env.env_name", "my_broken_env:Broken", *SMALL)
    assert run(*words, "--out_dir", folder) == 1
    assert "ZeroDivisionError: at step ten" in capsys.readouterr().err
    (clip,) = folder.glob("videos/*.mp4")
    assert read_clip(clip)[0] == 11


def test_when_filming_fails_a_view_has_failed_and_a_test_has_not(trained, tmp_path, capsys):
    for name in ("test", "view", "strict"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "videos").write_text("in the way of the clips' folder")
    model = ("--mode", "test", "--model_file", trained / "model.pt", "--num_envs", 2, "--test_episodes", 2)
    assert run(*model, *FILM, "--out_dir", tmp_path / "test") == 0
    assert capsys.readouterr().err.count("WARNING") == 1
    assert result_of(tmp_path / "test")["episode_media"] == {}
    assert run("--mode", "view", *DOFS, "--env.episode_length", 0.5, *SMALL, "--out_dir", tmp_path / "view") == 1
    assert run(*model, *FILM, "--video_strict", "--out_dir", tmp_path / "strict") == 1
    assert "error: filming failed" in capsys.readouterr().err


# ---------------------------------------------------------------------- help


def test_help_is_quick_and_asks_for_no_heavy_library():
    code = "import sys; from mimickit.cli import main; main(['--help']); print(sorted(sys.modules))"
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, cwd=ROOT, env=headless(), capture_output=True, text=True, check=True).stdout
    assert "--video_camera NAME" in out
    heavy = {"torch", "mujoco", "cv2", "wandb", "tensorboard", "gymnasium"}
    assert [name for name in heavy if f"'{name}'" in out.splitlines()[-1]] == []
