"""Proximal policy optimisation as DeepMimic uses it (Schulman et al. 2017; Peng et al. 2018)."""

import concurrent.futures
import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from mimickit.envs.base_env import DoneFlags
from mimickit.learning import distribution
from mimickit.learning.agent_config import AgentConfig, OptimizerConfig, StdType, ranged
from mimickit.learning.base_agent import LOG, BaseAgent
from mimickit.learning.experience_buffer import ExperienceBuffer, Gather, minibatches
from mimickit.learning.normalizer import action_normalizer
from mimickit.learning.optimizer import Optimizer
from mimickit.learning.ppo_model import PPOModel
from mimickit.learning.returns import td_lambda_returns

_MAX_LOG_RATIO = 20.0  # keeps exp() finite; far beyond where clipping has cut the gradient off


@dataclass(frozen=True)
class PPOConfig(AgentConfig):
    """The keys of a PPO agent's YAML."""

    actor_optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=2e-5))
    """The policy's optimiser."""
    critic_optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    """The value function's optimiser."""
    actor_epochs: int = ranged(5, 1)
    """Passes over an iteration's samples by the policy."""
    actor_batch_size: float = ranged(4.0, 1e-6)
    """The policy's minibatch per environment: times num_envs samples."""
    critic_epochs: int = ranged(2, 1)
    """Passes over an iteration's samples by the value function."""
    critic_batch_size: float = ranged(2.0, 1e-6)
    """The value function's minibatch per environment: times num_envs samples."""
    minibatch_size: int | None = ranged(None, 1)
    """Samples of a minibatch whatever the number of environments; goes before the two sizes per environment."""
    td_lambda: float = ranged(0.95, 0.0, 1.0)
    """Mixes one-step (0) and whole-episode (1) returns."""
    ppo_clip_ratio: float = ranged(0.2, 0.0)
    """How far the probability ratio counts."""
    norm_adv_clip: float = ranged(4.0, 0.0)
    """Normalised advantages are clipped to +- this."""
    action_bound_weight: float = ranged(10.0, 0.0)
    """Weight of the squared distance of mean actions to their bounds."""
    action_entropy_weight: float = ranged(0.0, 0.0)
    """Weight of the policy's entropy."""
    action_reg_weight: float = ranged(0.0, 0.0)
    """Weight of the squared mean actions."""
    kl_target: float | None = ranged(None, 0.0)
    """Adapt the policy's learning rate so that an iteration moves the policy by this KL divergence; none: constant."""
    kl_learning_rate_max: float = ranged(1e-3, 0.0)
    """Greatest learning rate that kl_target may choose."""
    kl_learning_rate_min: float = ranged(1e-5, 0.0)
    """Least learning rate that kl_target may choose."""
    weight_average: float = ranged(0.0, 0.0, 0.9999)
    """Test and save the policy with its weights averaged over the iterations, each counting this much less than the
    next; 0: as they are. It steadies the mean action late in training (Polyak and Juditsky 1992)."""
    fail_value: float = 0.0
    """What the state in which an episode failed is worth."""
    succ_value: float | None = None
    """What the state in which an episode succeeded is worth; none: the best reward for ever, bound / (1 - discount).
    A clip that is played to its end is a success: 0 counts the rewards up to it and nothing beyond."""
    parallel_update: bool = True
    """Update policy and value function, which share nothing, in two threads (CPU only); the result is the same."""


