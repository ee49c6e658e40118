"""The line in the picture, and the side file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mimickit.media.types import Video
from mimickit.video.clip import Clip, Episode
from mimickit.video.config import VideoConfig
from mimickit.video.layout import Rect, Tile
from mimickit.video.overlay.info_line import line_fields, short_number
from mimickit.video.overlay.overlay import Overlay
from mimickit.video.overlay.text import Font
from mimickit.video.snapshot import Snapshot

SIZES = [(480, 854), (96, 128), (1080, 1920), (854, 480), (16, 16)]
KNOWN: dict[str, Any] = {"episode_time": 3.267, "episode": 2, "episode_return": 87.44, "reward": 0.9}
FACTS = {"samples": 1_234_567, "run": "walk_seed3", "name": "walk"}
ALL = ("time", "episode", "return", "samples", "run")


def moment(**annotations: Any) -> Snapshot:
    return Snapshot(time=1.5, env_id=0, step=0, poses=[], annotations=annotations)


def words(*names: str, facts: Any = FACTS, **annotations: Any) -> list[str]:
    fields = line_fields(names, moment(**annotations), facts)
    return [" ".join(text for text, _ in field) for field in fields]


def draw(frame: NDArray[np.uint8], annotations: Mapping[str, Any] = KNOWN, overlay: tuple[str, ...] = ALL) -> None:
    height, width = frame.shape[:2]
    tile = Tile(Rect(0, 0, width, height), "track", (0,))
    Overlay(VideoConfig(overlay=overlay), [tile], FACTS).draw(frame, (moment(**annotations),))


def test_only_what_is_asked_for_and_known_is_written() -> None:
    assert words(*ALL, **KNOWN) == ["3.27 s", "episode 2", "return 87.4", "1.23M samples", "walk_seed3"]
    assert words("return", "samples", **KNOWN) == ["return 87.4", "1.23M samples"]
    assert words(*ALL, facts={}, episode_time=1.0) == ["1.00 s"]
    assert words(*ALL, facts={"name": "walk"}) == ["1.50 s", "walk"]
    assert words("chart", "contacts", "error", **KNOWN) == []


def test_what_is_said_of_the_moment_goes_before_what_is_said_of_the_recording() -> None:
    assert words("samples", "run", samples=500, run="other") == ["500 samples", "other"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (950, "950"), (12_345, "12.3k"), (999_600, "1M"), (1_250_000, "1.25M"), (123_456_789, "123M"),
     (4.2e9, "4.2G")],
)  # fmt: skip
def test_large_numbers_are_short(value: float, text: str) -> None:
    assert short_number(value) == text


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_the_line_is_legible_and_leaves_the_rest_alone(height: int, width: int) -> None:
    frame = np.full((height, width, 3), 180, dtype=np.uint8)
    draw(frame)
    if height < 50:
        assert (frame == 180).all()  # nobody could read it
        return
    assert (frame[: height // 2] == 180).all()
    assert (frame[-2:] == 180).all()
    assert (frame[:, :2] == 180).all()
    corner = frame[int(height * 0.7) :].astype(int)
    assert (corner > 230).any()  # ink
    assert (corner < 100).any()  # on a dark panel
    rows = np.flatnonzero((frame > 230).any(axis=(1, 2)))
    assert np.ptp(rows) >= max(7, 0.02 * min(height, width))  # capitals that can be read


def test_the_panel_does_not_jump_while_its_digits_change() -> None:
    tile = Tile(Rect(0, 0, 854, 480), "track", (0,))
    overlay = Overlay(VideoConfig(overlay=("time", "return", "run")), [tile], FACTS)
    widths = []
    for total in (8.0, 120.0, 9.0):
        frame = np.full((480, 854, 3), 180, dtype=np.uint8)
        overlay.draw(frame, (moment(episode_return=total),))
        widths.append(int((frame != 180).any(axis=(0, 2)).sum()))
    assert widths[0] < widths[1] == widths[2]


def test_a_long_name_is_cut() -> None:
    frame = np.full((240, 320, 3), 180, dtype=np.uint8)
    draw(frame, {"run": "a_very_long_name_of_a_run_" * 5}, ("run",))
    changed = (frame != 180).any(axis=(0, 2))
    assert 0.8 * 320 < changed.sum() < 320
    font = Font(10)
    assert font.fitted("short", 200) == "short"
    cut = font.fitted("m" * 100, 200)
    assert cut.endswith("..")
    assert 150 < font.width(cut) <= 200


def test_nothing_known_draws_nothing() -> None:
    frame = np.full((96, 128, 3), 180, dtype=np.uint8)
    draw(frame, {}, ("episode", "return"))
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
    assert isinstance(media, Video)
    assert (media.path, media.caption, media.fps, media.num_frames) == (tmp_path / "walk.mp4", "walking", 30.0, 33)
    assert (media.width, media.height, media.side_file) == (854, 480, tmp_path / "walk.json")
