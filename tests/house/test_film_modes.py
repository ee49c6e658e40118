"""The modes that work on what runs have left: film, compare, replay."""

import json
from pathlib import Path

import pytest

from mimickit.cli import main
from mimickit.video.clip import Clip
from tests.video.films import read_frames

SMALL = ["--video_size", "128x96", "--video_quality", "draft"]


@pytest.fixture(scope="module")
def run_folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two short tests of the shipped walk, of half a second and of a third of one."""
    folders = []
    for name, seconds in (("long", "0.5"), ("short", "0.34")):
        folder = tmp_path_factory.mktemp("runs") / name
        words = ["--mode", "test", "--video", "--num_envs", "3", "--video_envs", "0,2", "--test_episodes", "3",
                 "--env.episode_length", seconds, "--video_replay", *SMALL, "--out_dir", str(folder)]  # fmt: skip
        assert main(words) == 0
        folders.append(folder)
    return folders


def made(capsys: pytest.CaptureFixture[str]) -> list[Path]:
    """The files whose paths were printed."""
    return [Path(line) for line in capsys.readouterr().out.splitlines()]


def test_a_run_leaves_clip_trace_replay_and_a_page_of_its_clips(run_folders: list[Path]) -> None:
    videos = run_folders[0] / "videos"
    names = sorted(path.suffix for path in videos.iterdir())
    assert names == [".html", ".html", ".json", ".mp4", ".trace"]
    (clip,) = [Clip.load(path) for path in videos.glob("*.json")]
    assert clip.replay is not None
    assert clip.replay.is_file()
    assert clip.path.name in (videos / "index.html").read_text()
    media = json.loads((run_folders[0] / "result.json").read_text())["episode_media"]
    assert {name: [Path(item["path"]).name for item in items] for name, items in media.items()} == {
        "test_video": [clip.path.name], "test_replay": [clip.replay.name],
    }  # fmt: skip


def test_film_shoots_a_runs_trace_again(
    run_folders: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--mode", "film", "--trace", str(run_folders[0]), "--out_dir", str(tmp_path), "--video_env", "2"]
    assert main([*words, "--video_camera", "top", "--video_speed", "0.5", "--video_format", "webm"]) == 0
    (path,) = made(capsys)
    assert path.parent == tmp_path
    clip = Clip.load(path.with_suffix(".json"))
    assert (clip.env_ids, clip.camera, clip.num_frames) == ((2,), "top", 31)
    assert read_frames(path)[0].shape == (96, 128, 3)


def test_film_by_default_makes_the_very_same_film_beside_the_first(
    run_folders: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    trace = next((run_folders[0] / "videos").glob("*.trace"))
    assert main(["--mode", "film", "--trace", str(trace)]) == 0
    (path,) = made(capsys)
    assert path.name in (trace.parent / "index.html").read_text()
    first = trace.with_suffix(".mp4")
    assert path == first.with_name(f"{first.stem}_001.mp4")
    assert path.read_bytes() == first.read_bytes()


def test_compare_puts_runs_side_by_side(
    run_folders: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--mode", "compare", "--runs", *map(str, run_folders), "--labels", "a", "b", *SMALL]
    assert main([*words, "--out_dir", str(tmp_path)]) == 0
    (path,) = made(capsys)
    assert len(read_frames(path)) == 16
    facts = Clip.load(path.with_suffix(".json")).context
    assert [label.split()[0] for label in facts["runs"]] == ["a", "b"]


def test_replay_makes_one_page_of_several_traces(
    run_folders: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--mode", "replay", "--trace", *map(str, run_folders), "--out_dir", str(tmp_path)]) == 0
    (page,) = made(capsys)
    assert page.suffix == ".html"
    assert "three" in page.read_text()
    assert main(["--mode", "replay", "--trace", *map(str, run_folders), "--out_dir", str(tmp_path)]) == 0
    (other,) = made(capsys)
    assert other != page  # which is kept


def raises(shot: object) -> object:
    raise ZeroDivisionError("in a camera")


def test_a_camera_that_raises_is_an_error_without_a_traceback(
    run_folders: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--mode", "film", "--trace", str(run_folders[0]), "--video_camera", f"{__name__}:raises"]
    assert main([*words, "--out_dir", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "ZeroDivisionError: in a camera" in error
    assert "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


def test_picked_episodes_are_filmed_again_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--mode", "test", "--video", "--num_envs", "2", "--test_episodes", "2", "--env.episode_length", "0.2"]
    assert main([*words, "--video_pick", "best,worst", *SMALL, "--out_dir", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    film = ["--mode", "film", "--trace", str(tmp_path / "run"), "--out_dir", str(tmp_path)]
    others = (["--video_pick", "median"], ["_median"]), (["--video_env", "1"], [""])
    for more, names in (([], ["_best", "_worst"]), *others):
        assert main([*film, *more]) == 0
        assert [path.stem.removeprefix("humanoid_walk_000004005888") for path in made(capsys)] == names


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--mode", "film"], ["--trace is missing"]),
        (["--mode", "film", "--trace", "absent.trace"], ["--trace", "absent.trace"]),
        (["--mode", "film", "--trace", "{run}", "--video_camera", "trak"], ["trak", "track"]),
        (["--mode", "film", "--trace", "{run}", "--video_env", "1"], ["expected one of 0, 2, found 1"]),
        (["--mode", "film", "--trace", "{run}", "--video_speed", "0"], ["--video_speed", "0.01"]),
        (["--mode", "film", "--trace", "README.md"], ["README.md", "beside which there is none"]),
        (["--mode", "compare", "--runs", "{run}"], ["--runs", "two or more"]),
        (["--mode", "compare", "--runs", "{run}", "absent"], ["--runs: absent", "nothing there"]),
        (["--mode", "film", "--trace", "{run}", "--model_file", "x"], ["--model_file has no effect in --mode film"]),
        (["--mode", "film", "--trace", "{run}", "--video_defer"], ["--video_defer has no effect in --mode film"]),
        (["--mode", "replay", "--trace", "{run}", "--video_fov", "50"], ["--video_fov has no effect in --mode replay"]),
        (["--mode", "replay", "--trace", "{run}", "--out_dir", "README.md"], ["--out_dir: can't make README.md"]),
        (["--mode", "film", "--trace", "{run}", "--video_camera", "dolly"], ["camera_path is missing"]),
        (["--mode", "film", "--trace", "{run}", "--video_envs", "-1"], ["--video_envs", "found -1"]),
        (["--mode", "test", "--video", "--video_replay", "--video_trace", "false"], ["replay needs the trace"]),
        (["--mode", "compare", "--runs", "{run}", "{run}", "--labels", "a"], ["--labels", "2", "1"]),
        (["--mode", "test", "--trace", "a.trace"], ["--trace has no effect in --mode test"]),
        (["--mode", "view", "--runs", "a"], ["--runs has no effect in --mode view"]),
    ],
)
def test_what_can_not_be_done_is_said_without_a_traceback(
    words: list[str], parts: list[str], run_folders: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in run_folders[0].rglob("*") if path.is_file()}
    assert main([word.replace("{run}", str(run_folders[0])) for word in words]) in (1, 2)
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert all(part in error for part in parts), error
    assert {path: path.stat().st_mtime_ns for path in run_folders[0].rglob("*") if path.is_file()} == before
