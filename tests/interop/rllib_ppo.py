"""RLlib's PPO on the walk with two env runners, filmed in training and in evaluation, and once more at the end.

In an environment of its own (pip install -r requirements.txt "ray[rllib]"), from the checkout:

    python tests/interop/rllib_ppo.py --out_dir output/rllib
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import ray
from ray.rllib.algorithms.ppo import PPOConfig

from mimickit import make_env, record_and_save_video
from mimickit.interop import rllib

FILM = {"width": 320, "height": 180, "ghost": "beside"}


def make_config(out_dir: Path, *, as_wandb: bool = False) -> PPOConfig:
    rllib.register()
    return (
        PPOConfig()
        .environment("mimickit", env_config={"env_config": "data/envs/deepmimic_humanoid_walk_env.yaml"})
        .env_runners(num_env_runners=2, num_envs_per_env_runner=4, gym_env_vectorize_mode="vector_entry_point")
        .training(train_batch_size_per_learner=512, minibatch_size=128, num_epochs=2)
        .evaluation(evaluation_interval=1, evaluation_num_env_runners=1, evaluation_duration=4)
        .callbacks(partial(rllib.EpisodeClips, out_dir / "clips", video=FILM, as_wandb=as_wandb))
    )


def train(out_dir: Path, iterations: int) -> list[dict[str, Any]]:
    """The results of so many iterations."""
    algorithm = make_config(out_dir).build_algo()
    results = [algorithm.train() for _ in range(iterations)]
    env = make_env(num_envs=1)
    clip = record_and_save_video(out_dir / "final", rllib.policy_of(algorithm), env, FILM)
    print(f"final: {clip.path}, {clip.num_frames} frames")
    env.close()
    algorithm.stop()
    return results


def tune(out_dir: Path, iterations: int) -> None:
    """The same under Ray Tune, whose W&B logger gets the clips."""
    from ray.air.integrations.wandb import WandbLoggerCallback
    from ray.tune import RunConfig, Tuner

    run = RunConfig(
        storage_path=str((out_dir / "tune").resolve()),
        stop={"training_iteration": iterations},
        callbacks=[WandbLoggerCallback(project="mimickit", dir=str(out_dir.resolve()))],
    )
    Tuner("PPO", param_space=make_config(out_dir, as_wandb=True), run_config=run).fit()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out_dir", type=Path, default=Path("output/rllib"))
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--tune", action="store_true", help="under Ray Tune, logged to W&B")
    args = parser.parse_args()
    ray.init(num_cpus=5, include_dashboard=False)
    if args.tune:
        tune(args.out_dir, args.iterations)
        return
    for number, result in enumerate(train(args.out_dir, args.iterations)):
        print(f"iteration {number}: return {result['env_runners'].get('episode_return_mean')}")
        for phase, part in (("training", result), ("evaluation", result["evaluation"])):
            for name, media in part.get("episode_media", {}).items():
                for item in media:
                    print(f"  {phase}: {name}: {item.path}, {item.num_frames} frames")
    ray.shutdown()


if __name__ == "__main__":
    main()
