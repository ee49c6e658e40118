"""The recorder on the MuJoCo engine: what is on the film, and what it costs the simulation (nothing)."""

import gc
import json
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mimickit.engines.engine import ObjType
from mimickit.engines.mujoco_engine import MujocoEngine
from mimickit.util.keys import ConfigError
from mimickit.video.clip import Clip
from mimickit.video.config import VideoConfig
from tests.video.films import PENDULUM_BODIES, center_of, duration, read_frames, write_pendulum

SMALL: dict[str, Any] = {"width": 128, "height": 96, "quality": "draft"}
CONTROL = {"control_mode": "none", "control_freq": 30, "sim_freq": 120}
RED, GREEN = (1.0, 0.05, 0.05), (0.05, 1.0, 0.05)
STILL = {"camera": "still", "position": (0, -4, 1.2), "target": (0, 0, 0.7)}


def make(
    folder: Path, *, num_envs: int = 1, red_env: int | None = None, config: dict[str, Any] = CONTROL, **video: Any
) -> MujocoEngine:
    """Pendulums that hang in the air or fall; green, but for the one that is to be filmed."""
    asset = write_pendulum(folder)
    options = VideoConfig.from_mapping({**SMALL, "out_dir": folder / "videos", **video}, "test")
    engine = MujocoEngine(config, num_envs=num_envs, video=options)
    for env in range(num_envs):
        color = GREEN if red_env is not None and env != red_env else RED
        engine.create_obj(engine.create_env(), ObjType.ARTICULATED, asset, "p", color=color, start_pos=[0, 0, 1.0])
    engine.initialize_sim()
    return engine


def step(engine: MujocoEngine, count: int) -> None:
    for _ in range(count):
        engine.step()


def film(engine: MujocoEngine, count: int, path: Path | None = None, **options: Any) -> Clip:
    with engine.recording(path, **options):
        step(engine, count)
    clip = engine.get_video_recording()
    assert clip is not None
    return clip


def red(frame: np.ndarray) -> np.ndarray:
    f = frame.astype(int)
    return (f[..., 0] > 90) & (f[..., 0] > 1.6 * f[..., 1]) & (f[..., 0] > 1.6 * f[..., 2])


def side(clip: Clip) -> dict[str, Any]:
    return json.loads(clip.side_file.read_text())


@pytest.mark.parametrize("count", [1, 10])
def test_n_steps_are_n_plus_one_frames(tmp_path: Path, count: int) -> None:
    engine = make(tmp_path)
    clip = film(engine, count)
    assert clip.num_frames == len(read_frames(clip.path)) == count + 1
    assert [(e.first_frame, e.num_frames, e.length) for e in clip.episodes] == [(0, count + 1, count)]
    engine.close()


def test_the_first_frame_is_the_state_at_the_start_and_the_last_that_after_the_last_step(tmp_path: Path) -> None:
    """A pendulum falls past a still camera; each frame against the one that films that state alone."""
    engine = make(tmp_path, **STILL)
    clip = film(engine, 6)
    frames = read_frames(clip.path)
    engine.reset_envs(None)
    heights = []
    for index in (0, 6):
        step(engine, index - len(heights) if index else 0)
        while round(engine.get_sim_time(0) * 30) < index:
            engine.step()
        lone = film(engine, 0)
        (frame,) = read_frames(lone.path)
        assert np.abs(frame.astype(int) - frames[index]).mean() < 6
        heights.append(center_of(red(frame))[1])
    assert heights[1] > heights[0] + 3
    engine.close()


def test_a_start_without_a_step_is_a_film_of_one_frame(tmp_path: Path) -> None:
    engine = make(tmp_path)
    clip = film(engine, 0)
    assert clip.num_frames == len(read_frames(clip.path)) == 1
    engine.close()


def test_a_teleport_is_on_film_at_once(tmp_path: Path) -> None:
    engine = make(tmp_path, **STILL)
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
    engine.close()


