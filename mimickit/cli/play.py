"""Plays environments in which actions mean nothing, such as a clip on its character: no policy is needed."""

from typing import Any

import numpy as np
import torch

from mimickit.envs.base_env import BaseEnv, EnvMode
from mimickit.learning.episodes import EpisodeTracker
from mimickit.learning.observer import NoObserver, Observer
from mimickit.media.types import MEDIA_KEY


def has_free_action(env: BaseEnv) -> bool:
    """Whether there is anything for a policy to decide: some action with a range."""
    return bool(np.any(env.action_space.low < env.action_space.high))


def play(env: BaseEnv, num_episodes: int, observer: Observer | None = None) -> dict[str, Any]:
    """Run whole episodes in TEST mode with actions of zero, the same number in every environment.

    Args:
        num_episodes: rounded up to a multiple of the number of environments. observer: told of it as of a test.

    Returns:
        mean_return, mean_ep_len (steps), num_eps, falls, what the environment measured, and episode_media.
    """
    tracker = EpisodeTracker(env.num_envs, env.device, quota=-(-num_episodes // env.num_envs))
    action = torch.zeros(env.num_envs, *env.action_space.shape, device=env.device)
    observer = observer or NoObserver()
    observer.on_test_start()
    env.set_mode(EnvMode.TEST)
    try:
        env.reset()
        while not tracker.complete:
            _, reward, done, _ = env.step(action)
            ended = tracker.step(reward, done)
            if len(ended) and not tracker.complete:
                env.reset(ended)
        figures = env.record_diagnostics()
    finally:
        env.set_mode(EnvMode.TRAIN)
    result = {
        "mean_return": tracker.mean_return,
        "mean_ep_len": tracker.mean_length,
        "num_eps": tracker.num_episodes,
        "falls": tracker.falls,
        **figures,
        MEDIA_KEY: env.pop_media(),
    }
    observer.on_test_end(result)
    return result
