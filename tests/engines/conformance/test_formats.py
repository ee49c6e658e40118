"""Characters in URDF and USD move as what they say must move, on every engine."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from mimickit.anim.mjcf import read_mjcf
from tests.anim.robots import write_robot
from tests.anim.usd_robots import UsdRobot, require_usd
from tests.engines.conformance.conftest import Make

MASS, LENGTH, INERTIA, SIM_HZ = 1.7, 0.8, 0.05, 480
PENDULUM = f"""<robot name="pendulum">
  <link name="base"><inertial><mass value="1"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <link name="rod"><inertial><origin xyz="0 0 -{LENGTH}"/><mass value="{MASS}"/>
    <inertia ixx="{INERTIA}" ixy="0" ixz="0" iyy="{INERTIA}" iyz="0" izz="0.01"/></inertial></link>
  <joint name="swing" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint>
</robot>"""


def usd_pendulum(path: Path) -> Path:
    """The same, lying down in centimetres, its inertia about an origin that is its centre of mass."""
    robot = UsdRobot(path, meters=0.01)
    base = robot.body("base", (0, 0, 0), mass=1.0, inertia=(1e4, 1e4, 1e4))
    rod = robot.body("rod", (0, 0, -100 * LENGTH), mass=MASS, inertia=(1e4 * INERTIA, 1e4 * INERTIA, 100))
    robot.joint("swing", "Revolute", (base, rod), (0, 0, 0), (0, 0, 100 * LENGTH), axis="Y")
    return robot.save()


@pytest.mark.parametrize("kind", ["urdf", "usd"])
def test_a_pendulum_swings_in_its_time(make: Make, tmp_path: Path, kind: str) -> None:
    if kind == "usd":
        require_usd()
        path = usd_pendulum(tmp_path / "p.usda")
    else:
        path = write_robot(tmp_path / "p.urdf", text=PENDULUM)
    engine = make(path, n=1, mode="none", control=SIM_HZ, sim=SIM_HZ, fix_root=True, start_pos=(0, 0, 3))
    engine.set_dof_pos(None, 0, torch.tensor([[0.05]]))
    angles = []
    for _ in range(int(4.5 * SIM_HZ)):
        engine.step()
        angles.append(float(engine.get_dof_pos(0)[0, 0]))
    falls = [i + a / (a - b) for i, (a, b) in enumerate(zip(angles, angles[1:], strict=False)) if a > 0.0 >= b]
    period = (falls[1] - falls[0]) / SIM_HZ
    expected = 2 * math.pi * math.sqrt((INERTIA + MASS * LENGTH**2) / (MASS * 9.81 * LENGTH))
    assert period == pytest.approx(expected, rel=5e-3)


def test_a_continuous_joint_turns_on(make: Make, tmp_path: Path) -> None:
    engine = make(write_robot(tmp_path / "p.urdf", text=PENDULUM), n=1, mode="none", fix_root=True, start_pos=(0, 0, 3))
    engine.set_dof_vel(None, 0, torch.tensor([[30.0]]))
    for _ in range(30):
        engine.step()
    assert float(engine.get_dof_pos(0)[0, 0]) > 4 * math.pi


def test_a_robot_that_stands_is_as_heavy_as_its_links(make: Make, tmp_path: Path) -> None:
    path = write_robot(tmp_path / "hopper.urdf")
    home = read_mjcf(path).home
    engine = make(path, n=2, start_pos=home[:3] + np.array([0, 0, 0.02]), sim=240)
    for _ in range(90):  # it falls over, and lies
        engine.set_cmd(0, torch.zeros(2, 2))
        engine.step()
    force = torch.zeros(2)
    for _ in range(15):
        engine.set_cmd(0, torch.zeros(2, 2))
        engine.step()
        force += engine.get_ground_contact_forces(0)[..., 2].sum(-1).cpu() / 15
    weight = 9.81 * (4.0 + 1.5 + 0.5 + 0.2)
    assert engine.get_obj_mass(0) == pytest.approx(weight / 9.81, rel=1e-5)
    torch.testing.assert_close(force, torch.full((2,), weight), rtol=0.03, atol=0.0)
    lowest = engine.get_body_pos(0)[..., 2].min()
    assert 0.0 < float(lowest) < 0.2