@pytest.mark.parametrize("place", [(0.0, 0.0), (50.0, -30.0)])
def test_track_follows_and_still_stays(tmp_path: Path, place: tuple[float, float]) -> None:
    engine = make(tmp_path)
    engine.set_root_pos(None, 0, torch.tensor([*place, 1.0]))
    for camera, near_middle in (("track", True), ("still", False)):
        engine.set_root_vel(None, 0, torch.tensor([6.0, 0.0, 2.0]))
        last = read_frames(film(engine, 12, camera=camera).path)[-1]
        found = red(last)
        assert (found.any() and abs(center_of(found)[0] - 64) < 25) == near_middle
    engine.close()


def test_episodes_their_boundaries_and_outcomes(tmp_path: Path) -> None:
    engine = make(tmp_path)
    recorder = engine.get_video_recorder()
    recorder.set_context(name="swing it", samples=1234, seed=5, model_file=Path("m.pt"), run="a")
    with engine.recording():
        for number, length in enumerate((3, 4, 2)):
            engine.reset_envs(None)
            recorder.begin_episode({"episode": 10 + number})
            for _ in range(length):
                engine.step()
                recorder.annotate(episode_return=torch.tensor(1.5), reward=np.float32(0.5))
            if number < 2:
                recorder.end_episode(length, 1.5 * length, "fail" if number else "time", {"dist": np.float64(2.0)})
        engine.reset_envs(None)
        recorder.begin_episode({"episode": 13})  # never stepped: not on the film
    clip = recorder.last_clip
    assert clip is not None
    assert clip.path.name == "swing_it_000000001234.mp4"
    facts = side(clip)
    assert [(e["first_frame"], e["num_frames"], e["length"]) for e in facts["episodes"]] == [
        (0, 4, 3), (4, 5, 4), (9, 3, 2),
    ]  # fmt: skip
    assert [(e["return"], e["outcome"]) for e in facts["episodes"]] == [
        (4.5, "time"), (6.0, "fail"), (None, "unfinished"),
    ]  # fmt: skip
    assert [e["info"] for e in facts["episodes"]] == [
        {"episode": 10, "dist": 2.0}, {"episode": 11, "dist": 2.0}, {"episode": 12},
    ]  # fmt: skip
    assert (facts["seed"], facts["model_file"], facts["samples"], facts["engine"]) == (5, "m.pt", 1234, "mujoco")
    assert facts["context"] == {"run": "a"}
    assert facts["num_frames"] == len(read_frames(clip.path)) == 12
    assert Clip.load(clip.side_file) == clip
    engine.close()


@pytest.mark.parametrize(
    ("fps", "frames", "rate"),
    [(None, 31, 30), (30, 31, 30), (15, 16, 15), (10, 11, 10), (20, 21, 20), (12.5, 13, 12.5)],
)
def test_frame_rates_keep_real_time(tmp_path: Path, fps: float | None, frames: int, rate: float) -> None:
    """Control step 1/30 s, physics step 1/120 s: 30 steps last a second."""
    engine = make(tmp_path, fps=fps)
    clip = film(engine, 30)
    assert clip.num_frames == len(read_frames(clip.path)) == frames
    assert clip.fps == rate
    assert duration(clip.path) == pytest.approx(1.0, abs=1 / rate + 0.01)
    engine.close()


