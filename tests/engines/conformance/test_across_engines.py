"""One file, one machine: masses, inertia, gains and limits are the same whichever engine reads it."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from mimickit.anim.mjcf import read_mjcf
from mimickit.engines.engine import Engine, ObjType
from mimickit.engines.mujoco_engine import MujocoEngine
from tests.engines.conformance.conftest import HUMANOID, Make, random_state, set_state

CONTROL, TOLERANCE = 1000, 1e-3


@pytest.fixture
def pair(make: Make) -> Callable[..., tuple[Engine, Engine]]:
    """The engine and the MuJoCo engine, in one random state without gravity, far from the ground."""

    def build(file: Path = HUMANOID, *, mode: str, dofs: int = 28) -> tuple[Engine, Engine]:
        reference = MujocoEngine({"control_mode": mode, "control_freq": CONTROL, "sim_freq": CONTROL}, num_envs=2)
        for _ in range(2):
            reference.create_obj(reference.create_env(), ObjType.ARTICULATED, file, "thing")
        reference.initialize_sim()
        engines = (make(file, mode=mode, control=CONTROL, sim=CONTROL), reference)
        state = random_state(2, dofs=dofs)
        for engine in engines:
            engine.set_gravity((0, 0, 0))
            set_state(engine, None, state)
        return engines

    return build


def gains_of_speed(engines: tuple[Engine, Engine]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """What a step changes of root velocities (num_envs, 6) and of dof velocities (num_envs, D)."""

    def speeds(engine: Engine) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.cat((engine.get_root_vel(0), engine.get_root_ang_vel(0)), dim=-1), engine.get_dof_vel(0)

    found = []
    for engine in engines:
        before = speeds(engine)
        engine.step()
        root, dof = (after - first for after, first in zip(speeds(engine), before, strict=True))
        found.append((root, dof))
    return found


def assert_same(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert float((found - expected).norm() / expected.norm()) < TOLERANCE


def test_masses(make: Make) -> None:
    engine = make(n=1)
    assert engine.get_obj_mass(0) == pytest.approx(sum(body.mass for body in read_mjcf(HUMANOID).bodies), rel=TOLERANCE)


@pytest.mark.parametrize("mode", ["torque", "pos", "vel", "pd_explicit"])
def test_the_same_command_gives_the_same_acceleration(
    pair: Callable[..., tuple[Engine, Engine]], mode: str
) -> None:
    """Inertia, armature, gains and friction are what a command meets; the mass matrix is that of a random pose."""
    engines = pair(mode=mode)
    for engine in engines:
        engine.set_dof_vel(None, 0, torch.zeros(28))
        engine.set_root_ang_vel(None, 0, torch.zeros(3))
    g = torch.Generator().manual_seed(2)
    cmd = torch.randn(2, 28, generator=g) * (20.0 if mode == "torque" else 0.1)
    if mode in ("pos", "pd_explicit"):
        cmd += engines[1].get_dof_pos(0)
    for engine in engines:
        engine.set_cmd(0, cmd)
    (root, dof), (expected_root, expected_dof) = gains_of_speed(engines)
    assert_same(root, expected_root)
    assert_same(dof, expected_dof)
    assert_same(engines[0].get_dof_forces(0), engines[1].get_dof_forces(0))


def test_the_same_spin_gives_the_same_precession(pair: Callable[..., tuple[Engine, Engine]]) -> None:
    """Without any force, velocities change by gyroscopic terms alone: by inertia and centres of mass."""
    (root, dof), (expected_root, expected_dof) = gains_of_speed(pair(mode="none"))
    assert_same(root, expected_root)
    assert_same(dof, expected_dof)


def test_a_body_without_symmetry_tumbles_the_same_way(
    pair: Callable[..., tuple[Engine, Engine]], tmp_path: Path
) -> None:
    path = tmp_path / "stone.xml"
    path.write_text("""<mujoco><worldbody><body name="root">
    <geom type="box" size="0.1 0.3 0.05" euler="20 30 40" pos="0.2 -0.1 0.1" mass="2"/>
    <geom type="cylinder" size="0.1 0.2" euler="0 70 0" pos="-0.3 0 0.1" mass="1.5"/>
    <geom type="ellipsoid" size="0.1 0.2 0.3" pos="0 0.4 0" mass="0.7"/></body></worldbody></mujoco>""")
    engines = pair(path, mode="none", dofs=0)
    for _ in range(200):
        for engine in engines:
            engine.step()
    assert_same(engines[0].get_root_ang_vel(0), engines[1].get_root_ang_vel(0))
    torch.testing.assert_close(engines[0].get_root_pos(0), engines[1].get_root_pos(0), atol=1e-3, rtol=1e-3)


def test_limits(make: Make) -> None:
    engine, reference = make(n=1), MujocoEngine({}, num_envs=1)
    reference.create_obj(reference.create_env(), ObjType.ARTICULATED, HUMANOID, "thing")
    reference.initialize_sim()
    torch.testing.assert_close(engine.get_obj_torque_limits(0), reference.get_obj_torque_limits(0))
    torch.testing.assert_close(engine.get_obj_dof_limits(0), reference.get_obj_dof_limits(0))
