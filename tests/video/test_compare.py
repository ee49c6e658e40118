"""Several runs in one film, in step, whatever their lengths and rates."""

from pathlib import Path

import numpy as np
import pytest

from mimickit.video.config import VideoConfig
from mimickit.video.errors import VideoError
from mimickit.video.traces.compare import Contender, compare, find_contender, together
from mimickit.video.traces.trace import Trace
from tests.engines.test_recorder import film, make, red
from tests.video.films import read_frames

CONFIG = VideoConfig.from_mapping({"width": 384, "height": 128, "quality": "draft", "overlay": "time,return"}, "test")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three run folders: of 30 Hz and 10, 20 steps, and of 60 Hz and 60 steps."""
    folders = []
    for name, steps, rate in (("short", 10, 30), ("middle", 20, 30), ("long", 60, 60)):
        folder = tmp_path_factory.mktemp("runs") / name
        folder.mkdir()
        config = {"control_mode": "none", "control_freq": rate, "sim_freq": 120}
        engine = make(folder, config=config)
        recorder = engine.get_video_recorder()
        with engine.recording():
            recorder.begin_episode()
            for _ in range(steps):
                engine.step()
            recorder.end_episode(steps, float(steps), "time")
        engine.close()
        folders.append(folder)
    return folders


def thirds(frame: np.ndarray) -> list[np.ndarray]:
    return [frame[:, third * 128 : (third + 1) * 128].astype(int) for third in range(3)]


def test_run_folders_are_compared_by_their_traces(tmp_path: Path, runs: list[Path]) -> None:
    contenders = [find_contender(run) for run in runs]
    assert [c.label for c in contenders] == ["short  return 10.0", "middle  return 20.0", "long  return 60.0"]
    (clip,) = compare(contenders, CONFIG, tmp_path / "c.mp4")
    frames = read_frames(clip.path)
    assert clip.num_frames == len(frames) == 61
    assert clip.fps == 60.0
    assert all(red(third).sum() > 20 for third in thirds(frames[0]))
    assert [(e.env_id, e.first_frame, e.num_frames, e.episode_return) for e in clip.episodes] == [
        (0, 0, 22, 10.0), (1, 0, 42, 20.0), (2, 0, 61, 60.0),
    ]  # fmt: skip
    # the first two end at 20 and 40 frames and stand still from then on, which is shown
    for third, end in ((0, 20), (1, 40)):
        before, after, last = (thirds(frames[index])[third] for index in (end, end + 12, 60))
        assert np.abs(after - last).mean() < 2
        assert np.abs(after - before).mean() > 3


def test_in_step_means_the_same_time_at_different_rates(runs: list[Path]) -> None:
    traces = [Trace(run / "videos" / "film.trace") for run in runs]
    footage = together(traces, [find_contender(run) for run in runs])
    assert (footage.header.dt, footage.num_states) == (1 / 60, 61)
    heights = np.array([[snapshot.poses[0][0][0, 2] for snapshot in moment] for moment in footage.states])
    np.testing.assert_allclose(heights[:21, 0], heights[:21, 2], atol=0.02)
    assert np.all(heights[20:, 0] == heights[20, 0])
    for trace in traces:
        trace.close()


def test_clips_are_compared_as_they_were_filmed(tmp_path: Path, runs: list[Path]) -> None:
    (clip,) = compare([find_contender(run / "videos" / "film.mp4") for run in runs], CONFIG, tmp_path / "c.mp4")
    frames = read_frames(clip.path)
    assert (clip.engine, len(frames)) == ("clips", 61)
    assert all(red(third).sum() > 20 for third in thirds(frames[0]))
    after, last = (thirds(frames[index])[0] for index in (30, 60))
    assert np.abs(after - last).mean() < 2


@pytest.mark.parametrize("options", [{"env_layout": "scene"}, {"views": "track,top"}, {"camera": "orbit"}])
def test_what_a_clip_can_not_show_is_filmed_from_the_trace_beside_it(
    tmp_path: Path, runs: list[Path], options: dict[str, str]
) -> None:
    config = CONFIG.updated(options, "test")
    clips = [run / "videos" / "film.mp4" for run in runs[:2]]
    (clip,) = compare([find_contender(path) for path in clips], config, tmp_path / "c.mp4")
    assert clip.engine == "mujoco"
    alone = tmp_path / "alone.mp4"
    alone.write_bytes(clips[0].read_bytes())  # neither side file nor trace beside it
    with pytest.raises(VideoError, match="alone: a camera, views or one scene need traces"):
        compare([find_contender(alone), find_contender(clips[1])], config, tmp_path / "d.mp4")


def test_a_trace_and_a_clip_are_compared_by_their_traces(tmp_path: Path, runs: list[Path]) -> None:
    paths = [runs[0] / "videos" / "film.trace", runs[1] / "videos" / "film.mp4"]
    (clip,) = compare([find_contender(path) for path in paths], CONFIG, tmp_path / "c.mp4")
    assert (clip.engine, clip.num_frames) == ("mujoco", 21)


def test_a_run_of_picked_episodes_is_compared_by_its_best(tmp_path: Path) -> None:
    engine = make(tmp_path, num_envs=2, pick="best,worst,median")
    recorder = engine.get_video_recorder()
    with engine.recording():
        for env in (0, 1):
            recorder.begin_episode(env_id=env)
        for _ in range(3):
            engine.step()
        for env in (0, 1):
            recorder.end_episode(3, float(env), "time", env_id=env)
    engine.close()
    found = find_contender(tmp_path)
    assert found.clip is not None
    assert (found.clip.name, found.mean_return, found.trace) == ("film_best.mp4", 1.0, None)


def test_a_run_that_was_killed_is_compared_by_what_it_left(tmp_path: Path, runs: list[Path]) -> None:
    (tmp_path / "videos").mkdir()
    part = tmp_path / "videos" / "film.trace.part"
    part.write_bytes((runs[0] / "videos" / "film.trace").read_bytes())
    assert find_contender(tmp_path).trace == part


@pytest.mark.parametrize("layout", ["scene", "overlaid"])
def test_runs_in_one_scene(tmp_path: Path, runs: list[Path], layout: str) -> None:
    config = CONFIG.updated({"env_layout": layout}, "test")
    (clip,) = compare([find_contender(run) for run in runs], config, tmp_path / "c.mp4")
    frame = read_frames(clip.path)[0].astype(int)
    assert (np.abs(frame - frame[0, 0]).max(axis=-1) > 60).sum() > 100


def test_what_can_not_be_compared_is_said(tmp_path: Path, runs: list[Path]) -> None:
    with pytest.raises(VideoError, match="nothing there"):
        find_contender(tmp_path / "absent")
    with pytest.raises(VideoError, match="run folder with clips"):
        find_contender(tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(VideoError, match=r"notes\.txt: expected a trace, a clip"):
        find_contender(tmp_path / "notes.txt")
    (tmp_path / "bad.mp4").write_bytes(b"no film")
    bad = Contender("bad", None, tmp_path / "bad.mp4")
    with pytest.raises(VideoError, match=r"bad\.mp4"):
        compare([bad, bad], CONFIG, tmp_path / "c.mp4")
    mixed = [find_contender(runs[0] / "videos" / "film.trace"), bad]
    with pytest.raises(VideoError, match="can't be compared"):
        compare(mixed, CONFIG, tmp_path / "c.mp4")
    assert not list(tmp_path.glob("c*"))


def test_the_newest_clip_of_a_run_is_taken(tmp_path: Path) -> None:
    engine = make(tmp_path)
    clips = [film(engine, count) for count in (1, 2)]
    engine.close()
    assert find_contender(tmp_path).trace == clips[1].trace