def test_a_higher_rate_than_there_are_states_is_lowered_with_a_note(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = make(tmp_path, fps=60)
    with caplog.at_level("INFO", "mimickit.video"):
        clips = [film(engine, 3) for _ in range(2)]
    assert clips[0].fps == 30
    assert "60" in side(clips[0])["notes"][0]
    assert sum("60 asked for" in record.message for record in caplog.records) == 1
    engine.close()


def test_an_odd_size_is_rounded_up_with_a_note(tmp_path: Path) -> None:
    engine = make(tmp_path, width=127, height=95)
    clip = film(engine, 2)
    assert (clip.width, clip.height) == (128, 96)
    assert read_frames(clip.path)[0].shape == (96, 128, 3)
    assert "127x95" in side(clip)["notes"][0]
    engine.close()


def test_the_same_folder_twice_keeps_the_older_clips(tmp_path: Path) -> None:
    engine = make(tmp_path)
    clips = [film(engine, count) for count in (1, 2, 3)]
    clips += [film(engine, 4, tmp_path / "videos" / "film.mp4"), film(engine, 5, tmp_path / "videos")]
    assert [len(read_frames(clip.path)) for clip in clips] == [2, 3, 4, 5, 6]
    assert sorted(p.name for p in (tmp_path / "videos").iterdir()) == sorted(
        f"film{number}.{kind}" for number in ("", "_001", "_002", "_003", "_004") for kind in ("mp4", "json", "trace")
    )
    engine.close()


def test_the_filmed_environment_of_many(tmp_path: Path) -> None:
    """Of 4096 environments the last is filmed, and no more than that one is copied."""
    engine = make(tmp_path, num_envs=4096, red_env=4095, env=4095)
    recorder = engine.get_video_recorder()
    with engine.recording():
        engine.step()
        assert recorder._tape.pending is not None
        (pending,) = recorder._tape.pending
        assert sum(pos.size + rot.size for pos, rot in pending.poses) == PENDULUM_BODIES.shape[0] * 7
        for values in (values for pose in pending.poses for values in pose):
            assert values.base is None or values.base.nbytes == values.nbytes  # no view of all environments' state
    clip = recorder.last_clip
    assert clip is not None
    assert clip.env_id == 4095
    assert all(red(frame).sum() > 20 for frame in read_frames(clip.path))
    engine.close()


@pytest.mark.parametrize("ghost", ["off", "on", "beside"])
def test_a_ghost_is_on_film_and_not_in_the_physics(tmp_path: Path, ghost: str) -> None:
    engine = make(tmp_path, ghost=ghost, width=320, height=240)
    recorder = engine.get_video_recorder()
    with engine.recording():
        recorder.begin_episode()
        assert recorder.wants_ghost  # the trace keeps it, whether it is seen or not
        for _ in range(3):
            recorder.set_ghost([(PENDULUM_BODIES + np.array([0.3, 0, 0]), torch.tensor([[0.0, 0, 0, 1]] * 3))])
            engine.step()
    clip = recorder.last_clip
    assert clip is not None
    for frame in read_frames(clip.path):
        f = frame[100:].astype(int)
        blue = (f[..., 2] > f[..., 0] + 40).sum()
        assert (blue > 100) == (ghost != "off")
    other = make(tmp_path)
    step(other, 3)
    assert torch.equal(engine.get_state(), other.get_state())
    engine.close()
    other.close()


def test_two_engines_film_side_by_side(tmp_path: Path) -> None:
    engines = [make(tmp_path, red_env=env) for env in (0, 1)]  # a red one and a green one
    for engine in engines:
        engine.start_video_recording()
    for _ in range(10):
        for engine in engines:
            engine.step()
    clips = [engine.stop_video_recording() for engine in engines]
    for clip, is_red in zip(clips, (True, False), strict=True):
        assert clip is not None
        frames = read_frames(clip.path)
        assert len(frames) == 11
        assert all((red(frame).sum() > 20) == is_red for frame in frames)
    for engine in engines:
        engine.close()


def test_video_on_and_off_give_bit_identical_states(tmp_path: Path) -> None:
    states = []
    for filming in (False, True):
        engine = make(tmp_path, num_envs=4, env=2, overlay=True)
        trace = []
        for index in range(40):
            if filming and index in (5, 25):
                engine.start_video_recording()
            if filming and index in (15, 38):
                engine.stop_video_recording()
            engine.step()
            trace.append(engine.get_state())
        states.append(trace)
        engine.close()
    assert all(torch.equal(a, b) for a, b in zip(*states, strict=True))


def test_the_overlay_is_in_the_picture_only_when_asked_for(tmp_path: Path) -> None:
    engine = make(tmp_path, width=320, height=240, **STILL)
    plain, written = (read_frames(film(engine, 0, overlay=overlay).path)[0] for overlay in (False, True))
    changed = np.abs(plain.astype(int) - written).sum(axis=-1) > 60
    assert changed[190:, :160].sum() > 200
    assert changed[:180].sum() == 0
    engine.close()


def test_the_first_frame_is_as_good_as_any(tmp_path: Path) -> None:
    """Nothing warms up on film: the first two frames of a thing that rests are the same."""
    engine = make(tmp_path)
    engine.set_gravity([0.0, 0.0, 0.0])
    frames = read_frames(film(engine, 2).path)
    assert frames[0].std() > 10
    assert np.abs(frames[0].astype(int) - frames[1]).mean() < 3
    engine.close()


def film_crews() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "film-crew"}


