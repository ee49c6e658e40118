"""Engine and environment against a bare loop of mujoco.batch on the same model."""

from pathlib import Path

import torch
import yaml
from mujoco.batch import Batch

from mimickit.engines.mujoco_engine import MujocoEngine
from mimickit.envs.base_env import DoneFlags
from mimickit.envs.deepmimic_env import DeepMimicEnv
from tests.benchmarks.timing import Row, at_least, in_turns

ENV_FILE = Path("data/envs/deepmimic_humanoid_walk_env.yaml")
ENGINE_CONFIG = {"control_mode": "pos", "control_freq": 30, "sim_freq": 120, "num_threads": 2}
NUM_ENVS = 512
STEPS = 20
GETTERS = (
    "root_pos", "root_rot", "root_vel", "root_ang_vel", "dof_pos", "dof_vel", "dof_forces", "body_pos", "body_rot",
    "body_vel", "body_ang_vel", "contact_forces", "ground_contact_forces",
)  # fmt: skip


def make_env(num_envs: int = NUM_ENVS) -> DeepMimicEnv:
    """The walk environment, every episode in the reference's pose."""
    engine = MujocoEngine(ENGINE_CONFIG, num_envs=num_envs)
    return DeepMimicEnv(yaml.safe_load(ENV_FILE.read_text()), engine, num_envs=num_envs)


class BareLoop:
    """Nothing but Batch.step on the engine's own model, from the engine's own state, with the engine's own commands."""

    def __init__(self, engine: MujocoEngine) -> None:
        self._engine = engine
        self._batch = Batch(engine._scene.model, engine.get_num_envs(), 2)  # type: ignore[union-attr]

    def run(self) -> None:
        self._batch.state[:] = self._engine.get_state().numpy()
        for _ in range(STEPS):
            self._batch.step(nstep=4)


def run() -> list[Row]:
    """Rows of engine.step with every getter, and of env.step, from the same states."""
    env = make_env()
    engine = env._engine
    bare = BareLoop(engine)  # type: ignore[arg-type]
    action = torch.zeros(NUM_ENVS, env.action_space.shape[0])

    def engine_steps() -> None:
        for _ in range(STEPS):
            engine.step()
            for name in GETTERS:
                getattr(engine, f"get_{name}")(0)

    def env_steps() -> None:
        env.reset()
        for _ in range(STEPS):
            done = env.step(action)[2]
            ids = torch.nonzero(done != DoneFlags.NULL).squeeze(-1)
            env.reset(ids)

    def bare_steps() -> None:
        bare.run()

    def settle_and_engine() -> None:
        env.reset()
        engine_steps()

    def settle_and_bare() -> None:
        env.reset()
        bare_steps()

    spent = in_turns({"bare": settle_and_bare, "engine": settle_and_engine, "env": env_steps}, rounds=7)
    rate = {name: f"{NUM_ENVS * STEPS / seconds:,.0f} steps/s" for name, seconds in spent.items()}
    return [
        at_least("engine.step with all getters", measured=rate["engine"], baseline=f"bare Batch {rate['bare']}",
                 ratio=spent["bare"] / spent["engine"], bound=0.8),
        at_least("env.step: observation, reward, done, resets", measured=rate["env"],
                 baseline=f"bare Batch {rate['bare']}", ratio=spent["bare"] / spent["env"], bound=0.5),
    ]  # fmt: skip


if __name__ == "__main__":
    from tests.benchmarks.timing import table

    torch.set_num_threads(1)
    print(table(run()))
