"""What is Isaac Lab's alone: the conversion to USD and its cache, names, and that there is one simulation."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mimickit.anim.mjcf import read_mjcf
from mimickit.engines.engine import Engine, ObjType
from mimickit.engines.isaac_lab.names import INSTALL
from mimickit.registry import Kind, resolve
from mimickit.util.keys import ConfigError
from mimickit.util.rotations import exp_map_to_quat
from tests.anim.usd_robots import UsdRobot
from tests.engines.conformance.conftest import HUMANOID, Make, engine_names

if "isaac_lab" not in engine_names():
    pytest.skip("the engine isaac_lab is not installed, or another was named", allow_module_level=True)

# siblings in no alphabetical order, names that USD can't have, and two that are the same when they are written plainly
ODD = """<mujoco><compiler angle="radian"/><worldbody><body name="0-base"><geom size="0.1" mass="2"/>
<body name="z leg" pos="0.3 0 0"><joint name="z-knee" axis="0 1 0" range="-1 2" damping="1" stiffness="9"/>
 <geom type="capsule" size="0.05 0.1" mass="1"/>
 <body name="tip" pos="0 0 -0.2"><joint name="a" axis="0.6 0 0.8"/><geom size="0.03" mass="0.1" pos="0.1 0 0"/></body>
</body>
<body name="z_leg" pos="-0.3 0 0"><joint name="z_knee" axis="0 1 0"/>
 <geom type="capsule" size="0.05 0.1" mass="3"/></body>
<body name="b" pos="0 0.3 0">
 <joint name="bx" axis="1 0 0"/><joint name="by" axis="0 1 0"/><joint name="bz" axis="0 0 1"/>
 <geom type="box" size="0.1 0.05 0.02" mass="0.5"/></body>
</body></worldbody></mujoco>"""
BOX = """<mujoco><worldbody>
<body name="box"><geom type="box" size="0.1 0.1 0.1" mass="3"/></body></worldbody></mujoco>"""


@pytest.fixture
def engine_name() -> str:
    return "isaac_lab"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MIMICKIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "usd"


def solver_model(engine: Engine) -> Any:
    """The MjModel that Newton's solver made of the USD files."""
    return engine._physics._manager._solver.mj_model  # type: ignore[attr-defined]


def test_what_the_solver_reads_from_usd_is_what_mujoco_reads(make: Make) -> None:
    engine = make(n=1, mode="pos")
    ours, found = engine._scene.model, solver_model(engine)  # type: ignore[attr-defined]
    names = engine.get_obj_body_names(0)
    bodies = [next(b for b in range(found.nbody) if found.body(b).name.endswith(f"_{name}")) for name in names]
    for field in ("body_mass", "body_inertia", "body_ipos"):
        np.testing.assert_allclose(getattr(found, field)[bodies], getattr(ours, field)[1:], rtol=1e-3, atol=1e-6)
    jointed = [i for i in range(1, len(names)) if ours.body_jntnum[i + 1]]
    for field in ("jnt_type", "jnt_pos", "jnt_axis", "jnt_limited", "jnt_range"):
        expected = np.array([getattr(ours, field)[ours.body_jntadr[i + 1]] for i in jointed])
        np.testing.assert_allclose(
            np.array([getattr(found, field)[found.body_jntadr[bodies[i]]] for i in jointed]), expected, atol=1e-5
        )
    for field in ("dof_armature", "dof_frictionloss", "dof_damping", "dof_invweight0"):
        expected = np.concatenate([_dofs(ours, field, i + 1) for i in jointed])
        values = np.concatenate([_dofs(found, field, bodies[i]) for i in jointed])
        np.testing.assert_allclose(values, expected, rtol=1e-3, atol=1e-6)
    touching = [geom for geom in range(ours.ngeom) if ours.geom_contype[geom] or ours.geom_conaffinity[geom]]
    assert found.ngeom == len(touching)
    for field in ("geom_friction", "geom_solref", "geom_solimp", "geom_condim", "geom_contype", "geom_conaffinity"):
        expected = np.sort(np.array([getattr(ours, field)[geom] for geom in touching]), axis=0)
        np.testing.assert_allclose(np.sort(getattr(found, field), axis=0), expected, rtol=1e-5)
    assert found.nu == ours.nu  # a drive is one actuator, whose limit holds for both gains together


def _dofs(model: Any, field: str, body: int) -> np.ndarray:
    first = model.body_dofadr[body]
    return getattr(model, field)[first : first + model.body_dofnum[body]]


