"""The policy's diagonal Gaussian."""

import math

import torch
from torch import Tensor

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


def log_prob(action: Tensor, mean: Tensor, log_std: Tensor) -> Tensor:
    """Log density (N,) of actions (N, A) under means (N, A) and log standard deviations (A,) or (N, A)."""
    scaled = (action - mean) * torch.exp(-log_std)
    return noise_log_prob(scaled, log_std)


def noise_log_prob(noise: Tensor, log_std: Tensor) -> Tensor:
    """Log density (N,) of mean + std * noise, with standard normal noise (N, A)."""
    size = noise.shape[-1]
    return (
        -0.5 * noise.square().sum(-1)
        - log_std.expand(noise.shape[-1:] if log_std.dim() == 1 else noise.shape).sum(-1)
        - size * _HALF_LOG_2PI
    )


def entropy(log_std: Tensor, size: int) -> Tensor:
    """Entropy, a scalar (mean over the batch if there is one), of log_std (A,) or (N, A) with A = size [nats]."""
    return log_std.sum(-1).mean() + size * (0.5 + _HALF_LOG_2PI)


def kl_estimate(log_ratio: Tensor) -> Tensor:
    """KL(old || new), a scalar, from log(new / old) (N,) of samples of old: the mean of (r - 1) - log r.

    Unbiased, never negative and of low variance near 0 (J. Schulman, "Approximating KL divergence", 2020).
    """
    return (torch.expm1(log_ratio) - log_ratio).mean()
