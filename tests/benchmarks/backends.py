"""What is measured alike on every engine that has a renderer of its own."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import warp as wp

from mimickit.engines.engine import Engine
from mimickit.video.camera.camera_rig import CameraPose
from mimickit.video.config import VideoConfig
from tests.benchmarks.timing import Row, at_least, in_turns, within

WIDTH, HEIGHT, FRAMES = 854, 480, 25
EYE, TARGET, FOV = np.array([1.5, -3.5, 1.3]), np.array([0.0, 0.0, 0.8]), 45.0
VIEW = CameraPose(eye=EYE, target=TARGET, fov=FOV)  # rays cost what they meet: all see the same
FILM = {
    "width": WIDTH, "height": HEIGHT,
    "camera": "still", "position": tuple(EYE), "target": tuple(TARGET), "fov": FOV,
}  # fmt: skip


def recording(
    name: str,
    standing: Callable[[int, VideoConfig], Any],
    num_envs: int,
    renderer: str,
    drawing: Callable[[Any], Callable[[], object]],
) -> list[Row]:
    """The rows of an engine's recorder.

    standing: makes the engine with so many characters on the ground. drawing: makes of it what filming() wants.
    """
    with tempfile.TemporaryDirectory() as folder:
        video = VideoConfig.from_mapping({**FILM, "enabled": True, "out_dir": Path(folder)}, "benchmark")
        engine = standing(num_envs, video)
        rows = [not_filming(name, engine)]
        engine.close()
        engine = standing(1, video)
        rows.append(filming(name, engine, renderer, drawing(engine)))
        engine.close()
        return rows


def not_filming(name: str, engine: Engine) -> Row:
    """A step of an engine that has filmed and doesn't now, against the simulation alone."""
    with engine.recording():
        engine.step()

    def once(step: Callable[[], None]) -> None:
        step()
        wp.synchronize()

    spent = in_turns({"sim": lambda: once(engine._simulate), "step": lambda: once(engine.step)}, rounds=400, warmup=5)
    rate = {key: f"{engine.get_num_envs() / time:,.0f} steps/s" for key, time in spent.items()}
    return within(
        f"{name}: time with a recorder that is off", measured=rate["step"], baseline=f"no recorder {rate['sim']}",
        ratio=spent["step"] / spent["sim"], tolerance=0.02,
    )  # fmt: skip


def filming(name: str, engine: Engine, renderer: str, draw: Callable[[], object]) -> Row:
    """Frames a second of an engine with FILM, simulation and encoding included, against its renderer in a loop.

    draw: draws VIEW of the same scene and fetches the picture.
    """
    target = torch.zeros(1, engine.get_obj_num_dofs(0), device=engine.get_device())

    def bare() -> None:
        for _ in range(FRAMES):
            draw()

    def film() -> None:
        with engine.recording():
            for _ in range(FRAMES - 1):
                engine.set_cmd(0, target)
                engine.step()

    spent = in_turns({"bare": bare, "recorder": film}, rounds=5)
    rate = {key: f"{FRAMES / time:.1f} frames/s" for key, time in spent.items()}
    return at_least(
        f"{name}: recorder, encoding included, {WIDTH}x{HEIGHT}", measured=rate["recorder"],
        baseline=f"bare {renderer} {rate['bare']}", ratio=spent["bare"] / spent["recorder"], bound=0.9,
    )  # fmt: skip