def test_names_that_usd_can_not_have_and_siblings_in_any_order(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "odd one.xml"
    path.write_text(ODD)
    engine = make(path, mode="pos", fix_root=True, start_pos=(0, 0, 3))
    reference = resolve(Kind.ENGINE, "mujoco")({"control_mode": "pos"}, num_envs=2)
    for _ in range(2):
        reference.create_obj(reference.create_env(), ObjType.ARTICULATED, path, "thing", fix_root=True,
                             start_pos=(0, 0, 3))  # fmt: skip
    reference.initialize_sim()
    assert engine.get_obj_body_names(0) == ["0-base", "z leg", "tip", "z_leg", "b"]
    dof = torch.tensor([[0.5, -0.3, 0.2, 0.4, -0.6, 0.1], [-0.4, 0.2, -0.7, 0.1, 0.3, 0.5]])
    for name in ("pos", "vel"):
        for one in (engine, reference):
            getattr(one, f"set_dof_{name}")(None, 0, dof)
    for name in ("body_pos", "body_rot", "body_vel", "body_ang_vel"):
        found, expected = (getattr(one, f"get_{name}")(0) for one in (engine, reference))
        torch.testing.assert_close(found.abs(), expected.abs(), atol=1e-5, rtol=1e-4)
    assert engine.get_obj_mass(0) == pytest.approx(reference.get_obj_mass(0), rel=1e-4)


@pytest.mark.usefixtures("cache")
def test_files_are_converted_once_for_what_they_hold(make: Make, cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "box.xml"
    path.write_text(BOX)
    assert make(path, mode="none").get_obj_mass(0) == pytest.approx(3.0)
    first = {file.name: file.stat().st_mtime_ns for file in cache.iterdir()}
    make(path, mode="none")
    assert {file.name: file.stat().st_mtime_ns for file in cache.iterdir()} == first
    path.write_text(BOX.replace('mass="3"', 'mass="4"'))
    assert make(path, mode="none").get_obj_mass(0) == pytest.approx(4.0)
    files = list(cache.iterdir())
    assert len(files) == len(first) + 1
    assert {file.suffix for file in files} == {".usdc"}  # nothing half-written


def test_a_single_body_can_be_fixed_and_carries(open_engine: Make, tmp_path: Path) -> None:
    path = tmp_path / "box.xml"
    path.write_text(BOX)
    engine = open_engine(1)
    engine.create_env()
    engine.create_obj(0, ObjType.RIGID, path, "table", fix_root=True, start_pos=(0, 0, 1))
    engine.create_obj(0, ObjType.RIGID, path, "cup", start_pos=(0, 0, 1.22))
    engine.initialize_sim()
    for _ in range(30):
        engine.step()
    torch.testing.assert_close(engine.get_root_pos(0), torch.tensor([[0.0, 0.0, 1.0]]))
    torch.testing.assert_close(engine.get_root_pos(1), torch.tensor([[0.0, 0.0, 1.2]]), atol=2e-3, rtol=0.0)
    assert engine.get_contact_forces(1)[0, 0, 2] == pytest.approx(3 * 9.81, rel=0.01)


def test_there_is_one_simulation_in_a_process(make: Make) -> None:
    engine = make(n=1)
    other = resolve(Kind.ENGINE, "isaac_lab")({}, num_envs=1)
    other.create_obj(other.create_env(), ObjType.ARTICULATED, HUMANOID, "thing")
    with pytest.raises(RuntimeError, match="one simulation"):
        other.initialize_sim()
    engine.step()  # it is unharmed
    engine.close()
    other.initialize_sim()
    other.step()
    other.close()


def test_a_step_as_a_graph_is_the_step(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from isaaclab_newton.physics import NewtonMJWarpManager

    from mimickit.engines.isaac_lab.manager import NewtonGraphManager

    def run() -> torch.Tensor:
        engine, g = make(start_pos=(0, 0, 0.9)), torch.Generator().manual_seed(0)
        for step in range(12):
            if step == 6:
                engine.reset_envs(torch.tensor([1]))
                engine.set_gravity((0.0, 1.0, -5.0))
            engine.set_cmd(0, 0.3 * torch.randn(2, 28, generator=g))
            engine.step()
        return torch.cat((engine.get_state().flatten(), engine.get_contact_forces(0).flatten()))

    graph = run()
    monkeypatch.setattr(NewtonGraphManager, "_simulate_physics_only", NewtonMJWarpManager._simulate_physics_only)
    assert torch.equal(graph, run())


@pytest.mark.parametrize(("physics", "told"), [("bullet", "physics"), ("physx", "Isaac Sim")])
def test_other_physics_are_refused_with_the_reason(physics: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        resolve(Kind.ENGINE, "isaac_lab")({"physics": physics}, num_envs=1)


def test_the_install_lines_are_those_of_the_requirements_file() -> None:
    text = Path("requirements-isaaclab.txt").read_text()
    for line in INSTALL.split(", then "):
        assert line in text


@pytest.mark.usefixtures("cache")
def test_usd_is_taken_as_it_is_where_it_says_all(make: Make, cache: Path, tmp_path: Path) -> None:
    from pxr import UsdPhysics

    robot = UsdRobot(tmp_path / "leg.usda")
    UsdPhysics.ArticulationRootAPI.Apply(robot.stage.GetDefaultPrim())
    hip = robot.body("hip", (0, 0, 0), mass=2.0, inertia=(0.02, 0.02, 0.02))
    thigh = robot.body("thigh", (0, 0, -0.2), mass=1.0, inertia=(0.01, 0.01, 0.001))
    arm = robot.body("arm", (0, 0, 0.2), mass=0.5, inertia=(0.01, 0.01, 0.001))
    robot.shape(hip, "Sphere", radius=0.1)
    knee = robot.joint("z_hip", "Revolute", (hip, thigh), (0, 0, -0.1), (0, 0, 0.1), axis="Y")
    robot.drive(knee, 1.0, 0.1, 30.0)
    robot.joint("a_shoulder", "Revolute", (hip, arm), (0, 0, 0.1), (0, 0, -0.1), axis="X")
    path = robot.save()
    engine = make(path, n=1, mode="pos", start_pos=(0, 0, 2))
    assert [file.name.partition("_")[0] for file in cache.iterdir()] == ["ground"]
    dofs = {joint.name: joint.dof_start for joint in read_mjcf(path).joints}
    dof = torch.zeros(1, 2)
    dof[0, dofs["z_hip"]], dof[0, dofs["a_shoulder"]] = 0.5, -0.3
    engine.set_dof_pos(None, 0, dof)
    rot = dict(zip(engine.get_obj_body_names(0), engine.get_body_rot(0)[0], strict=True))
    for body, about, angle in (("thigh", [0.0, 1.0, 0.0], 0.5), ("arm", [1.0, 0.0, 0.0], -0.3)):
        expected = exp_map_to_quat(angle * torch.tensor(about))
        torch.testing.assert_close(rot[body], expected, atol=1e-5, rtol=0.0)
    engine.set_cmd(0, engine.get_dof_pos(0))
    engine.step()
    assert engine.get_root_vel(0)[0, 2] == pytest.approx(-9.81 / 30, rel=0.05)
    assert engine.get_obj_mass(0) == pytest.approx(3.5)
    assert make(path, n=1, mode="pos", fix_root=True).get_obj_mass(0) == pytest.approx(3.5)  # which is converted
    assert len(list(cache.iterdir())) == 2


def test_environments_that_stand_side_by_side_have_their_own_origins() -> None:
    engine = resolve(Kind.ENGINE, "isaac_lab")({"control_mode": "pos", "env_spacing": 4.0}, num_envs=3)
    for env in range(3):
        engine.create_env()
        engine.create_obj(env, ObjType.ARTICULATED, HUMANOID, "thing", start_pos=(env, 0.0, 0.9))
    engine.initialize_sim()
    expected = torch.tensor([[0.0, 0.0, 0.9], [1.0, 0.0, 0.9], [2.0, 0.0, 0.9]])
    for found in (engine.get_root_pos(0), engine.get_body_pos(0)[:, 0]):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0.0)
    state = engine.get_state()
    engine.set_root_pos(torch.tensor([2]), 0, torch.tensor([7.0, 1.0, 0.9]))
    torch.testing.assert_close(engine.body_poses(2)[0][0][0], np.array([7.0, 1.0, 0.9]), atol=1e-5, rtol=0.0)
    engine.set_state(state)
    engine.set_cmd(0, engine.get_dof_pos(0))
    for _ in range(10):
        engine.step()
    assert float(engine.get_root_pos(0)[:, 2].min()) > 0.7  # it stands on the ground
    assert float((engine.get_root_pos(0) - expected)[:, :2].abs().max()) < 0.1
    engine.close()
