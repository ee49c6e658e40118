"""The engine contract on MuJoCo: states, drives, contacts, resets, isolation, divergence."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from mimickit.engines.engine import ObjType
from mimickit.engines.mujoco_engine import MujocoEngine
from mimickit.util.keys import ConfigError
from mimickit.util.rotations import exp_map_to_quat, quat_diff_angle, quat_mul

HUMANOID = "data/assets/humanoid/humanoid.xml"
BOX = """<mujoco><worldbody>
<body name="box"><geom type="box" size="0.1 0.1 0.1" mass="3"/></body></worldbody></mujoco>"""
PENDULUM = """<mujoco><compiler angle="radian"/><worldbody><body name="pivot"><geom size="0.01" mass="1"/>
<body name="rod"><joint name="swing" axis="0 1 0"/><geom type="sphere" size="0.02" pos="0 0 -0.5" mass="1"/></body>
</body></worldbody></mujoco>"""
STATES = {"root_pos": 3, "root_rot": 4, "root_vel": 3, "root_ang_vel": 3, "dof_pos": 28, "dof_vel": 28}


@pytest.fixture
def asset(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(name: str, text: str) -> Path:
        path = tmp_path / f"{name}.xml"
        path.write_text(text)
        return path

    return write


def make(
    file: str | Path, *, n: int = 3, mode: str = "pos", control: float = 30, sim: float = 120, **obj: object
) -> MujocoEngine:
    engine = MujocoEngine({"control_mode": mode, "control_freq": control, "sim_freq": sim}, num_envs=n)
    for _ in range(n):
        engine.create_obj(engine.create_env(), ObjType.ARTICULATED, file, "thing", **obj)  # type: ignore[arg-type]
    engine.initialize_sim()
    return engine


def random_state(n: int, seed: int = 0) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    state = {name: torch.randn(n, size, generator=g) for name, size in STATES.items()}
    state["root_pos"][:, 2] += 5.0
    state["root_rot"] /= state["root_rot"].norm(dim=-1, keepdim=True)
    state["root_rot"] *= state["root_rot"][:, 3:].sign()
    state["dof_pos"] *= 0.3
    return state


def set_state(engine: MujocoEngine, ids: torch.Tensor | None, state: dict[str, torch.Tensor]) -> None:
    for name, value in state.items():
        getattr(engine, f"set_{name}")(ids, 0, value)


def test_states_that_are_set_are_read_back_at_once() -> None:
    engine, state = make(HUMANOID), random_state(3)
    set_state(engine, None, state)
    for name, value in state.items():
        torch.testing.assert_close(getattr(engine, f"get_{name}")(0), value, atol=1e-5, rtol=1e-5, msg=name)
    # derived quantities follow without a step
    torch.testing.assert_close(engine.get_body_pos(0)[:, 0], state["root_pos"])
    torch.testing.assert_close(engine.get_body_vel(0)[:, 0], state["root_vel"], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(engine.get_body_ang_vel(0)[:, 0], state["root_ang_vel"], atol=1e-4, rtol=1e-4)


def test_body_velocities_are_the_derivative_of_body_poses() -> None:
    engine = make(HUMANOID, n=1, control=4000, sim=4000)
    engine.set_gravity((0, 0, 0))
    set_state(engine, None, random_state(1, seed=3))
    before, vel = engine.get_body_pos(0), engine.get_body_vel(0)
    engine.set_cmd(0, engine.get_dof_pos(0))
    engine.step()
    measured = (engine.get_body_pos(0) - before) / engine.get_timestep()
    mean = 0.5 * (vel + engine.get_body_vel(0))
    torch.testing.assert_close(measured, mean, atol=0.1, rtol=0.02)


def test_what_a_getter_returns_is_the_callers_own() -> None:
    engine = make(HUMANOID)
    for name in (*STATES, "body_pos", "body_rot", "body_vel", "contact_forces"):
        first = getattr(engine, f"get_{name}")(0)
        copy = first.clone()
        first += 7.0
        torch.testing.assert_close(getattr(engine, f"get_{name}")(0), copy)
    pos, rot = engine.body_poses(0)[0]
    pos += 1.0
    rot += 1.0
    assert not np.allclose(engine.body_poses(0)[0][0], pos)


def test_setters_and_resets_touch_only_their_environments() -> None:
    engine = make(HUMANOID, n=4)
    set_state(engine, None, random_state(4))
    before = {name: getattr(engine, f"get_{name}")(0) for name in (*STATES, "body_pos", "body_rot")}
    ids = torch.tensor([2, 0])
    new = random_state(2, seed=9)
    set_state(engine, ids, new)
    for name, value in new.items():
        torch.testing.assert_close(getattr(engine, f"get_{name}")(0)[ids], value, atol=1e-5, rtol=1e-5)
    engine.reset_envs(torch.tensor([0]))
    for name, value in before.items():
        assert torch.equal(getattr(engine, f"get_{name}")(0)[[1, 3]], value[[1, 3]]), name
    assert torch.equal(engine.get_root_pos(0)[0], torch.zeros(3))


def test_free_fall(asset: Callable[[str, str], Path]) -> None:
    engine = make(asset("box", BOX), mode="none", control=100, sim=1000, start_pos=(1, 2, 10))
    for _ in range(50):
        engine.step()
    fallen = 10.0 - engine.get_root_pos(0)[:, 2]
    torch.testing.assert_close(fallen, torch.full((3,), 0.5 * 9.81 * 0.25), atol=0.01, rtol=0.0)
    torch.testing.assert_close(engine.get_root_vel(0)[:, 2], torch.full((3,), -9.81 * 0.5), atol=1e-3, rtol=0.0)
    assert engine.get_sim_time(1) == pytest.approx(0.5)


def test_gravity_is_that_of_all_environments(asset: Callable[[str, str], Path]) -> None:
    engine = make(asset("box", BOX), mode="none", start_pos=(0, 0, 10))
    engine.set_gravity((0.0, 3.0, 0.0))
    engine.step()
    expected = torch.tensor([0.0, 3.0 / 30.0, 0.0]).expand(3, 3)
    torch.testing.assert_close(engine.get_root_vel(0), expected, atol=1e-5, rtol=1e-4)


def test_pendulum_period(asset: Callable[[str, str], Path]) -> None:
    engine = make(asset("pendulum", PENDULUM), mode="none", control=200, sim=2000, fix_root=True, start_pos=(0, 0, 2))
    engine.set_dof_pos(None, 0, torch.tensor([0.1]))
    angles = []
    for _ in range(600):
        engine.step()
        angles.append(float(engine.get_dof_pos(0)[0, 0]))
    signs = np.sign(angles)
    crossings = np.flatnonzero(np.diff(signs) != 0) / 200
    inertia = 0.5**2 + 0.4 * 0.02**2
    expected = 2 * math.pi * math.sqrt(inertia / (9.81 * 0.5))
    assert 2 * np.mean(np.diff(crossings)) == pytest.approx(expected, rel=0.01)


def test_contact_force_at_rest_is_the_weight(asset: Callable[[str, str], Path]) -> None:
    box = asset("box", BOX)
    engine = MujocoEngine({"control_freq": 30, "sim_freq": 240}, num_envs=2)
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


def test_a_push_gives_its_momentum_for_one_step(asset: Callable[[str, str], Path]) -> None:
    engine = make(asset("box", BOX), mode="none", start_pos=(0, 0, 10))
    engine.set_gravity((0, 0, 0))
    engine.set_body_forces(torch.tensor([1]), 0, 0, torch.tensor([90.0, 0.0, 0.0]))
    engine.step()
    engine.step()
    expected = torch.zeros(3, 3)
    expected[1, 0] = 90.0 / 3.0 / 30.0
    torch.testing.assert_close(engine.get_root_vel(0), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("mode", "sim"), [("pos", 120), ("pd_explicit", 3000)])
def test_pd_drives_reach_their_targets(mode: str, sim: float) -> None:
    engine = make(HUMANOID, n=2, mode=mode, sim=sim, fix_root=True, start_pos=(0, 0, 3))
    engine.set_gravity((0, 0, 0))
    target = torch.zeros(2, 28)
    target[0, 6:9] = torch.tensor([0.5, -0.9, 0.8])  # a ball joint well past the range where axes decouple
    target[0, 9] = 1.4  # an elbow past 1 rad: no inherited control range clips it
    target[1, 20] = -0.7
    for _ in range(90):
        engine.set_cmd(0, target)
        engine.step()
    torch.testing.assert_close(engine.get_dof_pos(0), target, atol=0.01, rtol=0.0)


def test_torque_mode_respects_the_limits() -> None:
    engine = make(HUMANOID, n=1, mode="torque", fix_root=True, start_pos=(0, 0, 3))
    limits = engine.get_obj_torque_limits(0)
    engine.set_cmd(0, torch.full((1, 28), 1e4))
    engine.step()
    torch.testing.assert_close(engine.get_dof_forces(0)[0], limits)


def test_velocity_mode_turns_at_the_commanded_speed(asset: Callable[[str, str], Path]) -> None:
    text = PENDULUM.replace('axis="0 1 0"', 'axis="0 0 1" damping="50"')
    engine = make(asset("turner", text), mode="vel", fix_root=True, start_pos=(0, 0, 2))
    for _ in range(30):
        engine.set_cmd(0, torch.full((3, 1), 2.0))
        engine.step()
    torch.testing.assert_close(engine.get_dof_vel(0), torch.full((3, 1), 2.0), atol=0.02, rtol=0.0)


def test_exponential_maps_beyond_pi_are_the_same_rotation() -> None:
    engine = make(HUMANOID, n=1)
    dof = torch.zeros(1, 28)
    dof[0, 6:9] = torch.tensor([0.0, 4.0, 0.0])
    engine.set_dof_pos(None, 0, dof)
    read = engine.get_dof_pos(0)[0, 6:9]
    assert float(read.norm()) <= math.pi + 1e-5
    assert float(quat_diff_angle(exp_map_to_quat(read), exp_map_to_quat(dof[0, 6:9]))) < 1e-3


def test_root_rotation_keeps_the_angular_velocity_of_the_world() -> None:
    engine, state = make(HUMANOID), random_state(3)
    set_state(engine, None, state)
    turned = quat_mul(exp_map_to_quat(torch.tensor([0.3, 0.2, -1.0])).expand(3, 4), state["root_rot"])
    engine.set_root_rot(None, 0, turned)
    torch.testing.assert_close(engine.get_root_ang_vel(0), state["root_ang_vel"], atol=1e-5, rtol=1e-5)


def test_a_fixed_root_stays_where_it_is_put() -> None:
    engine = make(HUMANOID, n=2, fix_root=True, start_pos=(1, 2, 3))
    engine.set_root_pos(torch.tensor([1]), 0, torch.tensor([0.0, 0.0, 2.0]))
    for _ in range(5):
        engine.set_cmd(0, torch.zeros(2, 28))
        engine.step()
    expected = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 2.0]])
    torch.testing.assert_close(engine.get_root_pos(0), expected)
    torch.testing.assert_close(engine.get_body_pos(0)[:, 0], expected)
    with pytest.raises(ValueError, match="fixed"):
        engine.set_root_vel(None, 0, torch.zeros(3))


def test_environments_do_not_feel_each_other() -> None:
    def run(others: float) -> torch.Tensor:
        engine = make(HUMANOID, n=3, start_pos=(0, 0, 0.9))
        cmd = torch.zeros(3, 28)
        cmd[1:] = others
        for _ in range(20):
            engine.set_cmd(0, cmd)
            engine.step()
        return engine.get_body_pos(0)[0]

    assert torch.equal(run(0.0), run(0.7))


def test_a_diverging_simulation_fails_alone_and_starts_again() -> None:
    engine, calm = make(HUMANOID, start_pos=(0, 0, 0.9)), make(HUMANOID, start_pos=(0, 0, 0.9))
    cmd = torch.zeros(3, 28)
    for e in (engine, calm):
        e.set_cmd(0, cmd)
        e.step()
    engine.set_dof_vel(torch.tensor([1]), 0, torch.full((28,), float("nan")))
    for e in (engine, calm):
        e.step()
    assert engine.get_sim_failed().tolist() == [False, True, False]
    for name in (*STATES, "body_pos", "body_vel", "contact_forces"):
        assert torch.isfinite(getattr(engine, f"get_{name}")(0)).all(), name
        others = getattr(calm, f"get_{name}")(0)[[0, 2]]
        assert torch.equal(getattr(engine, f"get_{name}")(0)[[0, 2]], others), name
    engine.step()
    assert not engine.get_sim_failed().any()


def test_a_command_that_is_not_a_number_fails_its_simulation_alone() -> None:
    engine = make(HUMANOID, start_pos=(0, 0, 0.9))
    cmd = torch.zeros(3, 28)
    cmd[2, 4] = float("nan")
    engine.set_cmd(0, cmd)
    engine.step()
    assert engine.get_sim_failed().tolist() == [False, False, True]
    assert torch.isfinite(engine.get_body_pos(0)).all()


def test_a_saved_state_goes_on_as_if_nothing_had_been() -> None:
    def steps(engine: MujocoEngine, n: int) -> torch.Tensor:
        g = torch.Generator().manual_seed(1)
        for _ in range(n):
            engine.set_cmd(0, 0.3 * torch.randn(3, 28, generator=g))
            engine.step()
        return engine.get_body_pos(0)

    engine = make(HUMANOID, start_pos=(0, 0, 0.9))
    steps(engine, 20)
    state = engine.get_state()
    expected = steps(engine, 20)
    other = make(HUMANOID)
    other.set_state(state)
    assert torch.equal(steps(other, 20), expected)


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


def test_environments_must_hold_the_same_objects(asset: Callable[[str, str], Path]) -> None:
    engine = MujocoEngine({}, num_envs=2)
    engine.create_obj(engine.create_env(), ObjType.RIGID, asset("box", BOX), "box")
    with pytest.raises(ConfigError, match="environment 1, object 0"):
        engine.create_obj(engine.create_env(), ObjType.RIGID, HUMANOID, "box")


def test_self_collisions_can_be_switched_off() -> None:
    def crossed(self_collisions: bool) -> torch.Tensor:
        engine = make(HUMANOID, n=1, start_pos=(0, 0, 5), enable_self_collisions=self_collisions)
        dof = torch.zeros(1, 28)
        dof[0, 14], dof[0, 21] = 0.5, -0.5  # thighs through one another
        engine.set_dof_pos(None, 0, dof)
        return engine.get_contact_forces(0).abs().sum()

    assert float(crossed(True)) > 1.0
    assert float(crossed(False)) == 0.0
