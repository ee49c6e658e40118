"""The imitation library in its own environment: cloning and GAIL run, and are filmed, during and after training."""

import re
import subprocess
import sys

import pytest

pytest.importorskip("imitation")
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from mimickit.config import project_root
from tests.video.films import read_frames


@pytest.mark.timeout(600)
def test_cloning_and_gail_are_filmed(tmp_path):
    words = ["--num_envs", "4", "--bc_epochs", "2", "--gail_steps", "2048", "--out_dir", str(tmp_path)]
    script = project_root() / "tests" / "interop" / "imitation_bc_gail.py"
    environment = {"PYTHONPATH": str(project_root()), "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, str(script), *words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    clips = {path.relative_to(tmp_path).as_posix(): len(read_frames(path)) for path in tmp_path.glob("*/videos/*.mp4")}
    assert sorted(name.split("/")[0] for name in clips) == ["bc"] * 3 + ["gail"] * 3
    assert min(clips.values()) > 1
    assert float(re.search(r"expert: .* mean return ([\d.]+)", done.stdout)[1]) > 0.9 * 300
    for folder in ("bc", "gail"):
        (events,) = (tmp_path / folder).glob("events.*")
        assert EventAccumulator(str(events)).Reload().Tags()["images"] == ["policy_video"]
