"""Training end to end against what its own physics and a bare update of its own networks would allow."""

import tempfile
from pathlib import Path

import torch
import yaml
from torch import Tensor, nn

from mimickit.learning.ppo_agent import PPOAgent
from mimickit.loggers.text_logger import TextLogger
from tests.benchmarks.bench_engine import NUM_ENVS, STEPS, BareLoop, make_env
from tests.benchmarks.timing import Row, at_least, in_turns

AGENT_FILE = Path("data/agents/ppo_cpu_agent.yaml")
ITERATIONS = 6  # of training in a round


class BareUpdate:
    """The arithmetic of one iteration's PPO update on random data: plain torch, nothing logged, adapted or checked."""

    def __init__(self, obs_size: int, action_size: int, config: dict[str, object], samples: int) -> None:
        self._actor = self._mlp(obs_size, action_size)
        self._critic = self._mlp(obs_size, 1)
        self._obs = torch.randn(samples, obs_size)
        self._action = torch.randn(samples, action_size)
        self._targets = torch.randn(samples, 1)
        self._size = int(config["minibatch_size"])  # type: ignore[call-overload]
        self._epochs = int(config["actor_epochs"])  # type: ignore[call-overload]
        self._actor_adam = torch.optim.Adam(self._actor.parameters(), 1e-4, fused=True)
        self._critic_adam = torch.optim.Adam(self._critic.parameters(), 1e-4, fused=True)

    @staticmethod
    def _mlp(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(nn.Linear(inputs, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, outputs))

    def run(self) -> None:
        for _ in range(self._epochs):
            for batch in torch.randperm(len(self._obs)).split(self._size):
                obs = self._obs[batch]
                ratio = torch.exp(-(self._actor(obs) - self._action[batch]).square().sum(-1) * 1e-6)
                clipped = torch.clamp(ratio, 0.8, 1.2)
                self._step(-torch.minimum(ratio, clipped).mean(), self._actor_adam)
                self._step((self._critic(obs) - self._targets[batch]).square().mean(), self._critic_adam)

    @staticmethod
    def _step(loss: Tensor, adam: torch.optim.Optimizer) -> None:
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()


def run() -> list[Row]:
    """The row of training, and its plain speed."""
    config = {**yaml.safe_load(AGENT_FILE.read_text()), "iters_per_output": 10**6, "test_episodes": 0}
    env = make_env()
    bare_env = make_env()
    agent = PPOAgent(config, env, seed=0, config_source=str(AGENT_FILE))
    per_iteration = NUM_ENVS * int(config["steps_per_iter"])
    update = BareUpdate(env.obs_space.shape[0], env.action_space.shape[0], config, per_iteration)
    physics = BareLoop(bare_env._engine)  # type: ignore[arg-type]

    def bare_physics() -> None:
        bare_env.reset()
        physics.run()

    with tempfile.TemporaryDirectory() as folder:
        logger = TextLogger(Path(folder))
        done = 0

        def train() -> None:
            nonlocal done
            done += ITERATIONS * per_iteration
            agent.train(max_samples=done, out_dir=Path(folder), logger=logger, progress=False)

        spent = in_turns({"train": train, "physics": bare_physics, "update": update.run}, rounds=7)
        logger.close()
    per_sample = {
        "train": spent["train"] / (ITERATIONS * per_iteration),
        "physics": spent["physics"] / (NUM_ENVS * STEPS),
        "update": spent["update"] / per_iteration,
    }
    allowed = 1.0 / (per_sample["physics"] + per_sample["update"])
    return [
        at_least(
            "training end to end", measured=f"{1 / per_sample['train']:,.0f} samples/s",
            baseline=f"physics {1 / per_sample['physics']:,.0f} + bare update {1 / per_sample['update']:,.0f} allow "
            f"{allowed:,.0f}",
            ratio=1.0 / per_sample["train"] / allowed, bound=0.6,
        )
    ]  # fmt: skip
