"""Films in a process of its own and prints the seconds it took and what it took of memory (MB)."""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import torch
from gymnasium.envs.mujoco import MujocoEnv

from mimickit.anim.char_file import load_spec
from mimickit.video.config import VideoConfig
from tests.benchmarks.bench_recorder import CHAR_FILE, HEIGHT, WIDTH, film, standing_engine

_WARM_UP = 20  # frames of a first clip, which loads the GL driver and the encoder


def status_mb(key: str) -> float:
    """VmRSS (now) or VmHWM (peak) of this process in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/self/status has no {key}")


def forget_peak() -> None:
    """Start VmHWM anew from the present size."""
    Path("/proc/self/clear_refs").write_text("5")


class GymHumanoid(MujocoEnv):
    """The same humanoid as a Gymnasium user would set it up: a floor, a light, a sky."""

    metadata = {"render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"], "render_fps": 30}  # noqa: RUF012

    def __init__(self, xml: str) -> None:
        space = gymnasium.spaces.Box(-np.inf, np.inf, shape=(1,), dtype=np.float64)
        super().__init__(xml, 4, space, render_mode="rgb_array", width=WIDTH, height=HEIGHT, camera_id=-1)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Advance by 1/30 s."""
        self.do_simulation(action, self.frame_skip)
        return self.data.qpos[:1].copy(), 0.0, False, False, {}

    def reset_model(self) -> np.ndarray:
        """Stand in the file's own pose."""
        self.set_state(self.init_qpos, self.init_qvel)
        return self.data.qpos[:1].copy()


def gym_scene(folder: Path) -> str:
    """Path of an MJCF with the humanoid, a checkered floor, a sky and a light."""
    spec = load_spec(CHAR_FILE)
    spec.option.timestep = 1.0 / 120.0
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.add_texture(name="checks", type=mujoco.mjtTexture.mjTEXTURE_2D, builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
                     width=512, height=512, rgb1=[0.5, 0.5, 0.55], rgb2=[0.6, 0.6, 0.65])  # fmt: skip
    spec.add_texture(name="sky", type=mujoco.mjtTexture.mjTEXTURE_SKYBOX, builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
                     width=512, height=3072, rgb1=[0.6, 0.7, 0.9], rgb2=[0.9, 0.95, 1.0])  # fmt: skip
    material = spec.add_material(name="floor", texrepeat=[20, 20], texuniform=True)
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "checks"
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[50, 50, 1], material="floor")
    spec.worldbody.add_light(pos=[2, -2, 5], dir=[-0.4, 0.4, -1.0], castshadow=True)
    joint = next(joint for joint in spec.joints if joint.name == "abdomen_x")
    spec.add_actuator(name="drive", target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    path = folder / "scene.xml"
    path.write_text(spec.to_xml())
    return str(path)


def with_gymnasium(frames: int, folder: Path) -> None:
    """One episode through RecordVideo, written when the environment is closed."""
    clips = str(folder / f"gym{frames}")
    env = gymnasium.wrappers.RecordVideo(
        GymHumanoid(gym_scene(folder)), clips, episode_trigger=lambda _: True, disable_logger=True
    )
    env.reset(seed=0)
    for _ in range(frames - 1):
        env.step(np.zeros(1))
    env.close()


def main(what: str, frames: int) -> None:
    """Film a short clip to load what is loaded once, then the clip that is measured."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if what == "gymnasium":
            with_gymnasium(_WARM_UP, folder)
            forget_peak()
            before, start = status_mb("VmRSS"), time.perf_counter()
            with_gymnasium(frames, folder)
        else:
            engine = standing_engine(VideoConfig(enabled=True, out_dir=folder))
            film(engine, _WARM_UP)
            forget_peak()
            before, start = status_mb("VmRSS"), time.perf_counter()
            film(engine, frames)
        seconds = time.perf_counter() - start
        peak = status_mb("VmHWM")
    print(f"{seconds:.3f} {peak if what == 'peak' else peak - before:.1f}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
