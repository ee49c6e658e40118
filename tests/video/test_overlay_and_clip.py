"""The line in the picture, and the side file."""

import json
from pathlib import Path

import numpy as np
import pytest

from mimickit.video.clip import Clip, Episode
from mimickit.video.overlay import draw_line, overlay_text


def test_what_is_not_known_is_left_out() -> None:
    known = {"episode_time": 3.267, "episode": 2, "episode_return": 87.44, "reward": 0.9}
    assert overlay_text(known).split() == ["3.27", "s", "episode", "2", "return", "87.4"]
    assert overlay_text({"episode_time": 1.0}).strip() == "1.00 s"
    assert overlay_text({}) == ""


@pytest.mark.parametrize(("height", "width"), [(480, 854), (96, 128), (1080, 1920), (16, 16)])
def test_the_line_is_legible_and_leaves_the_rest_alone(height: int, width: int) -> None:
    frame = np.full((height, width, 3), 180, dtype=np.uint8)
    draw_line(frame, "  3.27 s   episode 2   return 87.4")
    assert (frame[: height // 2] == 180).all() or height < 50
    if height >= 96:
        corner = frame[int(height * 0.85) :].astype(int)
        assert (corner > 230).any()  # ink
        assert (corner < 100).any()  # on a dark strip


def test_an_empty_line_draws_nothing() -> None:
    frame = np.full((96, 128, 3), 180, dtype=np.uint8)
    draw_line(frame, "")
    assert (frame == 180).all()


def clip(folder: Path) -> Clip:
    return Clip(
        path=folder / "walk.mp4",
        side_file=folder / "walk.json",
        fps=30.0,
        num_frames=33,
        width=854,
        height=480,
        engine="mujoco",
        env_id=3,
        camera="track",
        episodes=(
            Episode(0, 11, 10, 9.5, "time", {"motion": "walk"}),
            Episode(11, 22, 21, None),
        ),
        seed=7,
        model_file="model.pt",
        samples=4000,
        notes=("size: ...",),
        context={"run": "a"},
    )


def test_a_side_file_says_all_and_reads_back(tmp_path: Path) -> None:
    written = clip(tmp_path)
    written.write_side_file()
    facts = json.loads(written.side_file.read_text())
    assert facts["path"] == "walk.mp4"
    assert facts["duration"] == pytest.approx(1.1)
    assert [e["return"] for e in facts["episodes"]] == [9.5, None]
    assert [e["first_frame"] for e in facts["episodes"]] == [0, 11]
    assert [e["outcome"] for e in facts["episodes"]] == ["time", "unfinished"]
    assert Clip.load(written.side_file) == written
    assert [p.name for p in tmp_path.iterdir()] == ["walk.json"]


def test_what_is_no_side_file_is_named(tmp_path: Path) -> None:
    for text in ("{", "{}", '{"duration": 1, "episodes": [], "path": "x", "notes": []}'):
        path = tmp_path / "x.json"
        path.write_text(text)
        with pytest.raises(ValueError, match=r"x\.json"):
            Clip.load(path)


def test_media_carries_the_figures(tmp_path: Path) -> None:
    media = clip(tmp_path).to_media("walking")
    assert (media.path, media.caption, media.fps, media.num_frames) == (tmp_path / "walk.mp4", "walking", 30.0, 33)
    assert (media.width, media.height, media.side_file) == (854, 480, tmp_path / "walk.json")
