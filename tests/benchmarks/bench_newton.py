"""The Newton engine against a bare loop of Newton's solver, and its recorder against a bare loop of Newton's camera."""

import tempfile
from pathlib import Path

import newton
import numpy as np
import torch
import warp as wp

from mimickit.engines.engine import ObjType
from mimickit.engines.newton.scene import build_model
from mimickit.engines.newton.stage import NewtonStage
from mimickit.engines.newton_engine import NewtonEngine
from mimickit.video.config import VideoConfig
from tests.benchmarks.timing import Row, at_least, in_turns, within

CHAR_FILE = "data/assets/humanoid/humanoid.xml"
CONFIG = {"control_mode": "pos", "control_freq": 30, "sim_freq": 120}
DEVICE = "cuda:0" if torch.cuda.is_available() else "cpu"
NUM_ENVS, STEPS = (4096, 100) if DEVICE != "cpu" else (16, 20)
WIDTH, HEIGHT, FRAMES = 854, 480, 25


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


def stepping(folder: Path) -> list[Row]:
    """engine.step against the bare loop, and with video enabled but not recording."""
    off, on = standing(NUM_ENVS), standing(NUM_ENVS, VideoConfig(enabled=True, out_dir=folder))
    bare = BareLoop(off)

    def work(engine: NewtonEngine) -> None:
        engine.reset_envs(None)
        for _ in range(STEPS):
            engine.step()
        wp.synchronize()

    spent = in_turns({"bare": bare.run, "off": lambda: work(off), "on": lambda: work(on)}, rounds=15)
    on.close()
    off.close()
    rate = {name: f"{NUM_ENVS * STEPS / seconds:,.0f} steps/s" for name, seconds in spent.items()}
    return [
        at_least(f"Newton: engine.step, {NUM_ENVS} envs, {DEVICE}", measured=rate["off"],
                 baseline=f"bare SolverMuJoCo {rate['bare']}", ratio=spent["bare"] / spent["off"], bound=0.9),
        within("Newton: time with video enabled, not recording", measured=rate["on"],
               baseline=f"video off {rate['off']}", ratio=spent["on"] / spent["off"], tolerance=0.02),
    ]  # fmt: skip


def filming(folder: Path) -> Row:
    """Frames a second, simulation and encoding included, against Newton's camera drawing the same scene in a loop."""
    engine = standing(1, VideoConfig(enabled=True, out_dir=folder, width=WIDTH, height=HEIGHT))
    stage = NewtonStage(engine.stage_actors(0), width=WIDTH, height=HEIGHT, device=DEVICE)
    sensor, state, model = stage._sensor, stage._state, stage._model
    poses = np.zeros((model.body_count, 7), dtype=np.float32)
    poses[:-1] = np.concatenate(engine.body_poses(0)[0], axis=1)
    poses[-1, 6] = 1.0  # the ground
    state.body_q.assign(poses)
    color, world = sensor.allocate_image_color(1, WIDTH, HEIGHT), wp.zeros(1, dtype=wp.int32, device=DEVICE)
    rays = sensor.compute_camera_rays_pinhole(WIDTH, HEIGHT, camera_fov=0.8, device=DEVICE)
    level = wp.quat_from_axis_angle(wp.vec3(1.0, 0.0, 0.0), 1.5)

    def bare() -> None:
        for index in range(FRAMES):
            eye = wp.transform(wp.vec3(0.01 * index, -3.5, 1.1), level)
            where = wp.array([eye], dtype=wp.transformf, device=DEVICE)
            model.bvh_refit_shapes(state)
            sensor.update(state, where, rays, color_image=color, world_indices=world)
            color.numpy()

    def film() -> None:
        with engine.recording():
            for _ in range(FRAMES - 1):
                engine.set_cmd(0, torch.zeros(1, 28, device=DEVICE))
                engine.step()

    spent = in_turns({"bare": bare, "recorder": film}, rounds=5)
    engine.close()
    rate = {name: f"{FRAMES / seconds:.1f} frames/s" for name, seconds in spent.items()}
    return at_least(
        f"Newton: recorder, encoding included, {WIDTH}x{HEIGHT}", measured=rate["recorder"],
        baseline=f"bare SensorCamera {rate['bare']}", ratio=spent["bare"] / spent["recorder"], bound=0.9,
    )  # fmt: skip


def run() -> list[Row]:
    """All rows of Newton."""
    with tempfile.TemporaryDirectory() as folder:
        return [*stepping(Path(folder)), filming(Path(folder))]
