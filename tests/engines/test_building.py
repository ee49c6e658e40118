"""What an engine refuses while it is built; what it does afterwards is in conformance/."""

from pathlib import Path

import pytest

from mimickit.engines.engine import ObjType
from mimickit.engines.mujoco_engine import MujocoEngine
from mimickit.util.keys import ConfigError
from mimickit.video.config import VideoConfig

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


def test_tendons_are_left_out_and_said_to_be(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "arm.xml"
    path.write_text("""<mujoco><worldbody><body name="root"><geom type="sphere" size="0.1"/>
    <body name="a"><joint name="a" axis="0 1 0"/><geom type="sphere" size="0.1"/>
    <body name="b"><joint name="b" axis="0 1 0"/><geom type="sphere" size="0.1"/></body></body></body></worldbody>
    <tendon><fixed name="t"><joint joint="a" coef="1"/><joint joint="b" coef="1"/></fixed></tendon>
    <equality><tendon tendon1="t"/></equality></mujoco>""")
    engine = MujocoEngine({}, num_envs=1)
    engine.create_obj(engine.create_env(), ObjType.ARTICULATED, path, "arm")
    engine.initialize_sim()
    engine.step()
    assert f"{path}: tendons (1) are not simulated" in caplog.text


def test_a_body_to_look_from_that_nobody_has_is_named_before_anything_runs() -> None:
    for enabled in (True, False):
        video = VideoConfig.from_mapping({"enabled": enabled, "camera": "first_person", "body": "hed"}, "test")
        engine = MujocoEngine({}, num_envs=1, video=video)
        engine.create_obj(engine.create_env(), ObjType.ARTICULATED, HUMANOID, "character")
        if enabled:
            with pytest.raises(ConfigError, match=r"video: body: .*humanoid\.xml: found 'hed'; did you mean 'head'"):
                engine.initialize_sim()
        else:
            engine.initialize_sim()
