"""What the recorder makes beyond one clip of one view: traces that are filmed again, views, several environments."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mimickit.engines.mujoco_engine import MujocoEngine
from mimickit.util.keys import ConfigError
from mimickit.video.clip import Clip
from mimickit.video.config import VideoConfig
from mimickit.video.errors import VideoError
from mimickit.video.traces.refilm import film as film_footage
from mimickit.video.traces.refilm import trace_footage
from mimickit.video.traces.trace import Trace
from tests.engines.test_recorder import GREEN, RED, SMALL, film, make, red, step
from tests.video.films import PENDULUM_BODIES, read_frames


def film_episodes(engine: MujocoEngine, lengths: tuple[int, ...] = (7, 5), **options: Any) -> Clip:
    """Episodes with a ghost, each of which ends with a return of its length."""
    recorder = engine.get_video_recorder()
    with engine.recording(**options):
        for number, length in enumerate(lengths):
            engine.reset_envs(None)
            recorder.begin_episode({"episode": number})
            for count in range(length):
                shift = np.array([0.2, 0.02 * count, 0.0])
                recorder.set_ghost([(PENDULUM_BODIES + shift, torch.tensor([[0.0, 0, 0, 1]] * 3))])
                engine.step()
                recorder.annotate(episode_return=float(count), reward=1.0)
            recorder.end_episode(length, float(length), "time")
    clip = engine.get_video_recording()
    assert clip is not None
    return clip


def film_or_put_off(engine: MujocoEngine, steps: int) -> None:
    with engine.recording():
        step(engine, steps)


def refilm(clip: Clip, path: Path, **options: Any) -> Clip:
    assert clip.trace is not None
    with Trace(clip.trace) as trace:
        config = VideoConfig.from_mapping({**trace.video, **options}, "test")
        (again,) = film_footage(trace_footage(trace), config, path)
    return again


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"camera": "orbit", "ghost": "on", "overlay": "all", "quality": "standard"},
        {"views": "track,side,top", "ghost": "beside", "overlay": "true", "fps": 12.5},
        {"views": "chase,first_person", "view_layout": "pip", "body": "arm"},
    ],
)
def test_a_film_of_the_trace_is_the_live_film_to_the_last_pixel(tmp_path: Path, options: dict[str, Any]) -> None:
    engine = make(tmp_path, width=192, height=144, **options)
    clip = film_episodes(engine)
    engine.close()
    again = refilm(clip, tmp_path / "again.mp4")
    live, filmed = read_frames(clip.path), read_frames(again.path)
    assert len(live) == len(filmed) == clip.num_frames
    assert all(np.array_equal(a, b) for a, b in zip(live, filmed, strict=True))
    assert again.episodes == clip.episodes
    for name in ("fps", "num_frames", "camera", "seed", "context", "engine", "env_ids"):
        assert getattr(again, name) == getattr(clip, name), name


def test_the_trace_is_filmed_again_without_engine_and_character_file(tmp_path: Path) -> None:
    engine = make(tmp_path)
    clip = film_episodes(engine)
    engine.close()
    (tmp_path / "pendulum.xml").unlink()
    again = refilm(clip, tmp_path / "again.mp4", camera="side", width=320, height=200)
    frames = read_frames(again.path)
    assert frames[0].shape == (200, 320, 3)
    assert all(red(frame).sum() > 100 for frame in frames)


def test_slow_motion_has_the_right_length_and_moves_smoothly(tmp_path: Path) -> None:
    still = {"camera": "still", "position": (0, -4, 1.2), "target": (0, 0, 0.7)}
    engine = make(tmp_path, **still)
    engine.set_root_pos(None, 0, torch.tensor([0.0, 0.0, 2.0]))
    engine.set_root_vel(None, 0, torch.tensor([2.0, 0.0, 0.0]))
    clip = film(engine, 12)
    engine.close()
    slow = refilm(clip, tmp_path / "slow.mp4", speed=0.25, width=384, height=288)
    assert slow.num_frames == 4 * 12 + 1
    assert slow.duration == pytest.approx(4 * 12 / 30, abs=1.01 / 30)
    places = np.array([np.nonzero(red(frame))[1].mean() for frame in read_frames(slow.path)])
    times = np.arange(len(places))
    assert places[-1] > places[0] + 40
    # a frame that stood still would be behind by a step of the next
    assert np.abs(places - np.polyval(np.polyfit(times, places, 3), times)).max() < 0.25 * (places[-1] - places[0]) / 12


def test_several_environments_share_a_film_and_keep_their_places(tmp_path: Path) -> None:
    engine = make(tmp_path, num_envs=4, red_env=2, envs="0,2", width=256, height=96)
    clip = film(engine, 5)
    engine.close()
    assert (clip.env_id, clip.env_ids) == (0, (0, 2))
    for frame in read_frames(clip.path):
        assert red(frame[:, :128]).sum() < 5
        assert red(frame[:, 128:]).sum() > 50


def test_neighbours_stand_on_one_ground_and_all_are_in_view(tmp_path: Path) -> None:
    engine = make(tmp_path, num_envs=3, envs="0,1,2", env_layout="scene", width=320, height=160)
    clip = film(engine, 3)
    engine.close()
    frame = read_frames(clip.path)[-1][60:].astype(int)  # below the legend
    is_colourful = frame.max(axis=-1) - frame.min(axis=-1) > 60
    columns = np.flatnonzero(is_colourful.sum(axis=0) > 1)
    assert len(np.flatnonzero(np.diff(columns) > 3)) == 2  # three characters apart
    orange, teal = (frame[..., 0] > frame[..., 2] + 60), (frame[..., 2] > frame[..., 0] + 40)
    assert min(orange.sum(), teal.sum()) > 30  # each in a colour of its own, whatever its file says


def test_environments_keep_in_step_when_one_begins_anew(tmp_path: Path) -> None:
    engine = make(tmp_path, num_envs=2, envs="0,1")
    recorder = engine.get_video_recorder()
    with engine.recording():
        for env in (0, 1):
            recorder.begin_episode({"episode": 0}, env_id=env)
        step(engine, 4)
        recorder.end_episode(4, 1.0, "fail", env_id=1)
        engine.reset_envs(torch.tensor([1]))
        recorder.begin_episode({"episode": 1}, env_id=1)
        step(engine, 3)
    clip = engine.get_video_recording()
    engine.close()
    assert clip is not None
    assert clip.num_frames == 8
    found = [(e.env_id, e.first_frame, e.num_frames, e.length, e.outcome) for e in clip.episodes]
    assert found == [(0, 0, 8, 7, "unfinished"), (1, 0, 5, 4, "fail"), (1, 5, 3, 3, "unfinished")]
    with Trace(clip.trace or "") as trace:
        cuts = [[snapshot.is_cut for snapshot in moment] for moment in trace.states()]
    assert [index for index, cut in enumerate(cuts) if cut[0]] == [0]
    assert [index for index, cut in enumerate(cuts) if cut[1]] == [0, 5]


def test_views_and_environments_may_have_clips_of_their_own(tmp_path: Path) -> None:
    engine = make(tmp_path, num_envs=2, views="track,side", view_layout="separate", envs="0,1", env_layout="separate")
    film(engine, 3)
    clips = engine.get_video_recordings()
    engine.close()
    assert [clip.path.name for clip in clips] == [
        "film_env0_track.mp4", "film_env0_side.mp4", "film_env1_track.mp4", "film_env1_side.mp4",
    ]  # fmt: skip
    assert [(clip.env_ids, clip.camera) for clip in clips] == [
        ((0,), "track"), ((0,), "side"), ((1,), "track"), ((1,), "side"),
    ]  # fmt: skip
    assert all(len(read_frames(clip.path)) == 4 for clip in clips)
    assert all(clip.trace == tmp_path / "videos" / "film.trace" for clip in clips)


@pytest.mark.parametrize("kind", ["mp4", "webm", "gif", "png"])
def test_the_recorder_makes_every_kind_of_file(tmp_path: Path, kind: str) -> None:
    engine = make(tmp_path, format=kind, poster=True)
    clip = film(engine, 4)
    engine.close()
    assert clip.path == tmp_path / "videos" / ("film" if kind == "png" else f"film.{kind}")
    if kind == "png":
        assert len(list(clip.path.glob("*.png"))) == 5
    else:
        assert len(read_frames(clip.path)) == 5
    facts = json.loads(clip.side_file.read_text())
    assert (facts["num_frames"], facts["poster"], facts["trace"]) == (5, "film.png", "film.trace")
    assert Clip.load(clip.side_file) == clip
    clip.to_media().validate("clip")


def test_a_film_that_is_put_off_is_made_in_a_process_of_its_own(tmp_path: Path) -> None:
    engine = make(tmp_path, defer=True)
    recorder = engine.get_video_recorder()
    with engine.recording():
        step(engine, 10)
    assert engine.get_video_recording() is None
    (clip,) = recorder.pop_deferred(wait=True)
    assert recorder.pop_deferred(wait=True) == []
    assert recorder._crew is not None
    assert recorder._crew._work._filmer._stages == {}  # nothing was drawn here
    engine.close()
    assert clip.path.name == "film.mp4"
    live = film(make(tmp_path / "live", defer=False), 10) if (tmp_path / "live").mkdir() is None else None
    assert live is not None
    for a, b in zip(read_frames(clip.path), read_frames(live.path), strict=True):
        assert np.array_equal(a, b)


def test_what_is_no_longer_kept_goes_with_all_that_lies_beside_it(tmp_path: Path) -> None:
    engine = make(tmp_path, defer=True, replay=True, keep_last=1)
    for _ in range(2):
        film_or_put_off(engine, 2)
    (clip,) = engine.get_video_recorder().pop_deferred(wait=True)
    engine.close()
    assert clip.replay == tmp_path / "videos" / "film_001.html"
    names = sorted(path.name for path in (tmp_path / "videos").iterdir())
    assert names == ["film_001.html", "film_001.json", "film_001.mp4", "film_001.trace"]


def test_a_film_that_was_put_off_and_fails_is_reported_and_its_trace_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUJOCO_GL", "off")
    engine = make(tmp_path, defer=True)
    with engine.recording():
        step(engine, 3)
    assert engine.get_video_recorder().pop_deferred(wait=True) == []
    (message,) = [record.message for record in caplog.records if "filming failed" in record.message]
    assert "MUJOCO_GL=off" in message
    assert str(tmp_path / "videos" / "film.trace") in message
    engine.close()
    assert [p.name for p in (tmp_path / "videos").iterdir()] == ["film.trace"]


def test_a_trace_that_can_not_be_completed_is_reported_when_its_film_is_asked_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine, folder = make(tmp_path, defer=True), tmp_path / "videos"
    recorder = engine.get_video_recorder()
    engine.start_video_recording()
    step(engine, 3)
    shutil.rmtree(folder)
    assert engine.stop_video_recording() is None
    folder.mkdir()
    film_or_put_off(engine, 2)  # the next one is not touched by it
    (clip,) = recorder.pop_deferred(wait=True)
    engine.close()
    assert len(read_frames(clip.path)) == 3
    (message,) = [record.message for record in caplog.records if "filming failed" in record.message]
    assert "film.trace" in message


@pytest.mark.parametrize(
    ("envs", "shown"), [((), [3, 1, 2]), ((0, 1, 4), [0, 1, 4])], ids=["of all environments", "of some"]
)
def test_the_best_worst_and_middle_episode(tmp_path: Path, envs: tuple[int, ...], shown: list[int]) -> None:
    engine = make(tmp_path, num_envs=5, red_env=3, pick="best,worst,median", envs=envs)
    recorder = engine.get_video_recorder()
    filmed = envs or range(5)
    episodes = [(6, 5.0), (4, 1.0), (6, 3.0), (6, 9.0), (2, 2.0)]  # length and return of each environment's
    with engine.recording():
        for env in filmed:
            recorder.begin_episode(env_id=env)
        for count in range(1, 7):
            engine.step()
            for env in filmed:
                length, total = episodes[env]
                if count == length:
                    recorder.end_episode(length, total, "time", env_id=env)
                    recorder.begin_episode(env_id=env)
    clips = engine.get_video_recordings()
    engine.close()
    assert [clip.path.name for clip in clips] == ["film_best.mp4", "film_worst.mp4", "film_median.mp4"]
    assert [clip.env_id for clip in clips] == shown
    returns = [[episode.episode_return for episode in clip.episodes] for clip in clips]
    assert returns == [[episodes[env][1]] for env in shown]
    assert [clip.num_frames for clip in clips] == [episodes[env][0] + 1 for env in shown]
    assert [bool(red(read_frames(clip.path)[0]).sum() > 20) for clip in clips] == [env == 3 for env in shown]


def test_a_recording_ends_at_its_greatest_length(tmp_path: Path) -> None:
    engine = make(tmp_path, max_seconds=0.5)
    clip = film(engine, 40)
    engine.close()
    assert clip.num_frames == len(read_frames(clip.path)) == 15
    assert clip.episodes[0].num_frames == 15


def test_only_the_last_clips_and_the_best_are_kept(tmp_path: Path) -> None:
    engine = make(tmp_path, keep_last=2, keep_best=True, poster=True)
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "old.mp4").write_bytes(b"of another run")
    recorder = engine.get_video_recorder()
    for total in (1.0, 9.0, 2.0, 3.0, 4.0):
        with engine.recording(tmp_path / "videos" / f"clip{total:.0f}.mp4"):
            recorder.begin_episode()
            step(engine, 2)
            recorder.end_episode(2, total, "time")
    engine.close()
    names = sorted(path.name for path in (tmp_path / "videos").iterdir())
    kept = [f"clip{total}.{kind}" for total in (3, 4, 9) for kind in ("json", "mp4", "png", "trace")]
    assert names == [*kept, "old.mp4"]


def test_a_trace_of_several_environments_is_filmed_one_at_a_time(tmp_path: Path) -> None:
    engine = make(tmp_path, num_envs=3, red_env=1, envs="0,1,2")
    clip = film(engine, 4)
    engine.close()
    with Trace(clip.trace or "") as trace:
        config = VideoConfig.from_mapping(SMALL, "test")
        (one,) = film_footage(trace_footage(trace, (1,), first=1, stop=4), config, tmp_path / "one.mp4")
        with pytest.raises(ConfigError, match=r"expected one of 0, 1, 2, found 7"):
            trace_footage(trace, (7,))
    assert (one.env_id, one.num_frames, one.episodes[0].num_frames) == (1, 3, 3)
    assert red(read_frames(one.path)[0]).sum() > 20


def test_an_empty_trace_is_not_filmed(tmp_path: Path) -> None:
    engine = make(tmp_path)
    clip = film(engine, 2)
    engine.close()
    with Trace(clip.trace or "") as trace, pytest.raises(VideoError, match="no state"):
        film_footage(trace_footage(trace, first=2, stop=2), VideoConfig(), tmp_path / "empty.mp4")
    assert not list(tmp_path.glob("empty*"))


def test_colours_tell_overlaid_environments_apart(tmp_path: Path) -> None:
    engine = make(tmp_path, num_envs=2, red_env=0, envs="0,1", env_layout="overlaid", width=192, height=144)
    assert RED != GREEN
    engine.set_root_pos(torch.tensor([1]), 0, torch.tensor([0.8, 0.0, 1.0]))
    clip = film(engine, 2)
    engine.close()
    frame = read_frames(clip.path)[0].astype(int)
    orange = (frame[..., 0] > frame[..., 2] + 50).sum()
    teal = (frame[..., 2] > frame[..., 0] + 30) & (frame[..., 1] > frame[..., 0] + 25)
    assert orange > 50
    assert teal[60:].sum() > 50
