"""The Newton engine against a bare loop of Newton's solver, and its recorder against a bare loop of Newton's camera."""

import math
from collections.abc import Callable

import newton
import torch
import warp as wp

from mimickit.engines.engine import ObjType
from mimickit.engines.newton.scene import build_model
from mimickit.engines.newton.stage import NewtonStage
from mimickit.engines.newton.view import camera_transform
from mimickit.engines.newton_engine import NewtonEngine
from mimickit.video.config import VideoConfig
from mimickit.video.layout import Rect
from mimickit.video.snapshot import Snapshot
from tests.benchmarks.backends import FOV, HEIGHT, VIEW, WIDTH, recording
from tests.benchmarks.timing import Row, at_least, in_turns

CHAR_FILE = "data/assets/humanoid/humanoid.xml"
CONFIG = {"control_mode": "pos", "control_freq": 30, "sim_freq": 120}
DEVICE = "cuda:0" if torch.cuda.is_available() else "cpu"
NUM_ENVS, STEPS = (4096, 100) if DEVICE != "cpu" else (16, 20)


def standing(num_envs: int, video: VideoConfig | None = None) -> NewtonEngine:
    """Humanoids that hold their pose on the ground."""
    engine = NewtonEngine(CONFIG, num_envs=num_envs, device=DEVICE, video=video)
    for _ in range(num_envs):
        engine.create_obj(engine.create_env(), ObjType.ARTICULATED, CHAR_FILE, "humanoid", start_pos=(0, 0, 0.9))
    engine.initialize_sim()
    return engine


class BareLoop:
    """Nothing but Newton: its MuJoCo solver with its own defaults, on the engine's model, captured as a graph."""

    def __init__(self, engine: NewtonEngine) -> None:
        assert engine._scene is not None
        self._model = build_model(engine._scene.model, engine.get_num_envs(), DEVICE)
        solver = newton.solvers.SolverMuJoCo(self._model, integrator="implicitfast", nconmax=96, njmax=500)
        self._state, self._control = self._model.state(), self._model.control()
        dt, steps = engine.get_sim_timestep(), round(engine.get_timestep() / engine.get_sim_timestep())

        def control_step() -> None:
            for _ in range(steps):
                solver.step(self._state, self._state, self._control, None, dt)

        control_step()
        with wp.ScopedDevice(DEVICE), wp.ScopedCapture() as capture:
            control_step()
        self._graph = capture.graph
        self._start = wp.clone(engine._sim.state.joint_q), wp.clone(engine._sim.state.joint_qd)

    def run(self) -> None:
        wp.copy(self._state.joint_q, self._start[0])
        wp.copy(self._state.joint_qd, self._start[1])
        for _ in range(STEPS):
            wp.capture_launch(self._graph)
        wp.synchronize()


def stepping() -> Row:
    """engine.step against the bare loop."""
    engine = standing(NUM_ENVS)
    bare = BareLoop(engine)

    def work() -> None:
        engine.reset_envs(None)
        for _ in range(STEPS):
            engine.step()
        wp.synchronize()

    spent = in_turns({"bare": bare.run, "engine": work}, rounds=15)
    engine.close()
    rate = {name: f"{NUM_ENVS * STEPS / time:,.0f} steps/s" for name, time in spent.items()}
    return at_least(
        f"Newton: engine.step, {NUM_ENVS} envs, {DEVICE}", measured=rate["engine"],
        baseline=f"bare SolverMuJoCo {rate['bare']}", ratio=spent["bare"] / spent["engine"], bound=0.9,
    )  # fmt: skip


def drawing(engine: NewtonEngine) -> Callable[[], object]:
    """Draws backends.VIEW of the engine's scene with Newton's camera, as a user of Newton would."""
    stage = NewtonStage(engine.stage_actors(0), width=WIDTH, height=HEIGHT, device=DEVICE)
    stage.place(Snapshot(time=0.0, env_id=0, step=0, poses=engine.body_poses(0)))
    stage.draw(VIEW, Rect(0, 0, WIDTH, HEIGHT))  # places the bodies
    sensor, state, model = stage._sensor, stage._state, stage._model
    color, world = sensor.allocate_image_color(1, WIDTH, HEIGHT), wp.zeros(1, dtype=wp.int32, device=DEVICE)
    rays = sensor.compute_camera_rays_pinhole(WIDTH, HEIGHT, camera_fov=math.radians(FOV), device=DEVICE)

    def draw() -> None:
        where = wp.array([camera_transform(VIEW)], dtype=wp.transformf, device=DEVICE)
        model.bvh_refit_shapes(state)
        sensor.update(state, where, rays, color_image=color, world_indices=world)
        color.numpy()

    return draw


def run() -> list[Row]:
    """All rows of Newton."""
    return [stepping(), *recording("Newton", standing, NUM_ENVS, "SensorCamera", drawing)]
