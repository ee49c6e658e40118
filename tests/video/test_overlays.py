"""What stands where in a film's tiles: labels, lines, the chart, the bar of colours."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mimickit.video.config import OVERLAYS, EnvLayout, VideoConfig, ViewLayout
from mimickit.video.layout import Rect, Tile, plan_layouts
from mimickit.video.overlay.overlay import Overlay
from mimickit.video.overlay.strip_chart import SPAN, History, StripChart, chart_values, scale_of
from mimickit.video.overlay.text import WARNING, Font
from mimickit.video.palette import subject_color
from mimickit.video.snapshot import Snapshot
from tests.video.films import pendulum_pose, snapshot

Frame = NDArray[np.uint8]
GREY = 180
FACTS = {"samples": 1_234_567, "run": "walk_seed3"}
SIZES = [(320, 240), (854, 480), (480, 854), (1920, 1080), (213, 120), (96, 54)]


def grey(width: int, height: int) -> Frame:
    return np.full((height, width, 3), GREY, dtype=np.uint8)


def state(time: float = 0.0, env: int = 0, *, is_cut: bool = False, apart: float = 0.0, **annotations: Any) -> Snapshot:
    """A pendulum whose ghost's bob is `apart` (m) from its own."""
    pos, rot = pendulum_pose()
    ghost = pos + np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [apart, 0.0, 0.0]])
    known = {"episode_time": time, "episode": 0, "episode_return": 12.5, "reward": 0.5}
    return Snapshot(
        time=time, env_id=env, step=0, poses=[(pos, rot)], ghosts=[(ghost, rot)], is_cut=is_cut,
        annotations=known | annotations,
    )  # fmt: skip


def drawn(config: VideoConfig, tiles: Sequence[Tile], *moments: tuple[Snapshot, ...]) -> Frame:
    """The last frame of a film of grey pictures."""
    overlay = Overlay(config, tiles, FACTS)
    for moment in moments:
        frame = grey(*config.even_size)
        overlay.draw(frame, moment)
    return frame


def darkened(level: float, times: int) -> int:
    for _ in range(times):
        level = 0.34 * level + 0.66 * 26
    return round(level)


def inked(frame: Frame, color: Sequence[int]) -> NDArray[np.bool_]:
    return np.abs(frame.astype(int) - np.array(color)).max(axis=-1) <= 12


def is_curve(frame: Frame, strip: int) -> NDArray[np.bool_]:
    """Pixels of a curve, more colourful than the area below it."""
    f = frame.astype(int)
    return f[..., 1] - f[..., 0] > 42 if strip == 0 else f[..., 0] - f[..., 2] > 65


# ---------------------------------------------------------------------- tiles


def test_without_overlays_and_labels_a_frame_is_left_alone() -> None:
    config = VideoConfig(width=320, height=240)
    tiles = plan_layouts(config, [0])[0].tiles
    assert (drawn(config, tiles, (state(),)) == GREY).all()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("ended", [False, True])
def test_nothing_is_drawn_over_anything_else(size: tuple[int, int], ended: bool) -> None:
    """A panel darkens what is behind it, once."""
    config = VideoConfig(width=size[0], height=size[1], overlay=OVERLAYS)
    tile = Tile(Rect(0, 0, *size), "track", (0,), "env 3  side")
    frame = drawn(config, [tile], *((state(i / 30, ended=ended),) for i in range(30)))
    level = round(0.7 * GREY) if ended else GREY
    once, twice = darkened(level, 1), darkened(level, 2)
    assert (np.abs(frame.astype(int) - once).max(axis=-1) <= 1).any() or size[0] < 100
    assert not (np.abs(frame.astype(int) - twice).max(axis=-1) <= 1).any()


def test_nothing_is_drawn_outside_of_a_tile() -> None:
    config = VideoConfig(width=640, height=480, overlay=OVERLAYS)
    tile = Tile(Rect(100, 60, 320, 240), "track", (0,), "a label that is longer than its tile is wide " * 2)
    frame = drawn(config, [tile], *((state(i / 30, ended=True),) for i in range(30)))
    outside = np.ones(frame.shape[:2], dtype=bool)
    outside[60:300, 100:420] = False
    assert (frame[outside] == GREY).all()
    assert (frame[~outside] != GREY).any(axis=-1).mean() > 0.9  # a run that has ended is dimmed


def test_environments_in_tiles_have_their_own_lines_and_charts() -> None:
    config = VideoConfig(width=854, height=480, envs=(0, 1, 2, 3), overlay=("time", "chart"))
    tiles = plan_layouts(config, [0, 1, 2, 3])[0].tiles
    moments = [tuple(state(i / 30, env, reward=0.2 + 0.2 * env) for env in range(4)) for i in range(30)]
    frame = drawn(config, tiles, *moments)
    highest = []
    for tile in tiles:
        view = frame[tile.rect.top :][: tile.rect.height, tile.rect.left :][:, : tile.rect.width]
        assert (view[:24, :60] > 230).any()  # the label
        assert (view[-24:, :60] > 230).any()  # the line
        curve = is_curve(view[:, : int(0.85 * tile.rect.width)], 0)
        highest.append(int(np.flatnonzero(curve.any(axis=1))[0]))
    assert highest == sorted(highest, reverse=True)
    assert len(set(highest)) == 4


