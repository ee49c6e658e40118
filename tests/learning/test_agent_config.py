"""An agent's YAML: numbers as strings, unknown keys, ranges, defaults."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mimickit.learning.agent_config import StdType
from mimickit.learning.ppo_agent import PPOConfig
from mimickit.util.keys import ConfigError


def _read(values: dict[str, Any]) -> PPOConfig:
    return PPOConfig.from_mapping(values, "agent.yaml")


def test_number_strings_as_yaml_gives_them_are_numbers() -> None:
    values = yaml.safe_load("actor_optimizer: {learning_rate: 1e-4}\nminibatch_size: '256'\ndiscount: '.9'")
    assert isinstance(values["actor_optimizer"]["learning_rate"], str)
    config = _read(values)
    assert config.actor_optimizer.learning_rate == 1e-4
    assert config.minibatch_size == 256
    assert config.discount == 0.9


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"discout": 0.9}, ["discout", "discount"]),
        ({"model": {"actor_nett": "fc_2layers_64units"}}, ["model", "actor_nett", "actor_net"]),
        ({"critic_optimizer": {"learning_rat": 1}}, ["critic_optimizer", "learning_rat", "learning_rate"]),
        ({"discount": 1.5}, ["discount", "0 to 1", "1.5"]),
        ({"steps_per_iter": 0}, ["steps_per_iter", "at least 1"]),
        ({"steps_per_iter": 2.5}, ["steps_per_iter", "whole"]),
        ({"model": {"actor_std_type": "FIXD"}}, ["model.actor_std_type", "FIXED"]),
        ({"model": {"actor_net": 3}}, ["model.actor_net", "3"]),
        ({"model": 3}, ["model", "block"]),
        ({"actor_optimizer": {"type": "LBFGS"}}, ["actor_optimizer.type", "LBFGS", "Adam"]),
        ({"td_lambda": "much"}, ["td_lambda", "much"]),
        ({"parallel_update": "perhaps"}, ["parallel_update", "perhaps"]),
    ],
)
def test_what_cannot_be_is_refused_by_name(values: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        _read(values)
    for word in ["agent.yaml", *words]:
        assert word in str(error.value)


def test_a_block_given_in_part_keeps_its_own_defaults() -> None:
    config = _read({"actor_optimizer": {"grad_clip": 2.0}, "model": {"actor_std_type": "constant"}})
    assert config.actor_optimizer.learning_rate == PPOConfig().actor_optimizer.learning_rate
    assert config.actor_optimizer.grad_clip == 2.0
    assert config.model.actor_std_type is StdType.CONSTANT


@pytest.mark.parametrize("path", sorted(Path("data/agents").glob("ppo*.yaml")), ids=lambda path: path.name)
def test_shipped_files_are_accepted(path: Path) -> None:
    PPOConfig.from_mapping(yaml.safe_load(path.read_text()), str(path))
