"""What is set is what is read, in the contract's units, frames and order, and in no other environment."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from mimickit.anim.mjcf import read_mjcf
from mimickit.engines.engine import Engine, ObjType
from mimickit.util.keys import ConfigError
from mimickit.util.rotations import exp_map_to_quat, quat_diff_angle, quat_mul, quat_rotate
from tests.engines.conformance.conftest import HUMANOID, Make, random_state, set_state

Write = Callable[[str, str], Path]
# a root whose centre of mass is far from its origin, and whose inertia has no axis along the body's
CROOKED = """<mujoco><worldbody><body name="root"><geom size="0.1" mass="2" pos="0.3 0.1 -0.2"/>
<geom type="box" size="0.1 0.2 0.05" euler="20 30 40" pos="-0.1 0 0.4" mass="1"/></body></worldbody></mujoco>"""


def read_state(engine: Engine, names: tuple[str, ...]) -> dict[str, torch.Tensor]:
    return {name: getattr(engine, f"get_{name}")(0) for name in names}


def test_states_that_are_set_are_read_back_at_once(make: Make) -> None:
    engine, state = make(n=3), random_state(3)
    set_state(engine, None, state)
    for name, value in state.items():
        torch.testing.assert_close(getattr(engine, f"get_{name}")(0), value, atol=1e-5, rtol=1e-5, msg=name)
    # derived quantities follow without a step
    torch.testing.assert_close(engine.get_body_pos(0)[:, 0], state["root_pos"])
    torch.testing.assert_close(engine.get_body_rot(0)[:, 0], state["root_rot"])
    torch.testing.assert_close(engine.get_body_vel(0)[:, 0], state["root_vel"], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(engine.get_body_ang_vel(0)[:, 0], state["root_ang_vel"], atol=1e-4, rtol=1e-4)


def test_body_velocities_are_the_derivative_of_body_poses(make: Make) -> None:
    engine = make(n=1, control=2000, sim=2000)
    engine.set_gravity((0, 0, 0))
    set_state(engine, None, random_state(1, seed=3))
    before, vel = engine.get_body_pos(0), engine.get_body_vel(0)
    engine.set_cmd(0, engine.get_dof_pos(0))
    engine.step()
    measured = (engine.get_body_pos(0) - before) / engine.get_timestep()
    mean = 0.5 * (vel + engine.get_body_vel(0))
    torch.testing.assert_close(measured, mean, atol=0.1, rtol=0.02)


def test_the_root_velocity_is_that_of_its_origin(make: Make, asset: Write) -> None:
    engine = make(asset("crooked", CROOKED), n=1, mode="none", start_pos=(0, 0, 5))
    vel, ang = torch.tensor([[1.0, -2.0, 0.5]]), torch.tensor([[0.3, 4.0, -2.0]])
    for first, second in (("vel", "ang_vel"), ("ang_vel", "vel")):  # in whichever order they are set
        engine.reset_envs(None)
        for name in (first, second):
            getattr(engine, f"set_root_{name}")(None, 0, vel if name == "vel" else ang)
        engine.set_root_rot(None, 0, exp_map_to_quat(torch.tensor([[0.5, -1.0, 0.3]])))
        torch.testing.assert_close(engine.get_root_vel(0), vel, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(engine.get_root_ang_vel(0), ang, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(engine.get_body_vel(0)[:, 0], vel, atol=1e-5, rtol=1e-5)


def test_what_a_getter_returns_is_the_callers_own(make: Make) -> None:
    engine = make()
    names = ("root_pos", "root_rot", "dof_pos", "dof_vel", "body_pos", "body_rot", "body_vel", "contact_forces")
    for name in names:
        first = getattr(engine, f"get_{name}")(0)
        copy = first.clone()
        first += 7.0
        torch.testing.assert_close(getattr(engine, f"get_{name}")(0), copy)
    pos, rot = engine.body_poses(0)[0]
    pos += 1.0
    rot += 1.0
    assert not np.allclose(engine.body_poses(0)[0][0], pos)


def test_setters_and_resets_touch_only_their_environments(make: Make) -> None:
    engine = make(n=4)
    set_state(engine, None, random_state(4))
    names = (*random_state(1), "body_pos", "body_rot")
    before = read_state(engine, names)
    ids = torch.tensor([2, 0])
    new = random_state(2, seed=9)
    set_state(engine, ids, new)
    for name, value in new.items():
        torch.testing.assert_close(getattr(engine, f"get_{name}")(0)[ids], value, atol=1e-5, rtol=1e-5)
    engine.reset_envs(torch.tensor([0]))
    after = read_state(engine, names)
    for name, value in before.items():
        torch.testing.assert_close(after[name][[1, 3]], value[[1, 3]], atol=1e-6, rtol=1e-6, msg=name)
    assert torch.equal(engine.get_root_pos(0)[0], torch.zeros(3))
    assert engine.get_dof_vel(0)[0].abs().max() == 0.0


def test_a_reset_environment_goes_on_as_a_new_one(make: Make) -> None:
    def steps(engine: Engine, seed: int) -> torch.Tensor:
        g = torch.Generator().manual_seed(seed)
        for _ in range(10):
            engine.set_cmd(0, 0.3 * torch.randn(2, 28, generator=g))
            engine.step()
        return engine.get_body_pos(0)

    expected = steps(make(start_pos=(0, 0, 0.9)), 2)
    engine = make(start_pos=(0, 0, 0.9))
    steps(engine, 1)
    engine.set_body_forces(None, 0, 0, torch.tensor([100.0, 0.0, 0.0]))
    engine.reset_envs(None)
    assert engine.get_sim_time(0) == 0.0
    assert torch.equal(steps(engine, 2), expected)


def test_the_order_of_bodies_and_dofs_is_the_files(make: Make) -> None:
    engine, info = make(n=1, fix_root=True, start_pos=(0, 0, 3)), read_mjcf(HUMANOID)
    assert engine.get_obj_body_names(0) == [body.name for body in info.bodies]
    assert engine.get_obj_num_dofs(0) == info.num_dofs
    rest = engine.get_body_rot(0)[0]
    for joint in info.joints:
        if not joint.dof_dim:
            continue
        dof = torch.zeros(1, info.num_dofs)
        dof[0, joint.dof_start : joint.dof_start + joint.dof_dim] = 0.4
        engine.set_dof_pos(None, 0, dof)
        turned = {i for i, angle in enumerate(quat_diff_angle(engine.get_body_rot(0)[0], rest)) if angle > 0.01}
        below = {i for i in range(len(info.bodies)) if joint.body in _ancestry(info, i)}
        assert turned == below, joint.name


def _ancestry(info: object, body: int) -> set[int]:
    bodies, found = info.bodies, set()  # type: ignore[attr-defined]
    while body >= 0:
        found.add(body)
        body = bodies[body].parent
    return found


def test_a_ball_joint_is_an_exponential_map_about_the_childs_axes(make: Make) -> None:
    engine = make(n=1, fix_root=True, start_pos=(0, 0, 3))
    joint = next(joint for joint in read_mjcf(HUMANOID).joints if joint.dof_dim == 3)
    where = slice(joint.dof_start, joint.dof_start + 3)
    rest = engine.get_body_rot(0)[:, joint.body]
    dof = torch.zeros(1, 28)
    dof[0, where] = torch.tensor([0.7, -0.4, 0.9])
    engine.set_dof_pos(None, 0, dof)
    turned = engine.get_body_rot(0)[:, joint.body]
    torch.testing.assert_close(turned, quat_mul(rest, exp_map_to_quat(dof[:, where])), atol=1e-5, rtol=1e-5)
    spin = torch.zeros(1, 28)
    spin[0, where] = torch.tensor([1.0, 2.0, -3.0])  # in the child's frame
    engine.set_dof_vel(None, 0, spin)
    expected = quat_rotate(turned, spin[:, where])
    torch.testing.assert_close(engine.get_body_ang_vel(0)[:, joint.body], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("angle", [4.0, -3.5, 6.0])
def test_exponential_maps_beyond_pi_are_the_same_rotation(make: Make, angle: float) -> None:
    engine = make(n=1)
    dof = torch.zeros(1, 28)
    dof[0, 6:9] = torch.tensor([0.0, angle, 0.0])
    engine.set_dof_pos(None, 0, dof)
    read = engine.get_dof_pos(0)[0, 6:9]
    assert float(read.norm()) <= math.pi + 1e-5
    assert float(quat_diff_angle(exp_map_to_quat(read), exp_map_to_quat(dof[0, 6:9]))) < 1e-3


def test_a_fixed_root_stays_where_it_is_put(make: Make) -> None:
    engine = make(fix_root=True, start_pos=(1, 2, 3))
    engine.set_root_pos(torch.tensor([1]), 0, torch.tensor([0.0, 0.0, 2.0]))
    for _ in range(3):
        engine.set_cmd(0, torch.zeros(2, 28))
        engine.step()
    expected = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 2.0]])
    torch.testing.assert_close(engine.get_root_pos(0), expected)
    torch.testing.assert_close(engine.get_body_pos(0)[:, 0], expected)
    with pytest.raises(ValueError, match="fixed"):
        engine.set_root_vel(None, 0, torch.zeros(3))


def test_a_saved_state_goes_on_as_if_nothing_had_been(make: Make) -> None:
    def steps(engine: Engine, n: int) -> torch.Tensor:
        g = torch.Generator().manual_seed(1)
        for _ in range(n):
            engine.set_cmd(0, 0.3 * torch.randn(2, 28, generator=g))
            engine.step()
        return engine.get_body_pos(0)

    engine = make(start_pos=(0, 0, 0.9))
    steps(engine, 10)
    state = engine.get_state()
    expected = steps(engine, 10)
    other = make()
    other.set_state(state)
    torch.testing.assert_close(steps(other, 10), expected, atol=0.0, rtol=0.0)
    assert other.get_sim_time(0) == pytest.approx(20 / 30)
    with pytest.raises(ConfigError, match="set_state"):
        other.set_state(state[:, :-1])


def test_environments_hold_several_objects_each_with_a_place_of_its_own(open_engine: Make) -> None:
    engine = open_engine(2, mode="pos")
    for env in range(2):
        engine.create_env()
        engine.create_obj(env, ObjType.ARTICULATED, HUMANOID, "one", start_pos=(0, 0, 1 + env))
        engine.create_obj(env, ObjType.ARTICULATED, HUMANOID, "ghost", is_visual=True, start_pos=(0, 1, 1 + env))
    engine.initialize_sim()
    assert (engine.get_objs_per_env(), engine.get_obj_type(1)) == (2, ObjType.ARTICULATED)
    torch.testing.assert_close(engine.get_root_pos(1), torch.tensor([[0.0, 1, 1], [0, 1, 2]]))
    before = engine.get_body_pos(1)
    with pytest.raises(ValueError, match="ghost"):
        engine.set_cmd(1, torch.zeros(2, 28))
    for _ in range(3):
        engine.step()
    torch.testing.assert_close(engine.get_body_pos(1), before, atol=1e-4, rtol=0.0)  # it falls nowhere
    assert (engine.get_root_pos(0)[:, 2] < torch.tensor([1.0, 2.0])).all()
    assert engine.get_contact_forces(1).abs().max() == 0.0


def test_a_turn_of_the_root_leaves_its_velocities(make: Make) -> None:
    engine, state = make(n=3), random_state(3)
    set_state(engine, None, state)
    turned = quat_mul(exp_map_to_quat(torch.tensor([0.3, 0.2, -1.0])).expand(3, 4), state["root_rot"])
    engine.set_root_rot(None, 0, turned)
    for name in ("root_vel", "root_ang_vel"):
        torch.testing.assert_close(getattr(engine, f"get_{name}")(0), state[name], atol=1e-5, rtol=1e-5, msg=name)
