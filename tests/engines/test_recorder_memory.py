"""Memory does not grow with the length of a clip."""

import subprocess
import sys

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
