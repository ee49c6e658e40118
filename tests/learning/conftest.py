"""Fixtures of the learning tests: a small task and an agent that learns it in seconds."""

from pathlib import Path
from typing import Any, Protocol

import pytest

from mimickit.learning.ppo_agent import PPOAgent
from mimickit.loggers.text_logger import TextLogger
from tests.learning.point_mass import PointMassEnv

CONFIG: dict[str, Any] = {
    "model": {"actor_net": [32, 16], "critic_net": [32, 16], "action_std": 0.2},
    "actor_optimizer": {"learning_rate": 1e-3, "grad_clip": 1.0},
    "critic_optimizer": {"learning_rate": 3e-3, "grad_clip": 1.0},
    "discount": 0.95,
    "steps_per_iter": 8,
    "iters_per_output": 2,
    "test_episodes": 16,
    "minibatch_size": 64,
    "actor_epochs": 2,
    "critic_epochs": 3,
    "kl_target": 0.02,
}


class MakeAgent(Protocol):
    """Builds an agent on a new environment of 16 point masses; keywords override CONFIG."""

    def __call__(self, *, seed: int = 0, env: PointMassEnv | None = None, **overrides: Any) -> PPOAgent: ...


@pytest.fixture
def make_agent() -> MakeAgent:
    def make(*, seed: int = 0, env: PointMassEnv | None = None, **overrides: Any) -> PPOAgent:
        return PPOAgent({**CONFIG, **overrides}, env or PointMassEnv(num_envs=16, seed=seed), seed=seed)

    return make


@pytest.fixture
def logger(tmp_path: Path) -> TextLogger:
    return TextLogger(tmp_path / "log")
