"""What an agent sees of an environment. Nothing here knows of physics, characters or filming."""

import abc
import enum
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from mimickit.media.types import Media


class EnvMode(enum.Enum):
    """What the environment is being used for."""

    TRAIN = "train"
    TEST = "test"


class DoneFlags(enum.IntEnum):
    """How a step left its episode."""

    NULL = 0  # goes on
    FAIL = 1  # fell, strayed from the reference, or its simulation diverged
    SUCC = 2  # reached its goal
    TIME = 3  # ran out of time, or reached the end of its clip


# as results, episodes and side files of clips word them
OUTCOMES = {DoneFlags.FAIL: "fail", DoneFlags.SUCC: "success", DoneFlags.TIME: "time"}


class BaseEnv(abc.ABC):
    """num_envs environments stepped together; all tensors are on ``device`` with the environments first.

    step() returns the observation of the state that the step ended in, also where the episode is done; the caller then
    resets the environments that are done.
    """

    def __init__(self, *, num_envs: int, device: str = "cpu", seed: int = 0) -> None:
        self.num_envs = num_envs
        self.device = device
        self.mode = EnvMode.TRAIN
        self.training_samples = 0
        self.training_ended = False
        self._generator = torch.Generator().manual_seed(seed)

    obs_space: gymnasium.spaces.Box  # of one environment, float32
    action_space: gymnasium.spaces.Box  # of one environment, float32
    max_episode_steps: int  # length of an episode that nothing ends early
    reward_bound: float = 1.0  # greatest reward of a step
    control_freq: float = 30.0  # Hz, steps

    @abc.abstractmethod
    def reset(self, env_ids: Tensor | None = None) -> Tensor:
        """Begin new episodes in env_ids (all if None); returns the observations of all environments (num_envs, O)."""

    @abc.abstractmethod
    def step(self, action: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        """Advance by one control step.

        Args:
            action: (num_envs, A), in action_space.

        Returns:
            obs (num_envs, O); reward (num_envs,); done (num_envs,) int64 of DoneFlags; info, tensors (num_envs, ...).
        """

    def seed(self, seed: int) -> None:
        """Begin everything random in the environment anew."""
        self._generator.manual_seed(seed)

    def render(self, env_ids: Sequence[int] | None = None) -> list[np.ndarray]:
        """Pictures (height, width, 3) uint8 RGB of the present state of env_ids (all if None).

        Raises:
            NotImplementedError: an environment without anything to see.
        """
        raise NotImplementedError(f"{type(self).__name__} has no pictures")

    def set_mode(self, mode: EnvMode) -> None:
        """Enter or leave a phase; the caller resets all environments afterwards."""
        self.mode = mode

    def set_training_progress(self, samples: int) -> None:
        """Tell how many samples training has taken so far."""
        self.training_samples = samples

    def set_training_ended(self, ended: bool) -> None:
        """Tell whether training has taken its last samples: a test that follows is the last."""
        self.training_ended = ended

    def record_diagnostics(self) -> dict[str, float]:
        """Means of what the environment measured since the mode was set; units are in the names."""
        return {}

    def episode_facts(self, env_id: int) -> dict[str, Any]:
        """What there is to say of the episode under way in an environment: motion (the clip that is imitated), ..."""
        return {}

    def film_with(self, **options: Any) -> bool:
        """Film the tests to come with these fields of VideoConfig; returns False where nothing is filmed at all."""
        return False

    def pop_media(self, *, wait: bool = False) -> dict[str, list[Media]]:
        """Media that have become ready since the last call, by name; wait: those in the making too."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on from here as if nothing had been interrupted."""
        return {"generator": self._generator.get_state(), "training_samples": self.training_samples}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up the state of state_dict()."""
        self._generator.set_state(state["generator"])
        self.training_samples = int(state["training_samples"])

    def close(self) -> None:
        """Free what the environment holds; may be called twice."""
