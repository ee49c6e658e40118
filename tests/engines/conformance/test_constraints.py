"""What a file says beyond bodies, joints and shapes: equality constraints and excluded contacts."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from mimickit.engines.engine import Engine, ObjType
from mimickit.engines.mujoco_engine import MujocoEngine
from mimickit.registry import Kind, resolve
from tests.engines.conformance.conftest import NEEDS, Make

Asset = Callable[[str, str], Path]
AXES = ("1 0 0", "0 1 0", "0 0 1")
ARM = '<geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" mass="0.3"/>'
TWO_ARMS = f"""<mujoco><worldbody><body name="root" pos="0 0 1"><geom type="sphere" size="0.02" mass="1"/>
<body name="a" pos="0 -0.2 0"><joint name="a" axis="0 1 0" stiffness="20" damping="1"/>{ARM}</body>
<body name="b" pos="0 0.2 0"><joint name="b" axis="0 1 0"/>{ARM}</body>
</body></worldbody>%s</mujoco>"""
CHAIN = f"""<mujoco><worldbody><body name="root" pos="0 0 1"><geom type="sphere" size="0.02" mass="1"/>
<body name="a" pos="0.1 0 0"><joint name="a" axis="0 1 0" stiffness="30" damping="1"/>{ARM}
<body name="b" pos="0.3 0 0"><joint name="b" axis="0 1 0" damping="0.1"/>{ARM}</body></body>
<body name="c" pos="0.1 0.1 -0.1"><joint name="c" axis="0 1 0" damping="0.1"/>{ARM}</body>
</body></worldbody><equality>%s</equality>
<contact><exclude body1="a" body2="c"/><exclude body1="b" body2="c"/></contact></mujoco>"""
FALLING_ON = """<mujoco><worldbody><body name="root" pos="0 0 1"><geom type="sphere" size="0.02" mass="1"/>
<body name="bar"><joint name="bar" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" mass="0.3"/>
</body><body name="stop" pos="0.3 0 -0.2"><joint name="stop" axis="1 0 0" armature="1000"/>
<geom type="sphere" size="0.08"/></body>
</body></worldbody>%s</mujoco>"""
STEPS = 45


def hold(engine: Engine) -> torch.Tensor:
    """Positions (num_envs, D) of the dofs after a while with drives that want zero, and a 0.5 of the first."""
    target = torch.zeros(engine.get_num_envs(), engine.get_obj_num_dofs(0))
    target[:, 0] = 0.5
    for _ in range(STEPS):
        engine.set_cmd(0, target)
        engine.step()
    return engine.get_dof_pos(0)


def reference(path: Path) -> Engine:
    engine = MujocoEngine({"control_mode": "pos", "control_freq": 30, "sim_freq": 240}, num_envs=1)
    engine.create_obj(engine.create_env(), ObjType.ARTICULATED, path, "thing", fix_root=True, start_pos=(0, 0, 1))
    engine.initialize_sim()
    return engine


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            TWO_ARMS % '<equality><joint joint1="b" joint2="a" polycoef="0.1 -0.5 0 0 0"/></equality>', id="joint"
        ),
        pytest.param(TWO_ARMS % '<equality><joint joint1="b" polycoef="-0.4 0 0 0 0"/></equality>', id="one-joint"),
        pytest.param(CHAIN % '<connect body1="c" body2="b" anchor="0.3 0 0"/>', id="connect"),
        pytest.param(CHAIN % '<weld body1="c" body2="a" relpose="0 0 0 1 0 0 0" torquescale="0.5"/>', id="weld"),
        pytest.param(TWO_ARMS % '<equality><joint joint1="b" joint2="a" active="false"/></equality>', id="not-active"),
    ],
)
def test_equality_constraints(
    make: Make, engine_name: str, asset: Asset, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = asset("coupled", text)
    engine = make(path, sim=240, fix_root=True, start_pos=(0, 0, 1))
    if engine_name == "isaac_lab" and "equality constraints (1) are not simulated" in caplog.text:
        pytest.skip("the mujoco-warp that is here can't hold them, and says so")
    expected = hold(reference(path))
    free = hold(reference(asset("free", text[: text.index("<equality>")] + "</mujoco>")))
    if "active" not in text:
        assert float((free - expected).abs().max()) > 0.1  # it matters
    torch.testing.assert_close(hold(engine), expected.expand(2, -1), atol=5e-3, rtol=0.0)


def test_what_can_not_be_coupled_is_said(make: Make, asset: Asset, caplog: pytest.LogCaptureFixture) -> None:
    hip = "".join(f'<joint name="hip_{axis}" axis="{v}" stiffness="20"/>' for axis, v in zip("xyz", AXES, strict=True))
    path = asset(
        "hip",
        f"""<mujoco><worldbody><body name="root" pos="0 0 1"><geom type="sphere" size="0.02" mass="1"/>
    <body name="a" pos="0.1 0 0">{hip}{ARM}</body>
    <body name="b" pos="-0.1 0 0"><joint name="knee" axis="0 1 0"/>{ARM}</body>
    </body></worldbody><equality><joint joint1="knee" joint2="hip_y"/></equality></mujoco>""",
    )
    make(path, fix_root=True, start_pos=(0, 0, 1)).step()
    assert f"{path}: the equality constraint of joint 'knee' is not simulated: hip_y is no hinge" in caplog.text


def test_what_is_only_shown_stays_where_it_is_put(make: Make, asset: Asset) -> None:
    """Also where nothing at all can touch anything."""
    path = asset(
        "shown", TWO_ARMS % '<equality><joint joint1="b" joint2="a"/><connect body1="a" anchor="1 0 0"/></equality>'
    )
    engine = make(path, mode="none", is_visual=True, start_pos=(0, 0, 1))
    engine.set_dof_pos(None, 0, torch.tensor([0.7, -0.2]))
    for _ in range(10):
        engine.step()
    torch.testing.assert_close(engine.get_dof_pos(0), torch.tensor([[0.7, -0.2]] * 2))
    torch.testing.assert_close(engine.get_root_pos(0), torch.tensor([[0.0, 0.0, 1.0]] * 2))
    assert float(engine.get_contact_forces(0).abs().max()) == 0.0


@pytest.mark.parametrize("excluded", [True, False])
def test_bodies_excluded_from_the_world_pass_through_the_ground(make: Make, asset: Asset, excluded: bool) -> None:
    words = '<contact><exclude body1="world" body2="ball"/></contact>' if excluded else ""
    path = asset(
        "ball",
        f"""<mujoco><worldbody><body name="ball"><geom type="sphere" size="0.1"/></body></worldbody>
    {words}</mujoco>""",
    )
    engine = make(path, mode="none", start_pos=(0, 0, 0.3))
    for _ in range(20):
        engine.step()
    assert bool((engine.get_root_pos(0)[:, 2] < -0.5).all()) == excluded
    assert excluded or bool((engine.get_root_pos(0)[:, 2] > 0.08).all())


@pytest.mark.parametrize("excluded", [True, False])
def test_excluded_bodies_pass_through_each_other(make: Make, asset: Asset, excluded: bool) -> None:
    words = '<contact><exclude body1="bar" body2="stop"/></contact>' if excluded else ""
    engine = make(asset("falling", FALLING_ON % words), mode="none", fix_root=True, start_pos=(0, 0, 1))
    low = torch.zeros(2)
    for _ in range(STEPS):
        engine.step()
        low = torch.maximum(low, engine.get_dof_pos(0)[:, 0])
    if excluded:
        assert bool((low > 1.2).all())  # beyond straight down to the other side, or nearly
    else:
        assert bool((low < 0.6).all())  # held up by the stop


def test_contacts_without_room_are_told_of_once(
    engine_name: str, asset: Asset, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    if engine_name not in NEEDS:
        pytest.skip("has room for all contacts")
    # the file's own pose, for which there is always room, touches nothing: it lands upside down
    engine_class = resolve(Kind.ENGINE, engine_name)
    for max_contacts, condim, told in ((200, 3, 0), (110, 6, 0), (20, 3, 1)):
        feet = "".join(
            f'<geom type="sphere" size="0.02" condim="{condim}" pos="{i % 10 * 0.1} {i // 10 * 0.1} 0.1"/>'
            for i in range(100)
        )
        path = asset("plate", f'<mujoco><worldbody><body name="plate">{feet}</body></worldbody></mujoco>')
        caplog.clear()
        engine = engine_class({"max_contacts": max_contacts}, num_envs=2)
        for _ in range(2):
            engine.create_obj(
                engine.create_env(), ObjType.RIGID, path, "plate", start_pos=(0, 0, 0.15), start_rot=(1, 0, 0, 0)
            )
        engine.initialize_sim()
        for _ in range(10):
            engine.step()
        engine.close()
        assert caplog.text.count("max_contacts") == told, caplog.text
    assert "overflow" not in capfd.readouterr().out
