"""Training on the real character, clip and engine: repeatable, resumable, and blind to being filmed."""

import json
from pathlib import Path
from typing import Any

import torch
import yaml

from mimickit.engines.mujoco_engine import MujocoEngine
from mimickit.envs.deepmimic_env import DeepMimicEnv
from mimickit.learning.ppo_agent import PPOAgent
from mimickit.loggers.text_logger import TextLogger
from mimickit.video.config import VideoConfig

NUM_ENVS, STEPS = 8, 8
ITERATION = NUM_ENVS * STEPS


def agent(out_dir: Path, *, video: bool = False, threads: int = 2) -> PPOAgent:
    filming = VideoConfig(enabled=video, width=64, height=48, out_dir=out_dir / "videos")
    engine = MujocoEngine(
        {"control_mode": "pos", "control_freq": 30, "sim_freq": 120, "num_threads": threads},
        num_envs=NUM_ENVS, video=filming,
    )  # fmt: skip
    config = yaml.safe_load(Path("data/envs/deepmimic_humanoid_walk_env.yaml").read_text())
    env = DeepMimicEnv({**config, "episode_length": 1.0}, engine, num_envs=NUM_ENVS, seed=3)
    learning: dict[str, Any] = yaml.safe_load(Path("data/agents/ppo_cpu_agent.yaml").read_text())
    learning |= {"steps_per_iter": STEPS, "minibatch_size": 16, "iters_per_output": 2, "test_episodes": NUM_ENVS}
    return PPOAgent(learning, env, seed=3)


def train(out_dir: Path, iterations: int, *, resume: Path | None = None, **options: Any) -> dict[str, torch.Tensor]:
    learner = agent(out_dir, **options)
    logger = TextLogger(out_dir)
    learner.train(max_samples=iterations * ITERATION, out_dir=out_dir, logger=logger, resume=resume, progress=False)
    logger.close()
    learner._env.close()
    return {name: value.clone() for name, value in learner._model.state_dict().items()}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(a[name], b[name]) for name in a)


def curve(out_dir: Path) -> list[tuple[float, float]]:
    rows = [json.loads(line) for line in (out_dir / "log.jsonl").read_text().splitlines()]
    key = "update/critic_loss"  # rows of media have none
    return [(row["samples"], row[key]) for row in rows if key in row]


def test_a_seed_gives_the_same_curve_again_whatever_the_threads_and_filmed_or_not(tmp_path: Path) -> None:
    plain = train(tmp_path / "plain", 4)
    filmed = train(tmp_path / "filmed", 4, video=True, threads=1)
    assert same(plain, filmed)
    assert curve(tmp_path / "plain") == curve(tmp_path / "filmed")
    assert len(curve(tmp_path / "plain")) == 4
    clips = sorted((tmp_path / "filmed" / "videos").glob("*.mp4"))
    assert len(clips) == 2  # one a test
    assert not (tmp_path / "plain" / "videos").exists()
    samples = [json.loads(clip.with_suffix(".json").read_text())["samples"] for clip in clips]
    assert samples == [2 * ITERATION, 4 * ITERATION]


def test_a_resumed_training_is_the_uninterrupted_one(tmp_path: Path) -> None:
    whole = train(tmp_path / "whole", 4)
    train(tmp_path / "half", 2)
    resumed = train(tmp_path / "rest", 4, resume=tmp_path / "half")
    assert same(whole, resumed)
