"""Every engine films itself by the same rules."""

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mimickit.engines.engine import Engine
from mimickit.video.clip import Clip
from tests.engines.conformance.conftest import ENGINES, Make
from tests.video.films import center_of, read_frames, write_pendulum

SMALL: dict[str, Any] = {"width": 128, "height": 96, "quality": "draft", "overlay": "none"}
RED = (1.0, 0.05, 0.05)
STILL = {"camera": "still", "position": (0, -4, 1.2), "target": (0, 0, 0.7)}

Open = Callable[..., Engine]


@pytest.fixture
def pendulums(make: Make, tmp_path: Path) -> Open:
    """Red pendulums that fall."""

    def build(n: int = 2, **video: Any) -> Engine:
        options = {**SMALL, "out_dir": tmp_path / "videos", **video}
        path = write_pendulum(tmp_path)
        return make(path, n=n, mode="none", video=options, color=RED, start_pos=(0, 0, 1.0))

    return build


def film(engine: Engine, count: int, **options: Any) -> Clip:
    with engine.recording(**options):
        for _ in range(count):
            engine.step()
    clip = engine.get_video_recording()
    assert clip is not None
    return clip


def red(frame: np.ndarray) -> np.ndarray:
    f = frame.astype(int)
    return (f[..., 0] > 90) & (f[..., 0] > 1.6 * f[..., 1]) & (f[..., 0] > 1.6 * f[..., 2])


def test_off_costs_nothing(pendulums: Open, tmp_path: Path) -> None:
    engine, threads = pendulums(), threading.active_count()
    for _ in range(3):
        engine.step()
    assert not engine.is_recording_video()
    assert engine.get_video_recordings() == []
    assert threading.active_count() == threads
    assert not (tmp_path / "videos").exists()


def test_filming_leaves_the_physics_alone(pendulums: Open) -> None:
    states = []
    for camera in (None, "track", "orbit"):
        engine = pendulums()
        engine.set_root_vel(None, 0, torch.tensor([1.0, 0.5, 2.0]))
        if camera is None:
            for _ in range(12):
                engine.step()
        else:
            film(engine, 12, camera=camera)
        states.append(engine.get_state())
    assert torch.equal(states[0], states[1])
    assert torch.equal(states[0], states[2])


@pytest.mark.parametrize("count", [0, 1, 7])
def test_n_steps_are_n_plus_one_frames(pendulums: Open, count: int) -> None:
    clip = film(pendulums(), count)
    assert clip.num_frames == len(read_frames(clip.path)) == count + 1


def test_the_first_frame_is_the_start_and_the_last_that_after_the_last_step(pendulums: Open) -> None:
    engine = pendulums(**STILL)
    frames = read_frames(film(engine, 6).path)
    (last,) = read_frames(film(engine, 0).path)
    engine.reset_envs(None)
    (first,) = read_frames(film(engine, 0).path)
    for lone, frame in ((first, frames[0]), (last, frames[6])):
        assert np.abs(lone.astype(int) - frame).mean() < 6
    assert center_of(red(last))[1] > center_of(red(first))[1] + 3  # it fell


def test_a_teleport_is_on_film_at_once(pendulums: Open) -> None:
    engine = pendulums(**STILL)
    with engine.recording():
        engine.step()
        engine.set_root_pos(None, 0, torch.tensor([5.0, 0.0, 1.0]))
        engine.step()
    clip = engine.get_video_recording()
    assert clip is not None
    seen = [int(red(frame).sum()) for frame in read_frames(clip.path)]
    assert seen[0] > 30
    assert seen[1] > 30
    assert seen[2] == 0


def test_the_filmed_environment_is_the_one_on_film(pendulums: Open) -> None:
    engine = pendulums(3, env=1, **STILL)
    engine.set_root_pos(torch.tensor([0, 2]), 0, torch.tensor([0.0, 0.0, 50.0]))
    assert red(read_frames(film(engine, 0).path)[0]).sum() > 30
    engine.set_root_pos(None, 0, torch.tensor([[0.0, 0, 1], [0, 0, 50], [0, 0, 1]]))
    assert red(read_frames(film(engine, 0).path)[0]).sum() == 0


@pytest.mark.parametrize("place", [(0.0, 0.0), (50.0, -30.0)])
def test_track_follows_and_still_stays(pendulums: Open, place: tuple[float, float]) -> None:
    engine = pendulums()
    engine.set_root_pos(None, 0, torch.tensor([*place, 1.0]))
    for camera, near_middle in (("track", True), ("still", False)):
        engine.set_root_vel(None, 0, torch.tensor([6.0, 0.0, 2.0]))
        last = read_frames(film(engine, 12, camera=camera).path)[-1]
        found = red(last)
        assert (found.any() and abs(center_of(found)[0] - 64) < 25) == near_middle


NEVER_STOPPED = """
import sys
from mimickit.engines.engine import ObjType
from mimickit.registry import Kind, resolve
from mimickit.video.config import VideoConfig

name, pendulum, out_dir = sys.argv[1:]
video = VideoConfig.from_mapping({"width": 128, "height": 96, "out_dir": out_dir}, "test")
engine = resolve(Kind.ENGINE, name)({"control_mode": "none"}, num_envs=1, video=video)
engine.create_obj(engine.create_env(), ObjType.ARTICULATED, pendulum, "thing", start_pos=(0, 0, 1))
engine.initialize_sim()
engine.start_video_recording()
for _ in range(6):
    engine.step()
"""


def test_a_program_that_ends_while_filming_has_its_film(engine_name: str, tmp_path: Path) -> None:
    name, pendulum = ENGINES.get(engine_name, engine_name), write_pendulum(tmp_path)
    command = [sys.executable, "-c", NEVER_STOPPED, name, str(pendulum), str(tmp_path / "videos")]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    (clip,) = (tmp_path / "videos").glob("*.mp4")
    assert len(read_frames(clip)) == 7, told
    assert not list((tmp_path / "videos").glob("*.part"))
