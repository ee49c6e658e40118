"""The programs in docs/interop.md run as they stand, where their library is installed."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

from mimickit.config import project_root
from tests.video.films import read_frames

TEXT = (project_root() / "docs" / "interop.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?```python\n(.*?)```", TEXT, re.DOTALL | re.MULTILINE)
FILMS = {"Film any policy": 1, "Stable-Baselines3": 3, "imitation": 2, "RLlib": 4}


def test_every_section_with_a_program_is_found():
    assert len(PROGRAMS) == TEXT.count("```python") == 6
    assert set(FILMS) < {name for name, _ in PROGRAMS}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("name", "program"), PROGRAMS, ids=[name for name, _ in PROGRAMS])
def test_a_program_runs(tmp_path, name, program):
    for library in re.findall(r"^(?:from|import) (\w+)", program, re.MULTILINE):
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    if "make_vec" in program and not hasattr(__import__("gymnasium"), "VectorizeMode"):
        pytest.skip("make_vec is another one in Gymnasium 0.29")
    (tmp_path / "data").symlink_to(project_root() / "data")
    (tmp_path / "program.py").write_text(program)
    environment = os.environ | {"PYTHONPATH": str(project_root()), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    clips = list(tmp_path.glob("output/films/**/*.mp4"))
    assert len(clips) == FILMS.get(name, 0)
    assert all(read_frames(clip) for clip in clips)
