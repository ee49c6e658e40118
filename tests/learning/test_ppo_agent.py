"""PPO on a small real task: it learns, repeats itself, and stays sound when an environment does not."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from mimickit.envs.base_env import DoneFlags, EnvMode
from mimickit.learning.observer import NoObserver
from mimickit.learning.ppo_agent import PPOAgent
from mimickit.loggers.text_logger import TextLogger, read_rows
from tests.learning.conftest import MakeAgent
from tests.learning.point_mass import PointMassEnv

SAMPLES_PER_ITER = 8 * 16


def _weights(agent: PPOAgent) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in agent._model.state_dict().items()}


def _same(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def _train(agent: PPOAgent, iterations: int, out_dir: Path, **options: Any) -> dict[str, Any]:
    logger = TextLogger(out_dir, resume_at=sys.maxsize)
    return agent.train(
        max_samples=iterations * SAMPLES_PER_ITER, out_dir=out_dir, logger=logger, progress=False, **options
    )


def _curve(out_dir: Path) -> list[dict[str, Any]]:
    timing = ("_s", "_per_s")
    return [
        {key: str(value) for key, value in row.items() if not key.endswith(timing)}
        for row in read_rows(out_dir / "log.jsonl")
    ]


def test_learns_to_follow_the_target(make_agent: MakeAgent, tmp_path: Path) -> None:
    agent = make_agent(iters_per_output=1000)
    before = agent.test(64)
    result = _train(agent, 120, tmp_path)
    assert before["normalised_return"] < 0.4
    assert result["normalised_return"] > 0.85
    assert result["falls"] == 0 < before["falls"]
    assert result["samples"] == agent.samples == 120 * SAMPLES_PER_ITER


@pytest.mark.parametrize("std_type", ["CONSTANT", "VARIABLE"])
def test_learns_with_a_learnt_deviation(std_type: str, make_agent: MakeAgent, tmp_path: Path) -> None:
    model = {"actor_net": [32, 16], "critic_net": [32, 16], "action_std": 0.2, "actor_std_type": std_type}
    agent = make_agent(model=model, iters_per_output=1000, action_entropy_weight=1e-4)
    before = agent.test(32)["normalised_return"]
    assert _train(agent, 120, tmp_path)["normalised_return"] > before + 0.4


def test_a_seed_gives_the_same_curve_again_and_another_seed_another(make_agent: MakeAgent, tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        _train(make_agent(seed=seed), 5, tmp_path / name)
    assert len(_curve(tmp_path / "a")) == 5
    assert _curve(tmp_path / "a") == _curve(tmp_path / "b")
    assert _curve(tmp_path / "a") != _curve(tmp_path / "c")


def test_two_threads_compute_what_one_does(make_agent: MakeAgent, tmp_path: Path) -> None:
    both = []
    for parallel in (True, False):
        agent = make_agent(parallel_update=parallel)
        _train(agent, 4, tmp_path / str(parallel))
        both.append(_weights(agent))
    assert _same(*both)


@pytest.mark.parametrize("iters_per_output", [1, 2, 100])
def test_resumed_training_goes_on_as_if_never_stopped(
    iters_per_output: int, make_agent: MakeAgent, tmp_path: Path
) -> None:
    overrides: dict[str, Any] = {
        "iters_per_output": iters_per_output,
        "model": {
            "actor_net": [16], "critic_net": [16], "action_std": 0.2, "action_std_final": 0.1,
            "action_std_anneal_samples": 6 * SAMPLES_PER_ITER,
        },
    }  # fmt: skip
    whole, first, second = (make_agent(**overrides) for _ in range(3))
    _train(whole, 6, tmp_path / "whole")
    _train(first, 3, tmp_path / "parts")
    torch.manual_seed(99)  # whatever a new process has
    result = _train(second, 6, tmp_path / "parts", resume=tmp_path / "parts")
    assert result["samples"] == 6 * SAMPLES_PER_ITER
    assert _same(_weights(whole), _weights(second))
    numbers = [
        {key: value for key, value in row.items() if not key.startswith("test/")} for row in _curve(tmp_path / "parts")
    ]
    assert numbers == [
        {key: value for key, value in row.items() if not key.startswith("test/")} for row in _curve(tmp_path / "whole")
    ]


def test_the_averaged_policy_is_the_one_that_is_tested_and_saved(make_agent: MakeAgent, tmp_path: Path) -> None:
    agent = make_agent(iters_per_output=1, weight_average=0.75)
    expected: dict[str, Tensor] = {}
    for iteration in range(1, 5):
        _train(agent, iteration, tmp_path)
        raw = torch.load(tmp_path / "checkpoint.pt", weights_only=False)["model"]
        kept = torch.load(tmp_path / "model.pt", weights_only=True)["model"]
        for key in raw:
            if key.startswith("actor"):
                expected[key] = 0.75 * expected[key] + 0.25 * raw[key] if iteration > 1 else raw[key]
                torch.testing.assert_close(kept[key], expected[key])
            else:
                assert torch.equal(kept[key], raw[key])
    assert _same(_weights(agent), raw)  # what goes on learning
    loaded = make_agent()
    loaded.load(tmp_path / "model.pt")
    obs = torch.randn(8, agent._env.obs_space.shape[0], generator=torch.Generator().manual_seed(0))
    with agent._published():
        assert torch.equal(agent._act(obs), loaded._act(obs))
    assert not torch.equal(agent._act(obs), loaded._act(obs))


def test_resuming_goes_on_with_the_average(make_agent: MakeAgent, tmp_path: Path) -> None:
    whole, first, second = (make_agent(iters_per_output=3, weight_average=0.9) for _ in range(3))
    _train(whole, 6, tmp_path / "whole")
    _train(first, 3, tmp_path / "parts")
    _train(second, 6, tmp_path / "parts", resume=tmp_path / "parts")
    models = [torch.load(tmp_path / run / "model.pt", weights_only=True)["model"] for run in ("whole", "parts")]
    assert _same(*models)


def test_resume_refuses_another_number_of_environments(make_agent: MakeAgent, tmp_path: Path) -> None:
    agent = make_agent(iters_per_output=100)
    _train(agent, 1, tmp_path)
    other = make_agent(env=PointMassEnv(num_envs=8))
    with pytest.raises(ValueError, match="expected 8 environments, found 16"):
        other.load_checkpoint(tmp_path)
    assert other.samples == 0


# ---------------------------------------------------------------------- tests of the policy


class _UnevenEnv(PointMassEnv):
    """Environment i ends its episodes after i + 1 steps; reward is i."""

    def step(self, action: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        obs, _, _, info = super().step(action)
        index = torch.arange(self.num_envs)
        done = torch.where(self._steps > index, DoneFlags.FAIL, DoneFlags.NULL)
        return obs, index.float(), done, info


@pytest.mark.parametrize(("episodes", "counted"), [(4, 4), (12, 12), (5, 8), (1, 4)])
def test_every_environment_counts_equally(episodes: int, counted: int, make_agent: MakeAgent) -> None:
    result = make_agent(env=_UnevenEnv(num_envs=4)).test(episodes)
    assert result["num_eps"] == result["falls"] == counted
    assert result["mean_ep_len"] == (1 + 2 + 3 + 4) / 4
    assert result["mean_return"] == (0 * 1 + 1 * 2 + 2 * 3 + 3 * 4) / 4
    assert result["normalised_return"] == result["mean_return"] / 40


def test_a_test_uses_mean_actions_and_hands_the_mode_back(make_agent: MakeAgent) -> None:
    env = PointMassEnv(num_envs=4)
    agent = make_agent(env=env)
    state, noise = env.state_dict(), agent._generator.get_state()
    first = agent.test(8)
    assert env.modes == [EnvMode.TEST, EnvMode.TRAIN]
    assert torch.equal(noise, agent._generator.get_state())
    env.load_state_dict(state)
    assert agent.test(8) == first
    assert first["distance_m"] > 0.0
    assert first["episode_media"] == {}


def test_no_episode_is_refused(make_agent: MakeAgent) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        make_agent().test(0)


# ---------------------------------------------------------------------- unsound environments


class _DivergingEnv(PointMassEnv):
    """Now and then an environment blows up: what it observes and rewards is not a number, or infinite, or absurd."""

    bad = (0.0, 0.0, 0.0, 0.0)
    flagged = True

    def step(self, action: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        obs, reward, done, info = super().step(action)
        hit = torch.rand(self.num_envs, generator=self._generator) < 0.01
        kind = torch.tensor(self.bad)[torch.randint(4, (self.num_envs,), generator=self._generator)]
        obs[hit] = kind[hit].unsqueeze(-1)
        done = torch.where(hit & self.flagged, DoneFlags.FAIL, done)
        return obs, torch.where(hit, kind, reward), done, info


class _SpoilingEnv(_DivergingEnv):
    bad = (float("nan"), float("inf"), -float("inf"), float("nan"))


class _SilentlySpoilingEnv(_SpoilingEnv):
    flagged = False


def test_an_episode_that_blows_up_teaches_what_any_failure_does(make_agent: MakeAgent, tmp_path: Path) -> None:
    plain, spoilt = (make_agent(env=env(num_envs=16)) for env in (_DivergingEnv, _SpoilingEnv))
    _train(plain, 6, tmp_path / "plain")
    _train(spoilt, 6, tmp_path / "spoilt")
    assert _same(_weights(plain), _weights(spoilt))
    assert _curve(tmp_path / "plain") == _curve(tmp_path / "spoilt")


def test_values_that_are_not_finite_do_not_stop_learning(make_agent: MakeAgent, tmp_path: Path) -> None:
    agent = make_agent(env=_SilentlySpoilingEnv(num_envs=16), iters_per_output=1000, test_episodes=0)
    _train(agent, 150, tmp_path)
    assert all(bool(torch.isfinite(tensor).all()) for tensor in _weights(agent).values())
    clean = make_agent(env=PointMassEnv(num_envs=16))
    clean._model.load_state_dict(agent._model.state_dict())
    assert clean.test(32)["normalised_return"] > 0.6


class _OneStepEnv(PointMassEnv):
    """Every step ends an episode in the way that the environment's number says."""

    def step(self, action: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        obs, reward, _, info = super().step(action)
        return obs, torch.ones_like(reward), torch.arange(self.num_envs) % 4, info


def test_each_end_is_bootstrapped_in_its_way(make_agent: MakeAgent) -> None:
    agent = make_agent(env=_OneStepEnv(num_envs=4), discount=0.9, fail_value=-2.0, td_lambda=0.95)
    ended: list[Tensor] = []
    step = agent._env.step

    def spy(action: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        answer = step(action)
        ended.append(answer[0].clone())
        return answer

    agent._env.step = spy  # type: ignore[method-assign]
    last = agent._collect(agent._env.reset())
    returns, _, _ = agent._compute_targets(last)
    at_end = torch.stack([agent._model.value(agent._model.obs_norm.normalize(obs)) for obs in ended])
    torch.testing.assert_close(returns[:, DoneFlags.FAIL], torch.full((8,), 1.0 + 0.9 * -2.0))
    torch.testing.assert_close(returns[:, DoneFlags.SUCC], torch.full((8,), 1.0 + 0.9 * 1.0 / (1.0 - 0.9)))
    torch.testing.assert_close(returns[:, DoneFlags.TIME], 1.0 + 0.9 * at_end[:, DoneFlags.TIME])


# ---------------------------------------------------------------------- schedules, files


def test_learning_rate_follows_the_divergence_within_bounds(make_agent: MakeAgent) -> None:
    agent = make_agent(kl_target=0.02, kl_learning_rate_max=2e-3)
    rates = []
    for kl in (0.1, 0.02, 0.001, 0.001, 0.001, float("nan")):
        agent._adapt_learning_rate(kl)
        rates.append(agent._actor_optimizer.learning_rate)
    assert rates == pytest.approx([1e-3 / 1.5, 1e-3 / 1.5, 1e-3, 1.5e-3, 2e-3, 2e-3])


def test_deviation_is_annealed_by_samples(make_agent: MakeAgent, tmp_path: Path) -> None:
    model = {"actor_net": [8], "critic_net": [8], "action_std": 0.2, "action_std_final": 0.1}
    agent = make_agent(model={**model, "action_std_anneal_samples": 2 * SAMPLES_PER_ITER}, test_episodes=0)
    _train(agent, 4, tmp_path)
    found = [float(row["update/action_std"]) for row in _curve(tmp_path)]
    assert found == pytest.approx([0.2, 0.15, 0.1, 0.1])


def test_a_run_folder_holds_models_checkpoint_and_figures(make_agent: MakeAgent, tmp_path: Path) -> None:
    agent = make_agent(iters_per_output=2)
    result = _train(agent, 5, tmp_path, save_int_models=True)
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.pt")}
    models = {f"int_models/model_{count * SAMPLES_PER_ITER:012d}.pt" for count in (2, 4, 5)}
    assert names == {"model.pt", "model_best.pt", "checkpoint.pt", *models}
    rows = read_rows(tmp_path / "log.jsonl")
    assert [row["samples"] for row in rows] == [count * SAMPLES_PER_ITER for count in range(1, 6)]
    assert ["test/mean_return" in row for row in rows] == [False, True, False, True, True]
    assert result["best_return"] == max(row["test/mean_return"] for row in rows if "test/mean_return" in row)
    fresh = make_agent(seed=5)
    fresh.load(tmp_path / "model.pt")
    assert _same(_weights(fresh), _weights(agent))
    assert fresh.samples == agent.samples
    assert _train(fresh, 1, tmp_path / "more")["samples"] == SAMPLES_PER_ITER  # training counts its own


def test_a_full_disk_costs_a_checkpoint_not_the_training(
    make_agent: MakeAgent, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent = make_agent(iters_per_output=2)
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the run folder should be")
    logger = TextLogger(tmp_path / "log")
    with pytest.raises(OSError, match="blocked"):  # only at the very end
        agent.train(max_samples=4 * SAMPLES_PER_ITER, out_dir=blocked, logger=logger, progress=False)
    assert agent.samples == 4 * SAMPLES_PER_ITER
    assert "could not save" in caplog.text


def test_what_was_learnt_is_kept_when_a_callback_fails(make_agent: MakeAgent, tmp_path: Path) -> None:
    class Failing(NoObserver):
        def on_iteration_end(self, result: dict[str, Any]) -> None:
            if result["iteration"] == 2:
                raise ZeroDivisionError("somebody's own")

    agent = make_agent()
    agent.observer = Failing()
    with pytest.raises(ZeroDivisionError, match="somebody's own"):
        _train(agent, 4, tmp_path)
    again = make_agent()
    again.load_checkpoint(tmp_path / "checkpoint.pt")
    assert again.iteration == 2
    assert _same(_weights(again), _weights(agent))


def test_a_model_for_other_action_bounds_is_warned_of(
    make_agent: MakeAgent, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_agent().save(tmp_path / "model.pt")
    env = PointMassEnv(num_envs=2)
    env.action_space.high[:] = 9.0
    make_agent(env=env).load(tmp_path / "model.pt")
    assert "other bounds" in caplog.text
