"""Networks by name, the Gaussian against torch's own, the optimiser's refusal of steps that are not finite."""

import math

import gymnasium
import numpy as np
import pytest
import torch
from torch import nn

from mimickit.learning import distribution
from mimickit.learning.agent_config import Activation, ModelConfig, OptimizerConfig, OptimizerType, StdType
from mimickit.learning.nets import build_trunk, layer_sizes
from mimickit.learning.optimizer import Optimizer
from mimickit.learning.ppo_model import PPOModel
from mimickit.util.keys import ConfigError


def two_layer_net(input_size: int) -> nn.Module:
    """A user's own network."""
    return nn.Sequential(nn.Linear(input_size, 5), nn.Tanh(), nn.Linear(5, 3))


def nothing() -> nn.Module:
    """Doesn't take the input's size."""
    return nn.Identity()


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("fc_2layers_128units", [128, 64]),
        ("fc_2layers_1024units", [1024, 512]),
        ("fc_3layers_1024units", [1024, 1024, 512]),
        ("fc_1layers_64units", [64]),
        ("mlp", None),
    ],
)
def test_names_of_networks(name: str, sizes: list[int] | None) -> None:
    assert layer_sizes(name) == sizes


def test_a_network_of_ones_own() -> None:
    net, features = build_trunk(f"{__name__}:two_layer_net", 4, Activation.RELU, "agent.yaml")
    assert features == 3
    assert net(torch.zeros(2, 4)).shape == (2, 3)


@pytest.mark.parametrize(
    "spec",
    [
        "fc_two",
        "fc_0layers_8units",
        "no_such_module:net",
        f"{__name__}:no_such",
        f"{__name__}:__name__",
        f"{__name__}:nothing",
        [8, 0],
    ],
)
def test_unknown_networks_are_refused(spec: str | list[int]) -> None:
    with pytest.raises(ConfigError, match=r"agent\.yaml"):
        build_trunk(spec, 4, Activation.RELU, "agent.yaml")


@pytest.mark.parametrize("shape", [(3,), (6, 3)])
def test_gaussian_matches_torch(shape: tuple[int, ...]) -> None:
    mean, action, log_std = torch.randn(6, 3), torch.randn(6, 3), 0.3 * torch.randn(shape)
    normal = torch.distributions.Normal(mean, log_std.exp())
    torch.testing.assert_close(distribution.log_prob(action, mean, log_std), normal.log_prob(action).sum(-1))
    torch.testing.assert_close(distribution.entropy(log_std, 3), normal.entropy().sum(-1).mean())


def test_kl_estimate_is_near_the_true_divergence() -> None:
    generator = torch.Generator().manual_seed(0)
    old, new = torch.zeros(20_000, 2), torch.full((20_000, 2), 0.15)
    log_std = torch.zeros(2)
    action = torch.randn(20_000, 2, generator=generator)
    ratio = distribution.log_prob(action, new, log_std) - distribution.log_prob(action, old, log_std)
    assert distribution.kl_estimate(ratio).item() == pytest.approx(2 * 0.5 * 0.15**2, rel=0.1)


@pytest.mark.parametrize("std_type", list(StdType))
def test_every_kind_of_deviation_begins_at_action_std(std_type: StdType) -> None:
    space = gymnasium.spaces.Box(-1.0, 1.0, (2,), dtype=np.float32)
    obs_space = gymnasium.spaces.Box(-1.0, 1.0, (5,), dtype=np.float32)
    config = ModelConfig(actor_net=[8], critic_net=[8], actor_std_type=std_type, action_std=0.2)
    model = PPOModel(config, obs_space, space)
    mean, log_std = model.policy(torch.zeros(4, 5))
    assert mean.shape == (4, 2)
    torch.testing.assert_close(log_std.exp().expand(4, 2), torch.full((4, 2), 0.2), rtol=0.05, atol=0.0)
    (mean.sum() + log_std.sum()).backward() if log_std.requires_grad else mean.sum().backward()
    learnt = [parameter.grad is not None for parameter in model.actor_parameters()]
    assert all(learnt)
    assert len(learnt) == (5 if std_type is StdType.CONSTANT else 4)


@pytest.mark.parametrize("kind", list(OptimizerType))
def test_a_step_that_is_not_finite_is_not_taken(kind: OptimizerType) -> None:
    parameter = nn.Parameter(torch.ones(3))
    optimizer = Optimizer([parameter], OptimizerConfig(type=kind, learning_rate=0.1))
    optimizer.step((parameter * math.nan).sum())
    assert parameter.tolist() == [1.0, 1.0, 1.0]
    assert optimizer.skipped == 1
    optimizer.step(parameter.sum())
    assert (parameter < 1.0).all()


def test_gradients_are_clipped_as_a_whole() -> None:
    parameter = nn.Parameter(torch.zeros(2))
    config = OptimizerConfig(type=OptimizerType.SGD, learning_rate=1.0, grad_clip=1.0)
    Optimizer([parameter], config).step((parameter * torch.tensor([30.0, 40.0])).sum())
    assert parameter.tolist() == pytest.approx([-0.6, -0.8])