class PPOAgent(BaseAgent):
    """PPO with a separate critic, TD(lambda) returns and normalised advantages."""

    CONFIG: ClassVar[type[AgentConfig]] = PPOConfig
    _config: PPOConfig
    _model: PPOModel

    def __init__(self, config: Mapping[str, Any], env: Any, **options: Any) -> None:
        """As BaseAgent."""
        super().__init__(config, env, **options)
        cfg, model = self._config, self._model
        self._actor_optimizer = Optimizer(model.actor_parameters(), cfg.actor_optimizer)
        self._critic_optimizer = Optimizer(model.critic.parameters(), cfg.critic_optimizer)
        self._average: AveragedModel | None = None
        if cfg.weight_average:
            self._average = AveragedModel(model.actor, multi_avg_fn=get_ema_multi_avg_fn(cfg.weight_average))
        self._buffer = self._build_buffer()
        self._terminal: list[tuple[int, Tensor, Tensor]] = []  # step, ids (n,), normalised last obs (n, O) on time-outs
        self._executor: concurrent.futures.ThreadPoolExecutor | None = None

    def _build_model(self) -> PPOModel:
        env, cfg = self._env, self._config
        return PPOModel(cfg.model, env.obs_space, env.action_space, obs_clip=cfg.obs_clip, source=self._source)

    def _build_buffer(self) -> ExperienceBuffer:
        buffer = ExperienceBuffer(self._config.steps_per_iter, self._env.num_envs, self._device)
        buffer.add("obs", (self._model.obs_norm.mean.numel(),))
        buffer.add("action", (self._model.action_norm.mean.numel(),))
        buffer.add("log_prob")
        buffer.add("reward")
        buffer.add("done", dtype=torch.int64)
        return buffer

    def _act(self, obs: Tensor) -> Tensor:
        return self._model.act(obs)

    def _check_loaded(self, path: str | Path) -> None:
        own, loaded = action_normalizer(self._env.action_space), self._model.action_norm
        if not (torch.allclose(own.mean, loaded.mean.cpu()) and torch.allclose(own.std, loaded.std.cpu())):
            LOG.warning("%s: the model was trained with other bounds of its actions than this environment has", path)

    # ------------------------------------------------------------------ collecting

    @torch.no_grad()
    def _collect(self, obs: Tensor) -> Tensor:
        self._set_action_std()
        model, record = self._model, self.samples < self._config.normalizer_samples
        self._terminal.clear()
        if record and model.obs_norm.count == 0:  # better than none for the first iteration
            model.obs_norm.record(obs)
            model.obs_norm.update()
        for step in range(self._buffer.length):
            obs_norm = self._observe(obs, step)
            if record:
                model.obs_norm.record(obs)
            action = self._sample_action(obs_norm, step)
            obs, reward, done, _ = self._env.step(model.action_norm.denormalize(action))
            reward = self._shape_reward(reward, step)
            self._buffer["done"][step] = done
            ended = self._episodes.step(reward, done)
            if len(ended):
                self._keep_terminal(obs, done, step)
                obs = self._env.reset(ended)
        return obs

    def _observe(self, obs: Tensor, step: int) -> Tensor:
        return self._model.obs_norm.normalize(obs, out=self._buffer["obs"][step])

    def _shape_reward(self, reward: Tensor, step: int) -> Tensor:
        return torch.nan_to_num(reward, 0.0, 0.0, 0.0, out=self._buffer["reward"][step])

    def _sample_action(self, obs_norm: Tensor, step: int) -> Tensor:
        mean, log_std = self._model.policy(obs_norm)
        noise = torch.randn(mean.shape, generator=self._generator, device=self._device)
        self._buffer["log_prob"][step] = distribution.noise_log_prob(noise, log_std)
        return torch.addcmul(mean, noise, torch.exp(log_std), out=self._buffer["action"][step])

    def _keep_terminal(self, obs: Tensor, done: Tensor, step: int) -> None:
        ids = torch.nonzero(done == DoneFlags.TIME).squeeze(-1)
        if len(ids):
            self._terminal.append((step, ids, self._model.obs_norm.normalize(obs[ids])))

    def _set_action_std(self) -> None:
        cfg = self._config.model
        if cfg.actor_std_type is StdType.FIXED and cfg.action_std_final is not None:
            share = min(1.0, self.samples / cfg.action_std_anneal_samples)
            self._model.set_action_std(cfg.action_std + share * (cfg.action_std_final - cfg.action_std))

    # ------------------------------------------------------------------ improving

    def _update(self, last_obs: Tensor) -> dict[str, float]:
        cfg, buffer = self._config, self._buffer
        returns, advantages, figures = self._compute_targets(last_obs)
        targets, num, envs = returns.flatten(), buffer.num_samples, buffer.num_envs
        actor_size = cfg.minibatch_size or cfg.actor_batch_size * envs
        critic_size = cfg.minibatch_size or cfg.critic_batch_size * envs
        actor_batches = minibatches(num, actor_size, cfg.actor_epochs, self._generator)
        critic_batches = minibatches(num, critic_size, cfg.critic_epochs, self._generator)
        if cfg.parallel_update and self._device == "cpu":
            critic_job = self._worker().submit(self._update_critic, critic_batches, targets)
            try:
                figures |= self._update_actor(actor_batches, advantages.flatten())
            finally:
                figures |= critic_job.result()
        else:
            figures |= self._update_actor(actor_batches, advantages.flatten())
            figures |= self._update_critic(critic_batches, targets)
        self._model.obs_norm.update()
        if self._average is not None:
            self._average.update_parameters(self._model.actor)
        return figures

    @contextlib.contextmanager
    def _published(self) -> Iterator[None]:
        if self._average is None or not self._average.n_averaged:
            yield
            return
        model, actor = self._model, self._model.actor
        model.actor = cast(nn.Sequential, self._average.module)
        try:
            yield
        finally:
            model.actor = actor

    def _worker(self) -> concurrent.futures.ThreadPoolExecutor:
        if self._executor is None:
            # torch counts threads per thread: the worker takes no more than the main one
            self._executor = concurrent.futures.ThreadPoolExecutor(
                1, "critic", initializer=torch.set_num_threads, initargs=(torch.get_num_threads(),)
            )
        return self._executor

    @torch.no_grad()
    def _compute_targets(self, last_obs: Tensor) -> tuple[Tensor, Tensor, dict[str, float]]:
        """TD(lambda) returns and normalised advantages, both (T, N), and figures about them."""
        cfg, buffer, model = self._config, self._buffer, self._model
        value = model.value(buffer.flat("obs")).view(buffer.length, buffer.num_envs)
        last = model.value(model.obs_norm.normalize(last_obs))
        next_value = torch.cat([value[1:], last.unsqueeze(0)])
        done = buffer["done"]
        next_value[done == DoneFlags.FAIL] = cfg.fail_value
        next_value[done == DoneFlags.SUCC] = self._succ_value()
        for step, ids, obs_norm in self._terminal:
            next_value[step, ids] = model.value(obs_norm)
        returns = td_lambda_returns(
            buffer["reward"],
            next_value,
            done != DoneFlags.NULL,
            discount=cfg.discount,
            td_lambda=cfg.td_lambda,
        )
        advantage = returns - value
        std, mean = torch.std_mean(advantage)
        explained = 1.0 - float(advantage.var() / returns.var().clamp_min(1e-8))
        advantage = torch.clamp((advantage - mean) / (std + 1e-5), -cfg.norm_adv_clip, cfg.norm_adv_clip)
        figures = {
            "value_mean": float(value.mean()),
            "advantage_std": float(std),
            "explained_variance": explained,
        }
        return returns, advantage, figures

    def _succ_value(self) -> float:
        cfg = self._config
        if cfg.succ_value is not None:
            return cfg.succ_value
        return self._env.reward_bound / max(1.0 - cfg.discount, 1e-6)

    def _update_critic(self, batches: list[Tensor], targets: Tensor) -> dict[str, float]:
        gather, total = Gather(self._buffer.flat("obs"), targets), 0.0
        for batch in batches:
            obs, target = gather(batch)
            loss = (self._model.value(obs) - target).square().mean()
            self._critic_optimizer.step(loss)
            total += loss.item()
        return {"critic_loss": total / len(batches)}

    def _update_actor(self, batches: list[Tensor], advantages: Tensor) -> dict[str, float]:
        gather = Gather(*(self._buffer.flat(name) for name in ("obs", "action", "log_prob")), advantages)
        sums, last_epoch = torch.zeros(3), len(batches) - len(batches) // self._config.actor_epochs
        kl = 0.0
        for number, batch in enumerate(batches):
            loss, figures = self._actor_loss(*gather(batch))
            self._actor_optimizer.step(loss)
            sums += figures
            if number >= last_epoch:
                kl += float(figures[2]) / (len(batches) - last_epoch)
        self._adapt_learning_rate(kl)
        means = (sums / len(batches)).tolist()
        return {
            "actor_loss": means[0], "clip_fraction": means[1], "kl": kl,
            "actor_learning_rate": self._actor_optimizer.learning_rate,
            "action_std": float(self._model.log_std.detach().exp().mean()),
            "skipped_steps": self._actor_optimizer.skipped + self._critic_optimizer.skipped,
        }  # fmt: skip

    def _actor_loss(
        self, obs: Tensor, action: Tensor, old_log_prob: Tensor, advantage: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The loss to minimise on one minibatch, and (loss, clipped share, KL) to log."""
        cfg = self._config
        mean, log_std = self._model.policy(obs)
        log_ratio = distribution.log_prob(action, mean, log_std) - old_log_prob
        ratio = torch.exp(log_ratio.clamp(max=_MAX_LOG_RATIO))
        clipped = torch.clamp(ratio, 1.0 - cfg.ppo_clip_ratio, 1.0 + cfg.ppo_clip_ratio)
        loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()
        if cfg.action_bound_weight > 0.0:
            beyond = mean - torch.clamp(mean.detach(), -1.0, 1.0)
            loss = loss + cfg.action_bound_weight * beyond.square().sum(-1).mean()
        if cfg.action_entropy_weight > 0.0:
            loss = loss - cfg.action_entropy_weight * distribution.entropy(log_std, mean.shape[-1])
        if cfg.action_reg_weight > 0.0:
            loss = loss + cfg.action_reg_weight * mean.square().sum(-1).mean()
        with torch.no_grad():
            share = (ratio != clipped).float().mean()
            return loss, torch.stack([loss, share, distribution.kl_estimate(log_ratio)])

    def _adapt_learning_rate(self, kl: float) -> None:
        cfg = self._config
        if cfg.kl_target is None or not math.isfinite(kl):
            return
        rate = self._actor_optimizer.learning_rate
        if kl > 2.0 * cfg.kl_target:
            rate /= 1.5
        elif kl < 0.5 * cfg.kl_target:
            rate *= 1.5
        self._actor_optimizer.learning_rate = min(max(rate, cfg.kl_learning_rate_min), cfg.kl_learning_rate_max)

    # ------------------------------------------------------------------ resuming

    def _learner_state(self) -> dict[str, Any]:
        state = {
            "actor_optimizer": self._actor_optimizer.state_dict(),
            "critic_optimizer": self._critic_optimizer.state_dict(),
        }
        return state if self._average is None else {**state, "weight_average": self._average.state_dict()}

    def _load_learner_state(self, state: Mapping[str, Any]) -> None:
        self._actor_optimizer.load_state_dict(state["actor_optimizer"])
        self._critic_optimizer.load_state_dict(state["critic_optimizer"])
        if self._average is not None:
            self._average.load_state_dict(state["weight_average"])
