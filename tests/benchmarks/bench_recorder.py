"""The recorder against a bare renderer, against video switched off, and its memory against the length of a clip."""

import subprocess
import sys
import tempfile
from pathlib import Path

import mujoco
import numpy as np
import torch
import yaml

from mimickit.engines.engine import ObjType
from mimickit.engines.mujoco_engine import MujocoEngine
from mimickit.envs.base_env import DoneFlags
from mimickit.envs.deepmimic_env import DeepMimicEnv
from mimickit.video.config import VideoConfig
from mimickit.video.stage.stage import Stage
from tests.benchmarks.timing import Row, at_least, at_most, in_turns

CHAR_FILE = "data/assets/humanoid/humanoid.xml"
ENV_FILE = Path("data/envs/deepmimic_humanoid_walk_env.yaml")
ENGINE_CONFIG = {"control_mode": "pos", "control_freq": 30, "sim_freq": 120, "num_threads": 2}
WIDTH, HEIGHT = 854, 480
FRAMES = 150


def standing_engine(video: VideoConfig) -> MujocoEngine:
    """One humanoid that holds its pose on the ground."""
    engine = MujocoEngine(ENGINE_CONFIG, num_envs=1, video=video)
    engine.create_obj(engine.create_env(), ObjType.ARTICULATED, CHAR_FILE, "humanoid", start_pos=(0, 0, 0.9))
    engine.initialize_sim()
    return engine


def film(engine: MujocoEngine, frames: int) -> None:
    """Step and film frames frames into one clip."""
    with engine.recording():
        for _ in range(frames - 1):
            engine.set_cmd(0, torch.zeros(1, 28))
            engine.step()


def recorder_speed(folder: Path) -> Row:
    """Frames a second, simulation and encoding included, against mujoco.Renderer drawing the same scene in a loop."""
    engine = standing_engine(VideoConfig(enabled=True, out_dir=folder))
    stage = Stage(engine.stage_actors(0), width=WIDTH, height=HEIGHT)
    model = stage.model
    stage.close()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    renderer = mujoco.Renderer(model, HEIGHT, WIDTH)
    camera = mujoco.MjvCamera()
    camera.lookat[:], camera.distance, camera.azimuth, camera.elevation = (0, 0, 0.9), 4.0, 120.0, -12.0

    def bare() -> None:
        for index in range(FRAMES):
            camera.azimuth = 120.0 + index
            renderer.update_scene(data, camera)
            renderer.render()

    spent = in_turns({"bare": bare, "recorder": lambda: film(engine, FRAMES)}, rounds=3)
    renderer.close()
    engine.close()
    rate = {name: f"{FRAMES / seconds:.1f} frames/s" for name, seconds in spent.items()}
    return at_least(
        f"recorder, encoding included, {WIDTH}x{HEIGHT}", measured=rate["recorder"],
        baseline=f"mujoco.Renderer {rate['bare']}", ratio=spent["bare"] / spent["recorder"], bound=0.8,
    )  # fmt: skip


def cost_outside_tests() -> Row:
    """Steps of training with video enabled against the same with video off."""
    num_envs, steps = 256, 10
    config = yaml.safe_load(ENV_FILE.read_text())

    def make(enabled: bool) -> DeepMimicEnv:
        engine = MujocoEngine(ENGINE_CONFIG, num_envs=num_envs, video=VideoConfig(enabled=enabled))
        return DeepMimicEnv(config, engine, num_envs=num_envs)

    action = torch.zeros(num_envs, 28)

    def work(env: DeepMimicEnv) -> None:
        env._generator.manual_seed(0)
        env.reset()
        for _ in range(steps):
            done = env.step(action)[2]
            env.reset(torch.nonzero(done != DoneFlags.NULL).squeeze(-1))

    on, off = make(True), make(False)
    spent = in_turns({"on": lambda: work(on), "off": lambda: work(off)}, rounds=25)
    rate = {name: f"{num_envs * steps / seconds:,.0f} steps/s" for name, seconds in spent.items()}
    return at_most(
        "time with video enabled, outside TEST", measured=rate["on"], baseline=f"video off {rate['off']}",
        ratio=spent["on"] / spent["off"], bound=1.02,
    )  # fmt: skip


def in_own_process(what: str, frames: int) -> tuple[float, float]:
    """Run this module's `what` in a fresh process; returns its seconds and its growth or peak of memory (MB)."""
    command = [sys.executable, "-m", "tests.benchmarks.film_memory", what, str(frames)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, megabytes = result.stdout.split()[-2:]
    return float(seconds), float(megabytes)


def memory_of_long_clips() -> Row:
    """Peak memory of a process that films 9,000 frames against one that films 900."""
    short, long = (in_own_process("peak", frames)[1] for frames in (900, 9000))
    return Row("peak RSS, 9,000-frame clip", f"{long:.0f} MB", f"900-frame clip {short:.0f} MB", long - short,
               "<= 50 MB more", long - short <= 50.0)  # fmt: skip


def against_gymnasium() -> list[Row]:
    """The same humanoid, size and number of frames, filmed by Gymnasium's RecordVideo."""
    frames = 600
    ours, theirs = ([in_own_process(name, frames) for _ in range(2)] for name in ("recorder", "gymnasium"))
    fast, slow = (float(np.median([seconds for seconds, _ in runs])) for runs in (ours, theirs))
    small, big = (float(np.median([grown for _, grown in runs])) for runs in (ours, theirs))
    return [
        at_least(f"{frames} frames end to end", measured=f"{fast:.1f} s",
                 baseline=f"Gymnasium RecordVideo {slow:.1f} s", ratio=slow / fast, bound=1.5),
        at_most("growth of memory meanwhile", measured=f"{small:.0f} MB",
                baseline=f"Gymnasium RecordVideo {big:.0f} MB", ratio=small / big, bound=0.1),
    ]  # fmt: skip


def run() -> list[Row]:
    """All rows of the recorder."""
    with tempfile.TemporaryDirectory() as folder:
        return [recorder_speed(Path(folder)), cost_outside_tests(), memory_of_long_clips(), *against_gymnasium()]
