"""The cameras that engines bring themselves: what they draw, and that they need no GL."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mimickit.util.loading import load_object
from mimickit.video.camera.camera_rig import CameraPose
from mimickit.video.config import Quality
from mimickit.video.errors import VideoError
from mimickit.video.layout import Rect
from mimickit.video.snapshot import ActorSpec, Snapshot
from tests.engines.conformance.conftest import Make, engine_names
from tests.video.films import PENDULUM_BODIES, pendulum_pose, read_frames, write_pendulum

STAGES = {
    "newton": "mimickit.engines.newton.stage:NewtonStage",
    "isaac_lab": "mimickit.engines.isaac_lab.stage:IsaacLabStage",
}
STILL = {"camera": "still", "position": (0, -4, 1.2), "target": (0, 0, 0.7)}


@pytest.fixture(params=[name for name in engine_names() if name in STAGES])
def engine_name(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> str:
    record_property("engine", request.param)  # for the table in docs/engines.md
    return str(request.param)


@pytest.fixture
def no_gl(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise VideoError("no GL here")

    monkeypatch.setattr("mimickit.video.stage.gl.open_context", refuse)


def red(frame: np.ndarray) -> np.ndarray:
    f = frame.astype(int)
    return (f[..., 0] > 90) & (f[..., 0] > 1.6 * f[..., 1]) & (f[..., 0] > 1.6 * f[..., 2])


@pytest.mark.usefixtures("no_gl")
@pytest.mark.parametrize("options", [{}, {"envs": (0, 1)}, {"views": ["track", "still"]}])
def test_it_films_without_gl(make: Make, tmp_path: Path, options: dict[str, Any]) -> None:
    video = {"width": 128, "height": 96, "quality": "draft", "out_dir": tmp_path, "strict": True, **STILL, **options}
    engine = make(write_pendulum(tmp_path), mode="none", video=video, color=(1.0, 0.05, 0.05), start_pos=(0, 0, 1.0))
    with engine.recording():
        engine.step()
    clip = engine.get_video_recording()
    assert clip is not None
    frames = read_frames(clip.path)
    assert len(frames) == 2
    for frame in frames:
        assert red(frame).sum() > 30
        sky, ground = frame[4, 4].astype(int), frame[-4, 4].astype(int)
        assert sky[2] > sky[0] + 20  # blue
        assert np.ptp(ground) < 25  # grey


def test_a_ghost_is_seen_through_and_leaves_again(engine_name: str, tmp_path: Path) -> None:
    stage = load_object(STAGES[engine_name], "test")(
        [ActorSpec(name="p", asset_file=write_pendulum(tmp_path), color=(1.0, 0.05, 0.05))],
        width=128, height=96, device="cpu", ghosts_of=[0],
    )  # fmt: skip
    camera = CameraPose(eye=np.array([0.0, -4.0, 1.2]), target=np.array([0.0, 0.0, 0.7]), fov=45.0)

    def draw(ghosts: list[Any]) -> np.ndarray:
        moment = Snapshot(time=0.0, env_id=0, step=0, poses=[pendulum_pose()], ghosts=ghosts)
        stage.place(moment)
        stage.draw(camera, Rect(0, 0, 128, 96))
        return stage.read().copy()

    alone = draw([])
    beside = draw([(PENDULUM_BODIES + np.array([0.8, 0.0, 0.0]), pendulum_pose()[1])])
    changed = np.abs(beside.astype(int) - alone).sum(axis=-1) > 30
    assert changed.sum() > 100
    assert beside[changed][:, 2].astype(int).mean() > beside[changed][:, 0].astype(int).mean() + 20  # blue
    np.testing.assert_array_equal(draw([]), alone)
    with pytest.raises(VideoError, match="bodies"):
        stage.place(Snapshot(time=0.0, env_id=0, step=0, poses=[]))
    stage.close()


def test_fine_pictures_have_smooth_edges(engine_name: str, tmp_path: Path) -> None:
    camera = CameraPose(eye=np.array([0.0, -4.0, 1.2]), target=np.array([0.0, 0.0, 0.7]), fov=45.0)
    mixed = {}  # pixels that are neither the one nor the other
    for quality in (Quality.STANDARD, Quality.HIGH):
        actor = ActorSpec(name="p", asset_file=write_pendulum(tmp_path), color=(1.0, 0.05, 0.05))
        stage = load_object(STAGES[engine_name], "test")(
            [actor], width=128, height=96, device="cpu", quality=quality
        )  # fmt: skip
        stage.place(Snapshot(time=0.0, env_id=0, step=0, poses=[pendulum_pose()]))
        stage.draw(camera, Rect(0, 0, 128, 96))
        row = stage.read()[48].astype(int)  # across the bar: red between grey
        share = (row[:, 0] - row[:, 2]) / max(1, np.ptp(row[:, 0] - row[:, 2]))
        mixed[quality] = int(((share > 0.15) & (share < 0.6)).sum())
        stage.close()
    assert mixed[Quality.HIGH] > mixed[Quality.STANDARD], mixed


@pytest.mark.parametrize("quality", [Quality.STANDARD, Quality.HIGH])
def test_bands_on_all_cores_make_the_same_picture(
    engine_name: str, quality: Quality, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    actor = ActorSpec(name="p", asset_file=write_pendulum(tmp_path), color=(1.0, 0.05, 0.05))
    eyes = [(0.0, -4.0, 1.2), (0.0, -4.0, 1.2), (3.0, 1.0, 0.3), (1.0, -5.0, 9.0)]
    cameras = [
        CameraPose(eye=np.array(eye), target=np.array([0.0, 0.0, 0.7]), fov=fov)
        for eye, fov in zip(eyes, (45.0, 30.0, 60.0, 60.0), strict=True)
    ]

    def pictures(cores: int) -> list[np.ndarray]:
        monkeypatch.setattr("mimickit.engines.newton.bands._cores", lambda: cores)
        stage = load_object(STAGES[engine_name], "test")(
            [actor], width=129, height=107, device="cpu", quality=quality
        )  # fmt: skip
        stage.place(Snapshot(time=0.0, env_id=0, step=0, poses=[pendulum_pose()]))
        drawn = []
        for camera in cameras:
            stage.draw(camera, Rect(0, 0, 129, 107))
            drawn.append(stage.read().copy())
        stage.close()
        stage.close()
        return drawn

    for whole, banded in zip(pictures(1), pictures(3), strict=True):
        assert np.ptp(whole) > 100
        np.testing.assert_array_equal(banded, whole)
    assert not [thread for thread in threading.enumerate() if "mimickit-bands" in thread.name]


@pytest.mark.parametrize("height", [1, 15, 16, 31, 100, 480, 1080])
@pytest.mark.parametrize("cores", [1, 2, 7, 256])
def test_bands_are_every_row_once(engine_name: str, height: int, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    make = load_object("mimickit.engines.newton.bands:Bands", engine_name)
    monkeypatch.setattr("mimickit.engines.newton.bands._cores", lambda: cores)
    bands = make("cpu")
    rows = [row for top, count in bands.of(height) for row in range(top, top + count)]
    assert rows == list(range(height))
    assert (len(bands.of(height)) == 1) == (cores == 1 or height < 32)
    bands.close()


def test_a_band_that_fails_fails_the_picture(engine_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make = load_object("mimickit.engines.newton.bands:Bands", engine_name)
    monkeypatch.setattr("mimickit.engines.newton.bands._cores", lambda: 2)
    bands, drawn = make("cpu"), []

    def fail() -> None:
        raise ValueError("a band")

    with pytest.raises(ValueError, match="a band"):
        bands.draw([fail, *[lambda: drawn.append(1)] * 9], at_once=True)
    assert len(drawn) == 9
    bands.draw([lambda: drawn.append(1)] * 3, at_once=True)
    bands.close()
    assert len(drawn) == 12
