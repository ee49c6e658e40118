"""Filming on the simulation's thread gives the film that filming beside it gives."""

from pathlib import Path

import numpy as np
import pytest
import torch

from mimickit.engines.engine import ObjType
from mimickit.engines.live_recorder import LiveRecorder
from mimickit.engines.mujoco_engine import MujocoEngine
from mimickit.video.config import VideoConfig
from mimickit.video.errors import VideoError
from mimickit.video.stage.stage_filmer import StageFilmer
from tests.video.films import read_frames, write_pendulum


class LiveEngine(MujocoEngine):
    """The MuJoCo engine with a camera that is asked at the moment."""

    def _make_recorder(self, config: VideoConfig) -> LiveRecorder:
        return LiveRecorder(self, config, StageFilmer())


def film(engine_class: type[MujocoEngine], folder: Path, steps: int = 5, **options: object) -> np.ndarray:
    video = VideoConfig(enabled=True, out_dir=folder, width=128, height=96, strict=True)
    engine = engine_class({"control_mode": "none"}, num_envs=1, video=video)
    engine.create_obj(engine.create_env(), ObjType.ARTICULATED, write_pendulum(folder), "p", start_pos=(0, 0, 1.0))
    engine.initialize_sim()
    engine.set_root_vel(None, 0, torch.tensor([3.0, 0.0, 1.0]))
    with engine.recording(**options):
        for _ in range(steps):
            engine.step()
    clip = engine.get_video_recording()
    assert clip is not None
    frames = read_frames(clip.path)
    engine.close()
    return np.stack(frames)


@pytest.mark.parametrize("options", [{}, {"views": ["track", "side"]}, {"fps": 15}])
def test_the_film_is_the_same(tmp_path: Path, options: dict[str, object]) -> None:
    np.testing.assert_array_equal(film(LiveEngine, tmp_path, **options), film(MujocoEngine, tmp_path, **options))


def test_slow_motion_shows_every_state_as_long_as_it_lasts(tmp_path: Path) -> None:
    frames = film(LiveEngine, tmp_path, steps=3, speed=0.5)
    assert len(frames) == 7
    moved = np.abs(np.diff(frames.astype(int), axis=0)).mean(axis=(1, 2, 3)) > 0.5
    assert moved.tolist() == [False, True, False, True, False, True]


def test_a_camera_that_fails_ends_the_clip_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise VideoError("the lens is covered")

    monkeypatch.setattr(StageFilmer, "shoot", fail)
    with pytest.raises(VideoError, match="covered"):
        film(LiveEngine, tmp_path)
