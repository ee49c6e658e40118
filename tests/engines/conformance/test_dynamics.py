"""Physics against what a textbook says of it."""

import math
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from mimickit.engines.engine import Engine, ObjType
from mimickit.registry import Kind, resolve
from tests.engines.conformance.conftest import ENGINES, Make
from tests.video.films import write_pendulum

Write = Callable[[str, str], Path]
BOX = """<mujoco><worldbody>
<body name="box"><geom type="box" size="0.1 0.1 0.1" mass="3"/></body></worldbody></mujoco>"""
PENDULUM = """<mujoco><compiler angle="radian"/><worldbody><body name="pivot"><geom size="0.01" mass="1"/>
<body name="rod"><joint name="swing" axis="0 1 0"/><geom type="sphere" size="0.02" pos="0 0 -0.5" mass="1"/></body>
</body></worldbody></mujoco>"""
BOB_INERTIA = 0.5**2 + 0.4 * 0.02**2  # kg m^2 about the pivot


def test_free_fall(make: Make, asset: Write) -> None:
    engine = make(asset("box", BOX), mode="none", control=100, sim=1000, start_pos=(1, 2, 10))
    for _ in range(50):
        engine.step()
    fallen = 10.0 - engine.get_root_pos(0)[:, 2]
    torch.testing.assert_close(fallen, torch.full((2,), 0.5 * 9.81 * 0.25), atol=0.01, rtol=0.0)
    torch.testing.assert_close(engine.get_root_vel(0)[:, 2], torch.full((2,), -9.81 * 0.5), atol=1e-3, rtol=0.0)
    assert engine.get_sim_time(1) == pytest.approx(0.5)


def test_gravity_is_that_of_all_environments(make: Make, asset: Write) -> None:
    engine = make(asset("box", BOX), mode="none", start_pos=(0, 0, 10))
    engine.set_gravity((0.0, 3.0, 0.0))
    engine.step()
    expected = torch.tensor([0.0, 3.0 / 30.0, 0.0]).expand(2, 3)
    torch.testing.assert_close(engine.get_root_vel(0), expected, atol=1e-5, rtol=1e-4)


def test_the_period_of_a_pendulum(make: Make, asset: Write) -> None:
    engine = make(asset("pendulum", PENDULUM), mode="none", control=100, sim=2000, fix_root=True, start_pos=(0, 0, 2))
    engine.set_dof_pos(None, 0, torch.tensor([0.1]))
    angles = []
    for _ in range(300):
        engine.step()
        angles.append(float(engine.get_dof_pos(0)[0, 0]))
    left = np.flatnonzero(np.diff(np.sign(angles)) != 0)
    crossings = [(i + angles[i] / (angles[i] - angles[i + 1])) / 100 for i in left]
    expected = 2 * math.pi * math.sqrt(BOB_INERTIA / (9.81 * 0.5))
    assert 2 * np.mean(np.diff(crossings)) == pytest.approx(expected, rel=0.005)


def test_contact_force_at_rest_is_the_weight(open_engine: Make, asset: Write) -> None:
    box = asset("box", BOX)
    engine = open_engine(2, control=30, sim=240)
    for _ in range(2):
        env = engine.create_env()
        engine.create_obj(env, ObjType.RIGID, box, "lower", start_pos=(0, 0, 0.1))
        engine.create_obj(env, ObjType.RIGID, box, "upper", start_pos=(0, 0, 0.3))
    engine.initialize_sim()
    for _ in range(60):
        engine.step()
    weight = engine.get_obj_mass(0) * 9.81
    up = torch.tensor([0.0, 0.0, 1.0])
    for obj, total, ground in ((0, weight, 2 * weight), (1, weight, 0.0)):
        torch.testing.assert_close(engine.get_contact_forces(obj)[0, 0], total * up, atol=0.3, rtol=0.01)
        torch.testing.assert_close(engine.get_ground_contact_forces(obj)[0, 0], ground * up, atol=0.3, rtol=0.01)