def test_views_of_one_environment_share_a_chart() -> None:
    config = VideoConfig(width=854, height=480, views=("track", "side"), overlay=("chart",))
    frame = drawn(config, plan_layouts(config, [0])[0].tiles, *((state(i / 30),) for i in range(30)))
    shown = is_curve(frame, 0)
    assert shown[:, :427].any()
    assert not shown[:, 427:].any()


def test_pictures_in_a_picture_keep_clear_of_chart_and_bar() -> None:
    views = ("track", "side", "front", "top")
    config = VideoConfig(width=854, height=480, views=views, view_layout=ViewLayout.PIP, overlay=OVERLAYS)
    tiles = plan_layouts(config, [0])[0].tiles
    frame = drawn(config, tiles, *((state(i / 30, apart=0.1),) for i in range(30)))
    assert is_curve(frame, 0).any()
    for tile in tiles[1:]:
        r = tile.rect
        inner = frame[r.top + 4 : r.top + r.height - 4, r.left + 4 : r.left + r.width - 4]
        assert (inner[:, 80:] == GREY).all()
        assert (inner[30:] == GREY).all()  # but for its label in the corner
        assert (frame[r.top, r.left : r.left + r.width] > 230).all()  # its edge


def test_a_run_that_has_ended_is_dimmed_and_named() -> None:
    config = VideoConfig(width=640, height=240, envs=(0, 1))
    tiles = plan_layouts(config, [0, 1], ["a", "b"])[0].tiles
    frame = drawn(config, tiles, (state(), state(env=1, ended=True)))
    assert (frame[120, 100] == GREY).all()
    assert (frame[120, 420] == round(0.7 * GREY)).all()
    amber = inked(frame, (255, 190, 70))
    assert not amber[:, :320].any()
    assert amber[:40, 320:].any()


def test_environments_on_one_ground_have_a_row_each() -> None:
    """A patch of its colour, its name, and if asked for its own return."""
    config = VideoConfig(width=320, height=240, envs=(0, 1), env_layout=EnvLayout.SCENE, overlay=("return",))
    tiles = plan_layouts(config, [0, 1])[0].tiles
    plain = drawn(config, tiles, (state(), state(env=1)))
    for index in (0, 1):
        assert inked(plain[:120], [round(255 * c) for c in subject_color(index)]).sum() > 30
    other = drawn(config, tiles, (state(), state(env=1, episode_return=99.0)))
    rows = np.flatnonzero((plain != other).any(axis=(1, 2)))
    patch = np.flatnonzero(inked(plain[:120], [round(255 * c) for c in subject_color(1)]).any(axis=1))
    assert patch.min() - 4 <= rows.min() <= rows.max() <= patch.max() + 4  # in the second's row alone
    done = drawn(config, tiles, (state(), state(env=1, ended=True)))
    assert inked(done[:120], WARNING).sum() > 20 > inked(plain[:120], WARNING).sum()


def test_the_legend_says_how_many_it_leaves_out() -> None:
    config = VideoConfig(width=320, height=120, envs=tuple(range(16)), env_layout=EnvLayout.SCENE)
    tiles = plan_layouts(config, range(16))[0].tiles
    frame = drawn(config, tiles, tuple(state(env=env) for env in range(16)))
    assert (frame[60:] == GREY).all()
    assert inked(frame, [round(255 * c) for c in subject_color(0)]).any()


def test_time_goes_on_with_those_that_have_not_ended() -> None:
    config = VideoConfig(width=320, height=240, envs=(0, 1), env_layout=EnvLayout.SCENE, overlay=("time",))
    tiles = plan_layouts(config, [0, 1])[0].tiles
    frames = [drawn(config, tiles, (state(1.0, ended=True), state(time, env=1))) for time in (2.0, 3.0)]
    assert (frames[0][120:] != frames[1][120:]).any()


def test_a_bar_says_what_the_colours_mean() -> None:
    config = VideoConfig(width=640, height=480, overlay=("error",))
    frame = drawn(config, plan_layouts(config, [0])[0].tiles, (state(),)).astype(int)
    corner = frame[:40, 320:]
    blue = (corner[..., 2] > 200) & (corner[..., 0] < 80)
    red = (corner[..., 0] > 200) & (corner[..., 2] < 80) & (corner[..., 1] < 80)
    assert blue.any()
    assert red.any()
    assert np.nonzero(blue)[1].max() < np.nonzero(red)[1].min()
    assert (frame[40:] == GREY).all()


