"""Ctrl-C: what has been learnt is saved, and training can go on from there."""

import os
import signal
from pathlib import Path

import pytest
import torch
from torch import Tensor

from mimickit.envs.base_env import EnvMode
from mimickit.learning.interrupts import DeferredInterrupt
from tests.learning.conftest import MakeAgent
from tests.learning.point_mass import PointMassEnv
from tests.learning.test_ppo_agent import SAMPLES_PER_ITER, _same, _train, _weights


class _InterruptedEnv(PointMassEnv):
    """Sends its own process a signal at one step."""

    at_step, number, count = 0, signal.SIGINT, 0
    at_mode = EnvMode.TRAIN

    def step(self, action: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        self.count += self.mode is self.at_mode
        if self.count == self.at_step and self.mode is self.at_mode:
            os.kill(os.getpid(), self.number)
        return super().step(action)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_iteration_saves_and_can_be_resumed(
    number: signal.Signals, make_agent: MakeAgent, tmp_path: Path
) -> None:
    env = _InterruptedEnv(num_envs=16)
    env.at_step, env.number = 8 * 2 + 3, number  # in the third iteration
    agent = make_agent(env=env, iters_per_output=100)
    with pytest.raises(KeyboardInterrupt):
        _train(agent, 6, tmp_path / "parts")
    assert agent.iteration == 3
    whole, second = (make_agent(iters_per_output=100) for _ in range(2))
    _train(second, 6, tmp_path / "parts", resume=tmp_path / "parts" / "checkpoint.pt")
    _train(whole, 6, tmp_path / "whole")
    assert second.samples == 6 * SAMPLES_PER_ITER
    assert _same(_weights(whole), _weights(second))


def test_an_interrupted_test_leaves_its_figures_and_train_mode(make_agent: MakeAgent) -> None:
    env = _InterruptedEnv(num_envs=16)
    env.at_step, env.at_mode = 90, EnvMode.TEST
    agent = make_agent(env=env)
    with pytest.raises(KeyboardInterrupt):
        agent.test(10**12)
    assert env.mode is EnvMode.TRAIN
    assert agent.interrupted
    assert 0 < agent.interrupted["num_eps"] < 1000
    assert agent.interrupted["distance_m"] > 0.0


def test_an_interrupt_during_a_test_in_training_saves_too(make_agent: MakeAgent, tmp_path: Path) -> None:
    env = _InterruptedEnv(num_envs=16)
    env.at_step, env.at_mode = 5, EnvMode.TEST
    agent = make_agent(env=env, iters_per_output=2)
    with pytest.raises(KeyboardInterrupt):
        _train(agent, 6, tmp_path)
    assert (agent.interrupted["samples"], agent.interrupted["iterations"]) == (2 * SAMPLES_PER_ITER, 2)
    assert "num_eps" not in agent.interrupted, "the test that was cut short is no result of the training"
    second = make_agent(iters_per_output=2)
    second.load_checkpoint(tmp_path)
    assert second.iteration == 2
    assert _same(_weights(agent), _weights(second))


def test_an_interrupted_training_has_the_result_of_its_last_test(make_agent: MakeAgent, tmp_path: Path) -> None:
    env = _InterruptedEnv(num_envs=16)
    env.at_step = 8 * 3 + 3  # in the fourth iteration, after the test of the second
    agent = make_agent(env=env, iters_per_output=2)
    with pytest.raises(KeyboardInterrupt):
        _train(agent, 6, tmp_path)
    assert agent.interrupted["num_eps"] == 16
    assert agent.interrupted["episode_media"] == {}
    assert agent.interrupted["best_return"] == agent.interrupted["mean_return"]
    assert agent.interrupted["samples"] == 4 * SAMPLES_PER_ITER


def test_a_second_interrupt_goes_through_at_once() -> None:
    reached = False
    with pytest.raises(KeyboardInterrupt), DeferredInterrupt():
        os.kill(os.getpid(), signal.SIGINT)
        reached = True
        os.kill(os.getpid(), signal.SIGINT)
        torch.zeros(1).add(1)
        pytest.fail("not reached")
    assert reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_is_not_replaced_by_the_interrupt() -> None:
    with pytest.raises(ZeroDivisionError), DeferredInterrupt():
        os.kill(os.getpid(), signal.SIGINT)
        raise ZeroDivisionError
