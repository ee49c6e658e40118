"""TD(lambda) returns against the textbook's sums."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mimickit.learning.returns import td_lambda_returns


def _reference(reward: Tensor, next_value: Tensor, ended: Tensor, discount: float, td_lambda: float) -> Tensor:
    """The lambda-return of every step as the weighted mean of its n-step returns, one number at a time."""
    steps, envs = reward.shape
    result = torch.zeros(steps, envs, dtype=torch.float64)
    for env in range(envs):
        for start in range(steps):
            last = start
            while last < steps - 1 and not ended[last, env]:
                last += 1
            total, rewards = 0.0, 0.0
            for step in range(start, last + 1):
                n = step - start + 1
                rewards += discount ** (n - 1) * float(reward[step, env])
                n_step = rewards + discount**n * float(next_value[step, env])
                weight = td_lambda ** (n - 1) * (1.0 if step == last else 1.0 - td_lambda)
                total += weight * n_step
            result[start, env] = total
    return result


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    steps=st.integers(1, 9),
    discount=st.floats(0.0, 1.0),
    td_lambda=st.floats(0.0, 1.0),
    end_share=st.sampled_from([0.0, 0.2, 1.0]),
)
def test_matches_the_weighted_sum_of_n_step_returns(
    seed: int, steps: int, discount: float, td_lambda: float, end_share: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    reward = torch.randn(steps, 3, generator=generator, dtype=torch.float64)
    next_value = torch.randn(steps, 3, generator=generator, dtype=torch.float64)
    ended = torch.rand(steps, 3, generator=generator) < end_share
    found = td_lambda_returns(reward, next_value, ended, discount=discount, td_lambda=td_lambda)
    torch.testing.assert_close(found, _reference(reward, next_value, ended, discount, td_lambda))


def test_an_end_cuts_what_comes_after() -> None:
    reward = torch.tensor([[1.0], [1.0], [100.0]])
    next_value = torch.tensor([[7.0], [0.0], [50.0]])
    ended = torch.tensor([[False], [True], [False]])
    found = td_lambda_returns(reward, next_value, ended, discount=0.5, td_lambda=1.0)
    assert found.flatten().tolist() == pytest.approx([1.5, 1.0, 125.0])
