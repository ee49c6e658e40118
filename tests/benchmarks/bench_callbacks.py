"""What callbacks cost a training of 4,096 environments: without a hook of episodes, and with on_episode_end."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
import yaml

from mimickit.learning.ppo_agent import PPOAgent
from mimickit.loggers.text_logger import TextLogger
from mimickit.media import Callback, Run
from mimickit.media.callback_env import CallbackEnv
from mimickit.media.observer import CallbackObserver
from mimickit.media.store import MediaStore
from tests.benchmarks.bench_engine import make_env
from tests.benchmarks.timing import Row, at_most, in_turns

AGENT_FILE = Path("data/agents/ppo_cpu_agent.yaml")
NUM_ENVS = 4096
STEPS = 4  # of an iteration
ROUNDS = 15


class Idle(Callback):
    """Overrides nothing."""


class Ends(Callback):
    """Looks at the end of every episode."""

    def __init__(self) -> None:
        self.count, self.total = 0, 0.0

    def on_episode_end(self, episode, env_index):
        self.count += 1
        self.total += episode.episode_return


def training(folder: Path, callbacks: list[Callback]) -> tuple[Callable[[], None], int]:
    """A function that trains one iteration more, and its samples."""
    config = {**yaml.safe_load(AGENT_FILE.read_text()), "iters_per_output": 10**6, "test_episodes": 0}
    config["steps_per_iter"] = STEPS
    env = make_env(NUM_ENVS)
    observer = None
    if callbacks:
        run = Run(folder, env, MediaStore(folder))
        env = run.env = CallbackEnv(env, callbacks, run)
        observer = CallbackObserver(callbacks, run)
    agent = PPOAgent(config, env, seed=0)
    if observer is not None:
        observer.follow(agent)
        agent.observer = observer
    logger, samples, done = TextLogger(folder), NUM_ENVS * STEPS, 0

    def train() -> None:
        nonlocal done
        done += samples
        agent.train(max_samples=done, out_dir=folder, logger=logger, progress=False)

    return train, samples


def run() -> list[Row]:
    """The two rows of callbacks, on the same states: all trainings begin with one seed and are the same."""
    ends = Ends()
    with tempfile.TemporaryDirectory() as folder:
        ways: dict[str, list[Callback]] = {"without": [], "idle": [Idle(), Idle(), Idle()], "ends": [ends]}
        trainings = {name: training(Path(folder) / name, callbacks) for name, callbacks in ways.items()}
        spent = in_turns({name: train for name, (train, _) in trainings.items()}, rounds=ROUNDS)
    samples = trainings["without"][1]
    rate = {name: f"{samples / seconds:,.0f} samples/s" for name, seconds in spent.items()}
    each = ends.count / (ROUNDS + 1)
    return [
        at_most("training, callbacks without a hook of episodes", measured=rate["idle"],
                baseline=f"none {rate['without']}", ratio=spent["idle"] / spent["without"], bound=1.01),
        at_most(f"training, on_episode_end ({each:,.0f} an iteration)", measured=rate["ends"],
                baseline=f"none {rate['without']}", ratio=spent["ends"] / spent["without"], bound=1.05),
    ]  # fmt: skip


if __name__ == "__main__":
    from tests.benchmarks.timing import table

    torch.set_num_threads(1)
    print(table(run()))
