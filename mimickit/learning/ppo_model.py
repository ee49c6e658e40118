"""Policy and value function, with the normalisers that belong to them."""

import math

import gymnasium
import torch
from torch import Tensor, nn

from mimickit.learning.agent_config import ModelConfig, StdType
from mimickit.learning.nets import build_trunk
from mimickit.learning.normalizer import Normalizer, action_normalizer

_LOG_STD_RANGE = (-6.0, 1.0)  # of what a policy network may answer


class PPOModel(nn.Module):
    """An actor, a critic of its own, the observations' running normaliser and the actions' fixed one.

    Observations go in normalised and actions come out normalised; act() does both for whole control steps.
    """

    def __init__(
        self,
        config: ModelConfig,
        obs_space: gymnasium.spaces.Box,
        action_space: gymnasium.spaces.Box,
        *,
        obs_clip: float = 10.0,
        source: str = "agent config",
    ) -> None:
        super().__init__()
        obs_size, action_size = math.prod(obs_space.shape), math.prod(action_space.shape)
        self.std_type = config.actor_std_type
        self.obs_norm = Normalizer(obs_size, clip=obs_clip)
        self.action_norm = action_normalizer(action_space)
        self.actor = self._build_actor(config, obs_size, action_size, source)
        self.critic = self._build_net(config.critic_net, config, obs_size, 1, f"{source}: model.critic_net")
        log_std = torch.full((action_size,), math.log(config.action_std))
        if self.std_type is StdType.CONSTANT:
            self.log_std: Tensor = nn.Parameter(log_std)
        else:
            self.register_buffer("log_std", log_std)

    @staticmethod
    def _build_net(spec: str | list[int], config: ModelConfig, inputs: int, outputs: int, source: str) -> nn.Sequential:
        trunk, features = build_trunk(spec, inputs, config.activation, source)
        head = nn.Linear(features, outputs)
        nn.init.zeros_(head.bias)
        return nn.Sequential(trunk, head)

    def _build_actor(self, config: ModelConfig, obs_size: int, action_size: int, source: str) -> nn.Sequential:
        outputs = 2 * action_size if self.std_type is StdType.VARIABLE else action_size
        actor = self._build_net(config.actor_net, config, obs_size, outputs, f"{source}: model.actor_net")
        scale = config.actor_init_output_scale
        head = actor[-1]
        assert isinstance(head, nn.Linear)
        nn.init.uniform_(head.weight, -scale, scale)
        return actor

    def actor_parameters(self) -> list[nn.Parameter]:
        """What the policy's optimiser moves."""
        params = list(self.actor.parameters())
        return [*params, self.log_std] if isinstance(self.log_std, nn.Parameter) else params

    def policy(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Mean (N, A) and log standard deviation (A,) or (N, A) of normalised actions, of normalised obs (N, O)."""
        out = self.actor(obs)
        if self.std_type is StdType.VARIABLE:
            mean, log_std = out.chunk(2, dim=-1)
            return mean, torch.clamp(log_std + self.log_std, *_LOG_STD_RANGE)
        return out, self.log_std

    def value(self, obs: Tensor) -> Tensor:
        """Values (N,) of normalised obs (N, O)."""
        return self.critic(obs).squeeze(-1)

    def set_action_std(self, std: float) -> None:
        """The standard deviation of a FIXED policy."""
        self.log_std.fill_(math.log(std))

    @torch.no_grad()
    def act(self, obs: Tensor) -> Tensor:
        """The mean actions (N, A) in the environment's units, of its observations (N, O)."""
        return self.action_norm.denormalize(self.policy(self.obs_norm.normalize(obs))[0])
