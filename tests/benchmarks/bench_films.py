"""What views, overlays and levels of quality cost, and what a test costs whose film is put off."""

import itertools
import tempfile
from pathlib import Path
from unittest import mock

import torch
import yaml

from mimickit.engines.mujoco_engine import MujocoEngine
from mimickit.envs.base_env import DoneFlags, EnvMode
from mimickit.envs.deepmimic_env import DeepMimicEnv
from mimickit.learning.ppo_agent import PPOAgent
from mimickit.video.config import VideoConfig
from mimickit.video.stage.stage_filmer import StageFilmer
from mimickit.video.traces.film_job import FilmJob
from mimickit.video.traces.refilm import film, trace_footage
from mimickit.video.traces.trace import Trace
from tests.benchmarks.timing import Row, at_least, at_most, in_turns

MODEL = Path("data/models/humanoid_walk")
ENGINE = {"control_mode": "pos", "control_freq": 30, "sim_freq": 120, "num_threads": 2}
FRAMES = 91


class WalkTest:
    """The shipped walk, tested on 32 environments."""

    def __init__(self, video: VideoConfig, *, seconds: float) -> None:
        config = yaml.safe_load((MODEL / "config.yaml").read_text())
        engine = MujocoEngine(ENGINE, num_envs=32, video=video)
        self.env = DeepMimicEnv(config["env"] | {"episode_length": seconds}, engine, num_envs=32)
        self._agent = PPOAgent(config["agent"], self.env)
        self._agent.load(MODEL / "model.pt")

    def play(self) -> None:
        """One whole test: what agent.test() does, without its accounts."""
        self.env.set_mode(EnvMode.TEST)
        obs = self.env.reset()
        for _ in range(self.env.max_episode_steps):
            obs, _, done, _ = self.env.step(self._agent._act(obs))
            ended = torch.nonzero(done != DoneFlags.NULL).squeeze(-1)
            if len(ended):
                obs = self.env.reset(ended)
        self.env.set_mode(EnvMode.TRAIN)


def record_walk(folder: Path) -> Path:
    """The trace of three seconds of it."""
    test = WalkTest(VideoConfig(enabled=True, out_dir=folder, quality="draft"), seconds=(FRAMES - 1) / 30)
    test.play()
    test.env.close()
    return next(folder.glob("*.trace"))


def films(folder: Path, trace_file: Path) -> list[Row]:
    """The same trace filmed in several ways, in turns."""
    ways = {
        "plain": {},
        "four views": {"views": "track,side,front,top"},
        "overlays": {"overlay": "all"},
        "ghost": {"ghost": "on"},
        "draft": {"quality": "draft"},
        "high": {"quality": "high"},
    }
    configs = {name: VideoConfig.from_mapping(way, "benchmark") for name, way in ways.items()}
    filmers = {name: StageFilmer() for name in ways}
    number = itertools.count()
    with Trace(trace_file) as trace:

        def shoot(name: str) -> None:
            film(trace_footage(trace), configs[name], folder / f"{next(number)}.mp4", filmers[name])

        spent = in_turns({name: lambda name=name: shoot(name) for name in ways}, rounds=5)
    for filmer in filmers.values():
        filmer.close()
    rate = {name: f"{FRAMES / seconds:.1f} frames/s" for name, seconds in spent.items()}

    def against(name: str, baseline: str, bound: float) -> Row:
        return at_most(f"film: {name}", measured=rate[name], baseline=f"{baseline} {rate[baseline]}",
                       ratio=spent[name] / spent[baseline], bound=bound)  # fmt: skip

    return [
        against("four views", "plain", 2.2),
        # all overlays bring the reference into the picture; its drawing is not theirs
        against("overlays", "ghost", 1.15),
        at_least("film: draft", measured=rate["draft"], baseline=f"plain {rate['plain']}",
                 ratio=spent["plain"] / spent["draft"], bound=2.0),
        at_most("film: high", measured=rate["high"], baseline=f"plain {rate['plain']}",
                ratio=spent["high"] / spent["plain"], bound=10.0),
    ]  # fmt: skip


def cost_of_a_trace(folder: Path) -> Row:
    """A test whose film is put off against one without video; the film itself is made after the measurement."""
    off = WalkTest(VideoConfig(enabled=False), seconds=5.0)
    on = WalkTest(VideoConfig(enabled=True, defer=True, out_dir=folder), seconds=5.0)
    recorder = on.env._engine.get_video_recorder()
    with mock.patch.object(FilmJob, "_launch", lambda job, trace: None):

        def settle() -> None:
            for job in recorder._jobs:
                job.wait_for_trace()
            recorder._jobs.clear()

        spent = in_turns({"off": off.play, "on": on.play, "settle": settle}, rounds=15)
        on.env.close()
    off.env.close()
    rate = {name: f"{32 * 150 / seconds:,.0f} steps/s" for name, seconds in spent.items()}
    return at_most("test phase, film put off", measured=rate["on"], baseline=f"video off {rate['off']}",
                   ratio=spent["on"] / spent["off"], bound=1.03)  # fmt: skip


def run() -> list[Row]:
    """All rows of films."""
    with tempfile.TemporaryDirectory() as folder:
        put_off = cost_of_a_trace(Path(folder) / "put_off")  # first: such a process has never drawn anything
        return [*films(Path(folder), record_walk(Path(folder))), put_off]
