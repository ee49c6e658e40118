"""What the conformance suite shares: the engines that it is run against, and small scenes.

MIMICKIT_ENGINES=mujoco,newton names the engines; one that is named and can't be made is a failure. By default these
are all that are installed. A name that is not in the table is anybody's own: package.module:Class.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from mimickit.engines.engine import Engine, ObjType
from mimickit.registry import Kind, resolve
from mimickit.util.keys import ConfigError
from mimickit.video.config import VideoConfig

HUMANOID = Path("data/assets/humanoid/humanoid.xml")
ENGINES = {
    "mujoco": "mujoco",
    "newton": "newton",
    "isaac_lab": "isaac_lab",
    "own": "tests.engines.conformance.own_engine:OwnEngine",
}
NEEDS = ("newton", "isaac_lab")  # what the default installation has not
DIFFERENT_DOFS = 28  # of the humanoid

Make = Callable[..., Engine]


def engine_names() -> list[str]:
    named = os.environ.get("MIMICKIT_ENGINES")
    if named:
        names = [name.strip() for name in named.split(",")]
        for name in names:
            resolve(Kind.ENGINE, ENGINES.get(name, name), "MIMICKIT_ENGINES")
        return names
    return [name for name in ENGINES if name not in NEEDS or is_installed(name)]


def is_installed(engine: str) -> bool:
    """Whether the engine can be made here: a library may be there in a version that it can't use."""
    try:
        resolve(Kind.ENGINE, engine)({}, num_envs=1)
    except ConfigError:
        return False
    return True


@pytest.fixture(params=engine_names())
def engine_name(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> str:
    record_property("engine", request.param)  # for the table in docs/engines.md
    return str(request.param)


@pytest.fixture
def asset(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(name: str, text: str) -> Path:
        path = tmp_path / f"{name}.xml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def open_engine(engine_name: str) -> Iterator[Make]:
    """An engine without objects; closed when the next is opened (not every library has two simulations in a process)
    and at the end of the test.
    """
    made: list[Engine] = []

    def build(n: int = 2, *, mode: str = "none", control: float = 30, sim: float = 120, **video: Any) -> Engine:
        engine_class = resolve(Kind.ENGINE, ENGINES.get(engine_name, engine_name))
        config = {"control_mode": mode, "control_freq": control, "sim_freq": sim}
        film = VideoConfig.from_mapping(video, "test") if video else VideoConfig()
        for engine in made:
            engine.close()
        made.append(engine_class(config, num_envs=n, video=film))
        return made[-1]

    yield build
    for engine in made:
        engine.close()


@pytest.fixture
def make(open_engine: Make) -> Make:
    """An initialized engine with one object in every environment."""

    def build(
        file: str | Path = HUMANOID, *, n: int = 2, mode: str = "pos", control: float = 30, sim: float = 120,
        video: dict[str, Any] | None = None, **obj: Any,
    ) -> Engine:  # fmt: skip
        engine = open_engine(n, mode=mode, control=control, sim=sim, **(video or {}))
        for _ in range(n):
            engine.create_obj(engine.create_env(), ObjType.ARTICULATED, file, "thing", **obj)
        engine.initialize_sim()
        return engine

    return build


def random_state(n: int, *, seed: int = 0, dofs: int = DIFFERENT_DOFS) -> dict[str, torch.Tensor]:
    """Names of setters and values: high above the ground, every number different."""
    g = torch.Generator().manual_seed(seed)
    sizes = {"root_pos": 3, "root_rot": 4, "root_vel": 3, "root_ang_vel": 3, "dof_pos": dofs, "dof_vel": dofs}
    state = {name: torch.randn(n, size, generator=g) for name, size in sizes.items()}
    state["root_pos"][:, 2] += 5.0
    state["root_rot"] /= state["root_rot"].norm(dim=-1, keepdim=True)
    state["root_rot"] *= state["root_rot"][:, 3:].sign()
    state["dof_pos"] *= 0.3
    return state


def set_state(engine: Engine, ids: torch.Tensor | None, state: dict[str, torch.Tensor]) -> None:
    for name, value in state.items():
        getattr(engine, f"set_{name}")(ids, 0, value)
