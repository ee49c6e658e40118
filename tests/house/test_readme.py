"""What the README promises a newcomer is run as it stands there."""

import re
import subprocess
import sys

import pytest

from mimickit.cli import main
from mimickit.config import project_root

README = (project_root() / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "data").symlink_to(project_root() / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_program_that_films_with_the_engine_alone(folder):
    (folder / "program.py").write_text(blocks("python")[0])
    environment = {"PYTHONPATH": str(project_root()), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "program.py"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "drop.mp4" in done.stdout
    assert (folder / "output" / "drop.mp4").stat().st_size > 10_000


def test_the_environment_in_one_file_trains_and_films_itself(folder):
    (folder / "my_env.py").write_text(blocks("python")[1])
    (folder / "my_env.yaml").write_text(blocks("yaml")[0])
    words = "--mode train --env_config my_env.yaml --video true --video_size 160x90 --env.episode_length 0.5"
    assert main([*words.split(), "--num_envs", "4", "--max_samples", "64", "--test_episodes", "4"]) == 0
    assert list(folder.glob("output/train_my_*/videos/*.mp4"))


def test_every_file_that_the_readme_names_is_there():
    for path in re.findall(r"(?:data|args|docs)/[\w./]+[\w/]", README):
        assert (project_root() / path).exists(), path
