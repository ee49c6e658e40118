"""Small environments to adapt and to film."""

from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest
import torch

from mimickit.envs.sim_env import SimEnv
from mimickit.factory import make_env

SMALL = {"width": 128, "height": 96, "quality": "draft"}
MODEL = Path("data/models/humanoid_walk")


class MakeWalk(Protocol):
    """The walk of the shipped model, at a small size of picture; keywords override keys of its configuration."""

    def __call__(self, num_envs: int = 4, **changes: Any) -> SimEnv: ...


@pytest.fixture
def make_walk():
    made: list[SimEnv] = []

    def make(num_envs: int = 4, *, video: dict[str, Any] | None = None, **changes: Any) -> SimEnv:
        import yaml

        config = {**yaml.safe_load((MODEL / "config.yaml").read_text())["env"], **changes}
        env = make_env(config, num_envs=num_envs, seed=3, video={**SMALL, **(video or {})})
        made.append(env)
        return env

    yield make
    for env in made:
        env.close()


def assert_same(first: Any, second: Any, where: str = "") -> None:
    """Bit for bit the same numbers, in whatever they are nested."""
    if isinstance(first, dict):
        assert first.keys() == second.keys(), where
        for key in first:
            assert_same(first[key], second[key], f"{where}/{key}")
    elif isinstance(first, (list, tuple)):
        assert len(first) == len(second), where
        for i, (a, b) in enumerate(zip(first, second, strict=True)):
            assert_same(a, b, f"{where}/{i}")
    elif isinstance(first, torch.Tensor):
        assert torch.equal(first.nan_to_num(), second.nan_to_num()), where
    elif isinstance(first, np.ndarray):
        np.testing.assert_array_equal(first, second, err_msg=where)
    else:
        assert first == second or (first != first and second != second), f"{where}: {first} != {second}"  # noqa: PLR0124
