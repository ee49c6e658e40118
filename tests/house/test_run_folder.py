"""A run folder belongs to one run at a time, and a run that is refused leaves it as it was."""

import hashlib
import subprocess
import sys

import pytest
import torch

from mimickit.cli import main
from mimickit.cli.options import read_request
from mimickit.cli.run_folder import RunFolder, make_run_folder
from mimickit.cli.settings import load_settings
from mimickit.util.keys import ConfigError

VIEW = ("--mode", "view", "--env_config", "data/envs/char_dof_test_humanoid_env.yaml", "--env.episode_length", "0.1")
REFUSED = {
    "camera": (2, *VIEW, "--video_camera", "orbti"),
    "logger": (2, *VIEW, "--logger", "tb", "my_late_logger:Late"),
    "checkpoint": (2, "--num_envs", "1", "--resume", "checkpoint.pt"),
    "engine": (1, *VIEW, "--engine.engine_name", "my_late_logger:Broken"),
}
LATE = """
from mimickit.engines.engine import Engine
from mimickit.engines.mujoco_engine import MujocoEngine
from mimickit.loggers.base import Logger, MissingLibraryError

class Late(Logger):
    def __init__(self, out_dir):
        (out_dir / "late").mkdir()
        (out_dir / "late" / "notes.txt").write_text("begun")
        raise MissingLibraryError("pip install late")

    def _write_row(self, row, step):
        pass

    def _write_media(self, key, items, step):
        pass

class Broken(MujocoEngine):
    def initialize_sim(self):
        raise ZeroDivisionError
"""


def contents(folder):
    """Every file by its path and what is in it."""
    return {
        path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in folder.rglob("*")
    }


@pytest.fixture
def refuse(tmp_path, monkeypatch):
    """A function that runs one of REFUSED."""
    (tmp_path / "my_late_logger.py").write_text(LATE)
    torch.save({"format": "something else"}, tmp_path / "checkpoint.pt")
    monkeypatch.syspath_prepend(tmp_path)

    def run(case, folder):
        code, *words = REFUSED[case]
        words = [str(tmp_path / word) if word == "checkpoint.pt" else word for word in words]
        assert main([*words, "--out_dir", str(folder)]) == code

    yield run
    sys.modules.pop("my_late_logger", None)


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_run_leaves_no_folder(refuse, tmp_path, case):
    refuse(case, tmp_path / "deep" / "run")
    assert not (tmp_path / "deep").exists()


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_run_leaves_a_folder_as_it_was(refuse, tmp_path, case):
    folder = tmp_path / "run"
    assert main([*VIEW, "--video", "false", "--out_dir", str(folder)]) == 0
    (folder / "notes").mkdir()
    (folder / "notes" / "mine.txt").write_text("mine")
    before = contents(folder)
    refuse(case, folder)
    assert contents(folder) == before


HOLD = """
import sys
from pathlib import Path
from mimickit.cli.run_folder import RunFolder
with RunFolder(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_in_the_same_folder_is_refused_and_changes_nothing(tmp_path, capsys):
    command, pipe = [sys.executable, "-c", HOLD, str(tmp_path)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as first:
        assert first.stdout.readline() == "held\n"
        before = contents(tmp_path)
        assert main([*VIEW, "--out_dir", str(tmp_path)]) == 2
        assert f"{tmp_path}: another run is writing in this folder" in capsys.readouterr().err
        assert contents(tmp_path) == before
        first.stdin.close()
        assert first.wait() == 0
    assert list(tmp_path.iterdir()) == []
    assert main([*VIEW, "--video", "false", "--out_dir", str(tmp_path)]) == 0
    assert not (tmp_path / ".lock").exists()


def test_a_killed_run_locks_nobody_out(tmp_path):
    command, pipe = [sys.executable, "-c", HOLD, str(tmp_path)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as first:
        assert first.stdout.readline() == "held\n"
        first.kill()
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    with RunFolder(tmp_path), pytest.raises(ConfigError, match="another run"):
        RunFolder(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_failed_after_it_had_begun_keeps_what_it_wrote(tmp_path):
    with pytest.raises(ZeroDivisionError), RunFolder(tmp_path) as folder:
        (tmp_path / "log.txt").write_text("a row")
        folder.begun = True
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["log.txt"]


def test_a_folder_that_holds_a_model_is_not_trained_in_again_nor_left_locked(tmp_path):
    (tmp_path / "model.pt").write_text("a model")
    settings = load_settings(read_request(["--out_dir", str(tmp_path)]))
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"holds a trained model\.pt already"):
            make_run_folder(settings)
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt"]