def test_a_push_gives_its_momentum_for_one_step(make: Make, asset: Write) -> None:
    engine = make(asset("box", BOX), n=3, mode="none", start_pos=(0, 0, 10))
    engine.set_gravity((0, 0, 0))
    engine.set_body_forces(torch.tensor([1]), 0, 0, torch.tensor([90.0, 0.0, 0.0]))
    engine.step()
    engine.step()
    expected = torch.zeros(3, 3)
    expected[1, 0] = 90.0 / 3.0 / 30.0
    torch.testing.assert_close(engine.get_root_vel(0), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("mode", ["pos", "pd_explicit"])
def test_the_step_response_of_a_pd_drive(make: Make, asset: Write, mode: str) -> None:
    """An oscillator with damping ratio 0.5 swings to its target as the differential equation says."""
    omega, ratio, target = 8.0, 0.5, 0.6
    gains = f'stiffness="{omega**2 * BOB_INERTIA}" damping="{2 * ratio * omega * BOB_INERTIA}"'
    text = PENDULUM.replace('axis="0 1 0"', f'axis="0 1 0" {gains}')
    engine = make(asset("drive", text), n=1, mode=mode, control=20, sim=2000, fix_root=True, start_pos=(0, 0, 2))
    engine.set_gravity((0, 0, 0))
    damped, decay = omega * math.sqrt(1 - ratio**2), ratio * omega
    for index in range(1, 21):
        engine.set_cmd(0, torch.full((1, 1), target))
        engine.step()
        t = index / 20
        envelope = math.exp(-decay * t)
        expected = target * (1 - envelope * (math.cos(damped * t) + decay / damped * math.sin(damped * t)))
        assert float(engine.get_dof_pos(0)[0, 0]) == pytest.approx(expected, abs=0.01 * target)


@pytest.mark.parametrize(("mode", "sim"), [("pos", 120), ("pd_explicit", 3000)])
def test_pd_drives_reach_their_targets(make: Make, mode: str, sim: float) -> None:
    engine = make(mode=mode, sim=sim, fix_root=True, start_pos=(0, 0, 3))
    engine.set_gravity((0, 0, 0))
    target = torch.zeros(2, 28)
    target[0, 6:9] = torch.tensor([0.5, -0.9, 0.8])  # a ball joint well past the range where axes decouple
    target[0, 9] = 1.4
    target[1, 20] = -0.7
    for _ in range(60):
        engine.set_cmd(0, target)
        engine.step()
    torch.testing.assert_close(engine.get_dof_pos(0), target, atol=0.01, rtol=0.0)


def test_torque_mode_respects_the_limits(make: Make) -> None:
    engine = make(n=1, mode="torque", fix_root=True, start_pos=(0, 0, 3))
    limits = engine.get_obj_torque_limits(0)
    engine.set_cmd(0, torch.full((1, 28), 1e4))
    engine.step()
    torch.testing.assert_close(engine.get_dof_forces(0)[0], limits, atol=1e-2, rtol=1e-4)
    engine.reset_envs(None)
    engine.set_cmd(0, torch.full((1, 28), -1.5))
    engine.step()
    torch.testing.assert_close(engine.get_dof_forces(0)[0], torch.full((28,), -1.5), atol=1e-3, rtol=1e-4)


def test_velocity_mode_turns_at_the_commanded_speed(make: Make, asset: Write) -> None:
    text = PENDULUM.replace('axis="0 1 0"', 'axis="0 0 1" damping="50"')
    engine = make(asset("turner", text), mode="vel", fix_root=True, start_pos=(0, 0, 2))
    for _ in range(30):
        engine.set_cmd(0, torch.full((2, 1), 2.0))
        engine.step()
    torch.testing.assert_close(engine.get_dof_vel(0), torch.full((2, 1), 2.0), atol=0.02, rtol=0.0)


def test_environments_do_not_feel_each_other(make: Make) -> None:
    def run(others: float) -> torch.Tensor:
        engine = make(n=3, start_pos=(0, 0, 0.9))
        cmd = torch.zeros(3, 28)
        cmd[1:] = others
        for _ in range(15):
            engine.set_cmd(0, cmd)
            engine.step()
        return engine.get_body_pos(0)[0]

    assert torch.equal(run(0.0), run(0.7))


@pytest.mark.parametrize("cause", ["velocity", "command"])
def test_a_diverging_simulation_fails_alone_and_starts_again(make: Make, cause: str) -> None:
    cmd = torch.zeros(3, 28)
    names = ("root_pos", "dof_vel", "body_pos", "body_vel", "contact_forces")

    def two_steps(engine: Engine, breaks: bool) -> dict[str, torch.Tensor]:
        engine.set_cmd(0, cmd)
        engine.step()
        if breaks and cause == "velocity":
            engine.set_dof_vel(torch.tensor([1]), 0, torch.full((28,), float("nan")))
        elif breaks:
            broken = cmd.clone()
            broken[1, 4] = float("nan")
            engine.set_cmd(0, broken)
        engine.step()
        return {name: getattr(engine, f"get_{name}")(0) for name in names}

    calm = two_steps(make(n=3, start_pos=(0, 0, 0.9)), breaks=False)
    engine = make(n=3, start_pos=(0, 0, 0.9))
    found = two_steps(engine, breaks=True)
    assert engine.get_sim_failed().tolist() == [False, True, False]
    torch.testing.assert_close(engine.get_root_pos(0)[1], torch.tensor([0.0, 0.0, 0.9]))
    for name in names:
        assert torch.isfinite(found[name]).all(), name
        assert torch.equal(found[name][[0, 2]], calm[name][[0, 2]]), name
    engine.set_cmd(0, cmd)
    engine.step()
    assert not engine.get_sim_failed().any()


@pytest.mark.parametrize("collide", [True, False])
def test_self_collisions_can_be_switched_off(make: Make, collide: bool) -> None:
    engine = make(n=1, mode="none", sim=30, start_pos=(0, 0, 5), enable_self_collisions=collide)
    dof = torch.zeros(1, 28)
    dof[0, 14], dof[0, 21] = 0.5, -0.5  # thighs through one another
    engine.set_dof_pos(None, 0, dof)
    engine.step()
    assert (float(engine.get_contact_forces(0).abs().sum()) > 1.0) == collide


def test_engines_step_side_by_side_in_threads(engine_name: str, tmp_path: Path) -> None:
    if engine_name == "isaac_lab":
        pytest.skip("Isaac Lab has one simulation in a process")

    def opened() -> Engine:
        engine = resolve(Kind.ENGINE, ENGINES.get(engine_name, engine_name))({"control_mode": "none"}, num_envs=2)
        for _ in range(2):
            engine.create_obj(engine.create_env(), ObjType.ARTICULATED, pendulum, "thing", start_pos=(0, 0, 3))
        engine.initialize_sim()
        return engine

    def run(engine: Engine) -> None:
        for _ in range(100):
            engine.step()

    pendulum = write_pendulum(tmp_path)
    alone, *others = (opened() for _ in range(3))
    run(alone)
    threads = [threading.Thread(target=run, args=(engine,)) for engine in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for engine in others:
        torch.testing.assert_close(engine.get_root_pos(0), alone.get_root_pos(0), atol=0.0, rtol=0.0)
    for engine in (alone, *others):
        engine.close()