def test_off_costs_nothing(tmp_path: Path) -> None:
    """Until the first start there is no thread and no context; between clips no state is copied."""
    before = film_crews()
    engine = make(tmp_path, enabled=True)
    recorder = engine.get_video_recorder()
    step(engine, 3)
    assert recorder._crew is None
    assert film_crews() <= before
    film(engine, 1)
    step(engine, 3)
    assert recorder._tape.num_states == 2
    engine.close()
    assert film_crews() <= before


def test_what_can_not_be_meant_is_refused_and_nothing_is_filmed(tmp_path: Path) -> None:
    engine = make(tmp_path)
    for options, words in (
        ({"heigth": 96}, ["heigth", "height"]),
        ({"env": 1}, ["env", "1"]),
        ({"camera": "trak"}, ["trak", "track"]),
        ({"path": tmp_path / "film.avi"}, ["film.avi", ".mp4"]),
    ):
        with pytest.raises(ConfigError) as error:
            engine.start_video_recording(**options)
        assert all(word in str(error.value) for word in words), error.value
    engine.start_video_recording()
    with pytest.raises(RuntimeError, match="under way"):
        engine.start_video_recording()
    engine.step()
    assert engine.stop_video_recording() is not None
    assert engine.stop_video_recording() is None
    assert sorted(p.name for p in (tmp_path / "videos").iterdir()) == ["film.json", "film.mp4", "film.trace"]
    engine.close()


def test_an_exception_in_the_with_block_keeps_the_film(tmp_path: Path) -> None:
    engine = make(tmp_path)

    def fall() -> None:
        with engine.recording():
            step(engine, 2)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fall()
    clip = engine.get_video_recording()
    assert clip is not None
    assert len(read_frames(clip.path)) == 3
    engine.close()


def test_closing_the_engine_finishes_the_film(tmp_path: Path) -> None:
    engine = make(tmp_path)
    engine.start_video_recording()
    step(engine, 2)
    engine.close()
    engine.close()
    assert len(read_frames(tmp_path / "videos" / "film.mp4")) == 3


def test_an_engine_that_is_forgotten_frees_its_film_crew(tmp_path: Path) -> None:
    before = film_crews()
    engine = make(tmp_path)
    film(engine, 1)
    gone = weakref.ref(engine)
    del engine
    gc.collect()
    assert gone() is None
    end = time.monotonic() + 10.0
    while time.monotonic() < end and not film_crews() <= before:
        time.sleep(0.05)
    assert film_crews() <= before


def resident_mb() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise AssertionError


def test_fifty_engines_leave_nothing_behind(tmp_path: Path) -> None:
    """Created, filmed and closed: no threads, no file descriptors, no memory."""
    sizes, descriptors, before = [], [], film_crews()
    for index in range(50):
        engine = make(tmp_path, width=64, height=48)
        film(engine, 1)
        engine.close()
        if index in (14, 49):
            gc.collect()
            sizes.append(resident_mb())
            descriptors.append(len(list(Path("/proc/self/fd").iterdir())))
    assert film_crews() <= before
    assert descriptors[1] <= descriptors[0]
    assert sizes[1] - sizes[0] < 20.0
