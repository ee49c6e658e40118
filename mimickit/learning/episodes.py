"""The account of episodes: how long they were, what they returned, how they ended."""

import math
from typing import Any

import torch
from torch import Tensor

from mimickit.envs.base_env import DoneFlags


class EpisodeTracker:
    """Follows the episodes of num_envs environments through steps, and sums up those that ended.

    With a quota, only the first so many episodes of every environment count, so that short ones get no more weight.
    """

    def __init__(self, num_envs: int, device: str = "cpu", *, quota: int | None = None) -> None:
        self._quota = quota
        self._returns = torch.zeros(num_envs, dtype=torch.float64, device=device)
        self._steps = torch.zeros(num_envs, dtype=torch.int64, device=device)
        self._counts = torch.zeros(num_envs, dtype=torch.int64, device=device)
        self.reset_sums()

    def reset_sums(self) -> None:
        """Forget the episodes that have ended; those under way go on."""
        self.num_episodes, self.falls = 0, 0
        self._return_sum, self._step_sum = 0.0, 0

    def restart(self) -> None:
        """All environments begin new episodes."""
        self._returns.zero_()
        self._steps.zero_()

    def step(self, reward: Tensor, done: Tensor) -> Tensor:
        """Take in a step's rewards (N,) and DoneFlags (N,); returns the ids of the environments whose episode ended."""
        self._returns += reward
        self._steps += 1
        ids = torch.nonzero(done != DoneFlags.NULL).squeeze(-1)
        if len(ids):
            counted = ids if self._quota is None else ids[self._counts[ids] < self._quota]
            self.num_episodes += len(counted)
            self.falls += int((done[counted] == DoneFlags.FAIL).sum())
            self._return_sum += float(self._returns[counted].sum())
            self._step_sum += int(self._steps[counted].sum())
            self._counts[counted] += 1
            self._returns[ids] = 0.0
            self._steps[ids] = 0
        return ids

    @property
    def complete(self) -> bool:
        """Whether every environment has played its quota."""
        return self._quota is not None and bool((self._counts >= self._quota).all())

    @property
    def mean_return(self) -> float:
        """Over the episodes that ended; NaN if none has."""
        return self._return_sum / self.num_episodes if self.num_episodes else math.nan

    @property
    def mean_length(self) -> float:
        """Steps, over the episodes that ended; NaN if none has."""
        return self._step_sum / self.num_episodes if self.num_episodes else math.nan

    def facts(self, *, full_return: float) -> dict[str, Any]:
        """What a test's result says of its episodes; full_return is the most that one can return."""
        return {
            "mean_return": self.mean_return,
            "normalised_return": self.mean_return / full_return,
            "mean_ep_len": self.mean_length,
            "num_eps": self.num_episodes,
            "falls": self.falls,
        }

    def state_dict(self) -> dict[str, Any]:
        """The episodes under way."""
        return {"returns": self._returns.clone(), "steps": self._steps.clone()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up the state of state_dict()."""
        self._returns.copy_(state["returns"])
        self._steps.copy_(state["steps"])