# ---------------------------------------------------------------------- chart


def test_the_chart_shows_reward_and_the_mean_distance_from_the_reference() -> None:
    reward, error = chart_values(state(apart=0.3, reward=0.75))
    assert reward == 0.75
    assert error == pytest.approx(0.1)
    moved = state(apart=0.3)
    moved.ghosts = [(pos + np.array([2.0, 1.0, 0.0]), rot) for pos, rot in moved.ghosts]
    assert chart_values(moved)[1] == pytest.approx(0.1)  # seen from the root
    unknown = snapshot(pendulum_pose())
    assert np.isnan(chart_values(unknown)).all()
    unknown.annotations["tracking_error"] = 0.2
    assert chart_values(unknown)[1] == 0.2


@pytest.mark.parametrize(
    ("values", "scale"),
    [([0.0, 0.7], (0.0, 1.0)), ([0.9, 1.2], (0.0, 2.0)), ([-3.0, 30.0], (-5.0, 50.0)), ([np.nan], (0.0, 1.0)),
     ([100.0], (0.0, 100.0))],
)  # fmt: skip
def test_scales_are_round_and_hold_all_values(values: list[float], scale: tuple[float, float]) -> None:
    assert scale_of(np.array(values), 1.0) == pytest.approx(scale)


@pytest.mark.parametrize("rate", [5.0, 30.0, 100.0, 3000.0])
def test_a_history_keeps_the_last_seconds_at_any_rate(rate: float) -> None:
    history = History(1)
    room = history._times.nbytes
    for index in range(int(20 * rate)):
        history.add(index / rate, (index / rate,), is_cut=False)
    times, values, _ = history.last()
    assert history._times.nbytes == room
    assert times[-1] == (int(20 * rate) - 1) / rate
    assert times[0] == pytest.approx(times[-1] - SPAN, abs=max(1.0 / rate, 0.04))
    assert np.allclose(values[:, 0], times)
    assert np.diff(times).max() <= max(1.0 / rate, 0.04) + 1e-9


def test_cuts_are_not_thinned_out() -> None:
    history = History(1)
    for index in range(400):
        history.add(index / 400, (1.0,), is_cut=index in (100, 101, 250))
    times, _, cuts = history.last()
    assert np.allclose(times[cuts], np.array([100, 101, 250]) / 400)


def chart(*states: Snapshot) -> Frame:
    made = StripChart(Font(10))
    for each in states:
        made.add(each)
    panel = grey(400, 120)
    made.draw(panel)
    return panel


def plot_end() -> int:
    """Column in front of which the chart's curves are, and behind which their values are written."""
    font = Font(10)
    return 400 - 2 * font.pad - StripChart(font)._column


def curve(panel: Frame, strip: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Columns and rows of a curve's pixels, without the value beside it."""
    rows, columns = np.nonzero(is_curve(panel[:, :plot_end()], strip))
    return columns, rows


def test_a_curve_stands_as_high_as_its_value_and_scrolls_to_the_left() -> None:
    levels = [curve(chart(*(state(i / 30, reward=reward) for i in range(60))), 0)[1] for reward in (0.1, 0.5, 0.9)]
    heights = [rows.mean() for rows in levels]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2], abs=1.5)
    assert heights[0] - heights[2] > 25
    ends = []
    for seconds in (1, 2, 3, 6):
        steps = [state(i / 30, reward=0.9 if i < 15 else 0.1) for i in range(30 * seconds)]
        columns, rows = curve(chart(*steps), 0)
        high = columns[rows < rows.mean() - 8] if rows.std() > 5 else np.zeros(0)
        ends.append(high.max(initial=-1))
    assert ends[0] - ends[1] == pytest.approx(ends[1] - ends[2], abs=3)
    assert ends[0] - ends[1] > 50
    assert ends[3] == -1  # it has left the chart


def test_an_episode_that_begins_is_marked_and_breaks_the_curve() -> None:
    plain = [state(i / 30, reward=0.9 if i < 60 else 0.1) for i in range(90)]
    cut = [*plain[:60], state(2.0, reward=0.1, is_cut=True), *plain[61:]]
    marks = [(panel[:, :plot_end()] > 200).all(axis=-1).sum(axis=0) for panel in (chart(*plain), chart(*cut))]
    assert (marks[1] - marks[0]).max() > 50
    joins = [np.unique(curve(chart(*states), 0)[1]).size for states in (plain, cut)]
    assert joins[1] < 15 < joins[0]  # rows with a pixel of the curve: a steep line between the two heights, or none


def test_what_is_not_known_has_no_curve() -> None:
    unknown = [Snapshot(time=i / 30, env_id=0, step=i, poses=[]) for i in range(30)]
    panel = chart(*unknown)
    assert curve(panel, 0)[0].size == 0
    assert curve(panel, 1)[0].size == 0
