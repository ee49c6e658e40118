"""One network's optimiser: clips, and never takes a step that is not finite."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mimickit.learning.agent_config import OptimizerConfig, OptimizerType


class Optimizer:
    """Adam, AdamW or SGD over the parameters of one network."""

    def __init__(self, params: Iterable[nn.Parameter], config: OptimizerConfig) -> None:
        self._params = list(params)
        self._clip = config.grad_clip or float("inf")
        common: dict[str, Any] = {"lr": config.learning_rate, "weight_decay": config.weight_decay}
        self._optimizer: torch.optim.Optimizer
        if config.type is OptimizerType.SGD:
            self._optimizer = torch.optim.SGD(self._params, momentum=0.9, foreach=True, **common)
        else:
            kind = torch.optim.AdamW if config.type is OptimizerType.ADAMW else torch.optim.Adam
            self._optimizer = kind(self._params, fused=True, **common)
        self.skipped = 0  # steps not taken because the gradient was not finite

    @property
    def learning_rate(self) -> float:
        """The step size in force."""
        return float(self._optimizer.param_groups[0]["lr"])

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        for group in self._optimizer.param_groups:
            group["lr"] = value

    def step(self, loss: Tensor) -> None:
        """Move the parameters against the gradient of a scalar loss."""
        for param in self._params:
            param.grad = None
        loss.backward()
        grads = [param.grad for param in self._params if param.grad is not None]
        norm = float(torch.nn.utils.get_total_norm(grads, foreach=True))
        if not math.isfinite(norm):
            self.skipped += 1
            return
        if norm > self._clip:
            torch._foreach_mul_(grads, self._clip / norm)
        self._optimizer.step()

    def state_dict(self) -> dict[str, Any]:
        """Moments and step size."""
        return self._optimizer.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up the state of state_dict()."""
        self._optimizer.load_state_dict(dict(state))
