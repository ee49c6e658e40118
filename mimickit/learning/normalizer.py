"""Running normalisation of observations, and the fixed one of actions."""

from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

_MIN_STD = 1e-4  # below this a feature counts as constant and is only centred
_OUTLIER = 100.0  # standard deviations: what lies farther out is counted as if it lay there
_OUTLIER_MIN_STD, _OUTLIER_MIN_COUNT = 0.01, 256
_DIVERGED = 1e8  # no quantity of a sound simulation is greater


class Normalizer(nn.Module):
    """Mean and standard deviation of vectors, gathered over many batches (Chan et al. 1983) in double precision.

    record() gathers, update() makes the gathered statistics those in force, so that they hold still in between. Rows
    that are not finite are left out, and outliers are pulled in, so that a diverged simulation leaves no trace.
    """

    mean: Tensor
    std: Tensor
    _count: Tensor
    _mean64: Tensor
    _var64: Tensor

    def __init__(self, size: int, *, clip: float = 10.0) -> None:
        """Begin with mean 0 and deviation 1 of vectors of a size; normalised values are limited to +- clip."""
        super().__init__()
        self.clip = clip
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("std", torch.ones(size))
        self.register_buffer("_count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("_mean64", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("_var64", torch.zeros(size, dtype=torch.float64))
        self._inv_std = torch.ones(size)
        self._refresh_limits()

    @property
    def count(self) -> int:
        """Vectors counted so far."""
        return int(self._count)

    def normalize(self, values: Tensor, out: Tensor | None = None) -> Tensor:
        """(values - mean) / std, limited to +- clip; values (..., size); what is not a number becomes 0.

        Args:
            out: where the result is written; a new tensor if None.
        """
        result = torch.sub(values, self.mean, out=out)
        result.mul_(self._inv_std).clamp_(-self.clip, self.clip)
        return result.nan_to_num_(nan=0.0)

    def denormalize(self, values: Tensor) -> Tensor:
        """values * std + mean."""
        return values * self.std + self.mean

    def record(self, values: Tensor) -> None:
        """Count those of the vectors (N, size) that are finite."""
        if values.numel() and not float(values.abs().max()) <= _DIVERGED:  # so is NaN
            values = values[(values.abs() <= _DIVERGED).all(-1)]
        count = values.shape[0]
        if count == 0:
            return
        # sums of distances to a point near the mean: as fast as can be, and exact enough in single precision
        shift = self.mean if self.count else values.mean(0)
        distance = values - shift
        if self.count >= _OUTLIER_MIN_COUNT:
            distance = distance.clamp_(-self._reach, self._reach)
        mean = distance.mean(0).double()
        var = distance.square_().mean(0).double() - mean.square()
        self._merge(count, shift.double() + mean, var.clamp_min(0.0))

    def _merge(self, count: int, mean: Tensor, var: Tensor) -> None:
        total = self._count + count
        delta, share = mean - self._mean64, count / total
        self._var64 += share * (var - self._var64) + share * (1.0 - share) * delta.square()
        self._mean64 += share * delta
        self._count.copy_(total)

    def update(self) -> None:
        """Make what was recorded the mean and deviation in force."""
        if self.count:
            std = self._var64.sqrt()
            self.mean.copy_(self._mean64)
            self.std.copy_(torch.where(std < _MIN_STD, 1.0, std))
            self._refresh_limits()

    def _refresh_limits(self) -> None:
        self._inv_std = 1.0 / self.std
        self._reach = _OUTLIER * self._var64.sqrt().clamp_min(_OUTLIER_MIN_STD).to(self.std.dtype)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._refresh_limits()


def action_normalizer(space: gymnasium.spaces.Box, clip: float = float("inf")) -> Normalizer:
    """The fixed normaliser of actions: the middle of the bounds becomes 0, the bounds -1 and 1.

    An action without finite bounds keeps its unit (mean 0, std 1); one without a range has std 1.
    """
    low, high = (
        np.asarray(space.low, dtype=np.float64).ravel(),
        np.asarray(space.high, dtype=np.float64).ravel(),
    )
    bounded = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
    half = 0.5 * (high - low)
    normalizer = Normalizer(low.size, clip=clip)
    normalizer.mean.copy_(torch.from_numpy(0.5 * (high + low)))
    normalizer.std.copy_(torch.from_numpy(np.where(half > 0.0, half, 1.0)))
    normalizer._refresh_limits()
    return normalizer
