"""The Isaac Lab engine against a bare loop of Isaac Lab on the same scene, and its recorder against a bare loop of
Isaac Lab's renderer. Isaac Lab has one simulation in a process, so that what is compared is built in turns.
"""

import statistics
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import warp as wp

from mimickit.engines.engine import ControlMode, ObjType
from mimickit.engines.isaac_lab.stage import IsaacLabStage, RendererView
from mimickit.engines.isaac_lab_engine import IsaacLabEngine
from mimickit.engines.newton.bands import Bands
from mimickit.video.config import VideoConfig
from mimickit.video.layout import Rect
from mimickit.video.snapshot import Snapshot
from tests.benchmarks.backends import EYE, HEIGHT, VIEW, WIDTH, recording
from tests.benchmarks.timing import Row, at_least, seconds

CHAR_FILE = "data/assets/humanoid/humanoid.xml"
CONFIG = {"control_mode": "pos", "control_freq": 30, "sim_freq": 120}
DEVICE = "cuda:0" if torch.cuda.is_available() else "cpu"
NUM_ENVS, STEPS = (4096, 100) if DEVICE != "cpu" else (16, 20)
BUILDS = 3


def standing(num_envs: int, video: VideoConfig | None = None) -> IsaacLabEngine:
    """Humanoids that hold their pose on the ground."""
    engine = IsaacLabEngine(CONFIG, num_envs=num_envs, device=DEVICE, video=video)
    for _ in range(num_envs):
        engine.create_obj(engine.create_env(), ObjType.ARTICULATED, CHAR_FILE, "humanoid", start_pos=(0, 0, 0.9))
    engine.initialize_sim()
    return engine


class BareLoop:
    """Isaac Lab as its users write it: the engine's scene, Isaac Lab's own manager, all substeps in one sim.step()."""

    def __init__(self, scene: Any) -> None:
        from isaaclab.scene import InteractiveScene
        from isaaclab.sim import SimulationContext
        from isaaclab_newton.physics import NewtonMJWarpManager

        from mimickit.engines.isaac_lab.api import open_api
        from mimickit.engines.isaac_lab.newton_physics import NewtonPhysics
        from mimickit.engines.isaac_lab.scene import asset_name, scene_config

        api = open_api("newton", DEVICE, "benchmark")
        physics = NewtonPhysics(scene, ControlMode.POS, substeps=4).config()
        physics.solver_cfg.class_type = physics.class_type = NewtonMJWarpManager
        config = api.simulation_config(dt=1 / 30, gravity=(0.0, 0.0, -9.81), physics=physics)
        self._sim = SimulationContext(config)
        self._scene = InteractiveScene(
            scene_config(scene, api, num_envs=NUM_ENVS, spacing=0.0, mode=ControlMode.POS)
        )
        self._sim.reset()
        self._robot = self._scene[asset_name(scene.objects[0])]
        self._pose = torch.tensor([[0.0, 0.0, 0.9, 0.0, 0.0, 0.0, 1.0]], device=DEVICE).repeat(NUM_ENVS, 1)
        self._target = torch.zeros(NUM_ENVS, self._robot.num_joints, device=DEVICE)

    def run(self) -> None:
        robot = self._robot
        robot.write_root_pose_to_sim_index(root_pose=self._pose)
        robot.write_root_velocity_to_sim_index(root_velocity=torch.zeros(NUM_ENVS, 6, device=DEVICE))
        robot.write_joint_position_to_sim_index(position=self._target)
        robot.write_joint_velocity_to_sim_index(velocity=self._target)
        for _ in range(STEPS):
            robot.actuators.target_command.set_position_index(value=self._target)
            self._scene.write_data_to_sim()
            self._sim.step(render=False)
            self._scene.update(1 / 30)
        wp.synchronize()

    def close(self) -> None:
        self._sim.clear_instance()


def run_engine(engine: IsaacLabEngine) -> None:
    """Steps from the start."""
    engine.reset_envs(None)
    target = torch.zeros(engine.get_num_envs(), engine.get_obj_num_dofs(0), device=DEVICE)
    for _ in range(STEPS):
        engine.set_cmd(0, target)
        engine.step()
    wp.synchronize()


def stepping() -> Row:
    """engine.step against the bare loop."""
    spent: dict[str, list[float]] = defaultdict(list)
    for _ in range(BUILDS):
        engine = standing(NUM_ENVS)
        scene = engine._scene
        spent["engine"] += [seconds(lambda: run_engine(engine)) for _ in range(4)][1:]  # noqa: B023  (called at once)
        engine.close()
        bare = BareLoop(scene)
        spent["bare"] += [seconds(bare.run) for _ in range(4)][1:]
        bare.close()
    median = {name: statistics.median(times) for name, times in spent.items()}
    rate = {name: f"{NUM_ENVS * STEPS / time:,.0f} steps/s" for name, time in median.items()}
    return at_least(
        f"Isaac Lab: engine.step, {NUM_ENVS} envs, {DEVICE}", measured=rate["engine"],
        baseline=f"bare Isaac Lab {rate['bare']}", ratio=median["bare"] / median["engine"], bound=0.9,
    )  # fmt: skip


def drawing(engine: IsaacLabEngine) -> Callable[[], object]:
    """Draws backends.VIEW of the engine's scene with Isaac Lab's renderer, as a user of Isaac Lab would."""
    stage = IsaacLabStage(engine.stage_actors(0), width=WIDTH, height=HEIGHT, device=DEVICE)
    stage.place(Snapshot(time=0.0, env_id=0, step=0, poses=engine.body_poses(0)))
    stage.draw(VIEW, Rect(0, 0, WIDTH, HEIGHT))  # places the bodies
    renderer, model, state = stage._sensor, stage._model, stage._state
    view = RendererView(renderer, WIDTH, HEIGHT, Bands(DEVICE, cores=1))
    view.shoot(VIEW)
    (whole,), (position, orientation) = view._bands, view._where
    data, intrinsics = whole.camera

    def draw() -> None:
        position.assign(EYE.astype(np.float32)[None])
        renderer.update_camera(data, position, orientation, intrinsics)
        model.bvh_refit_shapes(state)
        renderer.render(data)
        whole.color.numpy()

    return draw


def run() -> list[Row]:
    """All rows of Isaac Lab."""
    return [stepping(), *recording("Isaac Lab", standing, NUM_ENVS, "NewtonWarpRenderer", drawing)]
