"""TD(lambda) returns."""

import torch
from torch import Tensor


def td_lambda_returns(
    reward: Tensor, next_value: Tensor, ended: Tensor, *, discount: float, td_lambda: float
) -> Tensor:
    """Returns of a rollout (Sutton and Barto 2018, eq. 12.18), bootstrapped at every environment's last step.

        R_t = r_t + discount * ((1 - lambda) * V_t + lambda * R_t+1);  R_t = r_t + discount * V_t where an episode ends

    Args:
        reward: (T, N). next_value: (T, N), V_t: the value of the state that step t ended in, before any reset: the
            critic's where the episode goes on or ran out of time, what failure or success is worth where it ended so.
        ended: (T, N) bool, whether an episode ended with this step, in whichever way.
        discount: gamma. td_lambda: 0 is one-step, 1 Monte Carlo.

    Returns:
        (T, N).
    """
    returns = reward + discount * next_value
    carry = torch.where(ended, 0.0, discount * td_lambda)
    for t in range(reward.shape[0] - 2, -1, -1):
        # the same, rearranged: R_t = r_t + discount * V_t + discount * lambda * (R_t+1 - V_t)
        returns[t] += carry[t] * (returns[t + 1] - next_value[t])
    return returns
