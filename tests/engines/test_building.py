"""What an engine refuses while it is built; what it does afterwards is in conformance/."""

from pathlib import Path

import pytest

from mimickit.engines.engine import ObjType
from mimickit.engines.mujoco_engine import MujocoEngine
from mimickit.util.keys import ConfigError

HUMANOID = "data/assets/humanoid/humanoid.xml"
BOX = """<mujoco><worldbody>
<body name="box"><geom type="box" size="0.1 0.1 0.1" mass="3"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"control_mode": "position"}, ["control_mode", "'position'", "pos"]),
        ({"control_freq": 50, "sim_freq": 120}, ["sim_freq", "multiple", "120"]),
        ({"sim_frq": 120}, ["sim_frq", "sim_freq"]),
        ({"control_freq": "fast"}, ["control_freq", "'fast'", "number"]),
    ],
)
def test_bad_configurations_are_refused_by_name(config: dict[str, object], words: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        MujocoEngine(config, num_envs=1, config_source="my_engine.yaml")
    for word in ["my_engine.yaml", *words]:
        assert word in str(error.value)


def test_environments_must_hold_the_same_objects(tmp_path: Path) -> None:
    box = tmp_path / "box.xml"
    box.write_text(BOX)
    engine = MujocoEngine({}, num_envs=2)
    engine.create_obj(engine.create_env(), ObjType.RIGID, box, "box")
    with pytest.raises(ConfigError, match="environment 1, object 0"):
        engine.create_obj(engine.create_env(), ObjType.RIGID, HUMANOID, "box")
