"""Behavioural cloning and GAIL with the imitation library on the shipped walk, filmed during and after training.

In an environment of its own (pip install -r requirements-imitation.txt), from the checkout:

    python tests/interop/imitation_bc_gail.py --out_dir output/imitation
"""

import argparse
from pathlib import Path

import numpy as np
from imitation.algorithms import bc
from imitation.algorithms.adversarial.gail import GAIL
from imitation.data import rollout
from imitation.data.types import TrajectoryWithRew
from imitation.rewards.reward_nets import BasicRewardNet
from imitation.util import logger as imitation_logger
from imitation.util.networks import RunningNorm
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecMonitor

from mimickit import load_agent, make_env, record_and_save_video
from mimickit.interop.sb3 import AgentPolicy, SB3VecEnv

MODEL = "data/models/humanoid_walk"
FILM = {"width": 320, "height": 180, "ghost": "beside"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out_dir", type=Path, default=Path("output/imitation"))
    parser.add_argument("--num_envs", type=int, default=8)
    parser.add_argument("--bc_epochs", type=int, default=40)
    parser.add_argument("--gail_steps", type=int, default=16384)
    args = parser.parse_args()
    venv = VecMonitor(SB3VecEnv(make_env(MODEL, num_envs=args.num_envs)))
    demonstrations = collect(venv, episodes=2 * args.num_envs)
    clone(venv, demonstrations, args.out_dir / "bc", args.bc_epochs)
    adversarial(venv, demonstrations, args.out_dir / "gail", args.gail_steps)
    venv.close()


def collect(venv: VecMonitor, episodes: int) -> list[TrajectoryWithRew]:
    """Rollouts of the shipped policy."""
    expert = AgentPolicy(load_agent(MODEL, venv.unwrapped.env))
    found = rollout.rollout(
        lambda obs, states, starts: expert.predict(obs),
        venv,
        rollout.make_sample_until(min_episodes=episodes),
        rng=np.random.default_rng(0),
        unwrap=False,
    )
    lengths, returns = [len(t) for t in found], [t.rews.sum() for t in found]
    print(f"expert: {len(found)} episodes, mean length {np.mean(lengths):.0f}, mean return {np.mean(returns):.1f}")
    return found


def clone(venv: VecMonitor, demonstrations: list[TrajectoryWithRew], folder: Path, epochs: int) -> None:
    logger = imitation_logger.configure(folder, ["tensorboard", "json"])
    trainer = bc.BC(
        observation_space=venv.observation_space,
        action_space=venv.action_space,
        demonstrations=rollout.flatten_trajectories(demonstrations),
        rng=np.random.default_rng(0),
        custom_logger=logger,
    )

    done = 0

    def film() -> None:
        nonlocal done
        done += 1
        if done % max(1, epochs // 2) == 0:
            clip = record_and_save_video(folder / "videos", trainer.policy, venv, {**FILM, "step": done}, logger)
            print(f"BC, epoch {done}: {clip.path}, {clip.episodes[0].length} steps, return {clip.mean_return:.1f}")

    print(f"BC, untrained: return {evaluate_policy(trainer.policy, venv, 8)[0]:.1f}")
    trainer.train(n_epochs=epochs, on_epoch_end=film, progress_bar=False, log_interval=10**9)
    print(f"BC, {epochs} epochs: return {evaluate_policy(trainer.policy, venv, 8)[0]:.1f}")
    clip = record_and_save_video(folder / "videos", trainer.policy, venv, {**FILM, "name": "final"}, logger)
    print(f"BC, final: {clip.path}, return {clip.mean_return:.1f}")


def adversarial(venv: VecMonitor, demonstrations: list[TrajectoryWithRew], folder: Path, steps: int) -> None:
    logger = imitation_logger.configure(folder, ["tensorboard", "json"])
    learner = PPO(
        "MlpPolicy", venv, n_steps=256, batch_size=256, n_epochs=4, learning_rate=3e-4, gamma=0.95, seed=0,
        policy_kwargs={"log_std_init": -2.0, "net_arch": [128, 128]}, device="cpu",
    )  # fmt: skip
    trainer = GAIL(
        demonstrations=demonstrations,
        demo_batch_size=512,
        n_disc_updates_per_round=4,
        venv=venv,
        gen_algo=learner,
        reward_net=BasicRewardNet(venv.observation_space, venv.action_space, normalize_input_layer=RunningNorm),
        allow_variable_horizon=True,
        custom_logger=logger,
    )
    # the environment that is being trained in, with all of imitation's wrappers
    training_env = learner.get_env()
    rounds = steps // (256 * venv.num_envs)

    def film(number: int) -> None:
        if (number + 1) % max(1, rounds // 2) == 0:
            clip = record_and_save_video(folder / "videos", learner, training_env, FILM, logger)
            print(f"GAIL, round {number}: {clip.path}, {clip.episodes[0].length} steps, return {clip.mean_return:.1f}")

    print(f"GAIL, untrained: return {evaluate_policy(learner, venv, 8)[0]:.1f}")
    trainer.train(steps, callback=film)
    print(f"GAIL, {learner.num_timesteps} steps: return {evaluate_policy(learner, venv, 8)[0]:.1f}")
    clip = record_and_save_video(folder / "videos", learner, venv, {**FILM, "name": "final"}, logger)
    print(f"GAIL, final: {clip.path}, return {clip.mean_return:.1f}")


if __name__ == "__main__":
    main()
