"""Memory does not grow with the length of a clip."""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from tests.engines.test_recorder import film, make

SCRIPT = """
from pathlib import Path
import tempfile, torch
from mimickit.engines.engine import ObjType
from mimickit.engines.mujoco_engine import MujocoEngine
from mimickit.video.config import VideoConfig

def status(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(key))

with tempfile.TemporaryDirectory() as folder:
    video = VideoConfig(enabled=True, out_dir=folder, width=320, height=240, quality="draft")
    engine = MujocoEngine({"control_freq": 30, "sim_freq": 60}, num_envs=1, video=video)
    engine.create_obj(engine.create_env(), ObjType.ARTICULATED, "data/assets/humanoid/humanoid.xml", "h")
    engine.initialize_sim()
    def film(frames):
        with engine.recording():
            for _ in range(frames - 1):
                engine.step()
        assert engine.get_video_recording().num_frames == frames
    film(100)
    before = status("VmRSS")
    film(1500)
    print(status("VmHWM") - before)
"""


def test_a_clip_fifteen_times_as_long_needs_no_more_memory() -> None:
    """1,500 frames of 320x240 are 345 MB, were they kept."""
    result = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=250)
    assert float(result.stdout) < 40.0, result.stdout


def resident_mb() -> float:
    """Memory of this process (MB)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def open_files() -> set[str]:
    """What the process has open: the targets of its descriptors."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(str(descriptor.readlink()))
    return found


def children() -> set[int]:
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # a thread may end meanwhile
            found.update(int(pid) for pid in (task / "children").read_text().split())
    return found


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_a_hundred_clips_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all that a clip takes: memory, threads, processes, descriptors, temporary files."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    engine = make(tmp_path, num_envs=2, views="track,side", overlay="all", poster=True)
    threads, processes, files = set(threading.enumerate()), children(), open_files()
    after: list[float] = []
    for _ in range(100):
        clip = film(engine, 2)
        after.append(resident_mb())
        assert clip.num_frames == 3
    engine.close()
    assert after[-1] - after[4] < 20.0, after
    assert set(threading.enumerate()) <= threads
    assert children() <= processes
    assert [name for name in open_files() - files if not name.startswith("/dev/")] == []  # the driver keeps its own
    assert list(temporary.iterdir()) == []
    assert not list((tmp_path / "videos").glob("*.part"))
