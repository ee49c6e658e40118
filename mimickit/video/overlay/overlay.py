"""Writes into frames: the tiles' labels, a line of facts, a chart, and what the colours mean."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mimickit.video.config import VideoConfig
from mimickit.video.layout import Rect, Tile
from mimickit.video.overlay.body_error import ERROR_RANGE, error_colors
from mimickit.video.overlay.info_line import InfoLine, line_fields
from mimickit.video.overlay.legend import Legend
from mimickit.video.overlay.strip_chart import StripChart
from mimickit.video.overlay.text import DIM, INK, WARNING, Font, Frame, darken, fade
from mimickit.video.snapshot import Moment, Snapshot

_CHART = (0.36, 0.24)  # of a tile's width and height
_CHART_LENGTH, _NARROW = 22, 0.55  # capitals of width that a chart has if that is no larger share of a narrow tile
_MOST_WIDTH = 0.6  # of a tile's, for its chart; one that needs more has a row for itself
_MOST_HEIGHT = 0.45  # of a tile's, for its chart; one that needs more is left out
_MIN_LINE = 13  # capitals of width for the line beside a chart; with less it stands above
_LINE_HEIGHT = 0.45  # of the tile's, at most
_BAR = 7.0  # capitals, length of the bar of colours
_FADED = 0.3  # brightness that a tile loses when its run has ended
_ENDED = "ended"


class Overlay:
    """What is drawn into the frames of one clip. Frames are drawn in order: a chart remembers the last seconds.

    Labels are drawn wherever a tile has one, and an edge around a small picture in another; all else only if it is
    asked for. Every tile but those small pictures has a line; an environment has one chart, in the first tile that
    shows it alone. Where several subjects share a scene there is a legend, with their returns.
    """

    def __init__(self, config: VideoConfig, tiles: Sequence[Tile], facts: Mapping[str, Any]) -> None:
        rects = [tile.rect for tile in tiles]
        insets = [[r for r in rects[i + 1 :] if _touch(r, rect)] for i, rect in enumerate(rects)]
        is_inset = [any(_touch(r, rect) for r in rects[:i]) for i, rect in enumerate(rects)]
        charted = {tile.subjects: i for i, tile in reversed(list(enumerate(tiles)))}
        self._tiles = [
            _TileOverlay(
                tile, facts, insets[i], is_inset=is_inset[i],
                names=() if is_inset[i] else config.overlay,
                has_chart="chart" in config.overlay and charted[tile.subjects] == i and not tile.names,
                has_bar="error" in config.overlay and i == 0,
            )
            for i, tile in enumerate(tiles)
        ]  # fmt: skip

    def draw(self, frame: Frame, moment: Moment) -> None:
        """Draw into an RGB frame (H, W, 3), in place."""
        for tile in self._tiles:
            tile.draw(frame, moment)


class _TileOverlay:
    """What is drawn into one tile, and where in it."""

    def __init__(
        self,
        tile: Tile,
        facts: Mapping[str, Any],
        insets: Sequence[Rect],
        *,
        is_inset: bool,
        names: Sequence[str],
        has_chart: bool,
        has_bar: bool,
    ) -> None:
        self._tile, self._facts, self._names, self._is_inset = tile, facts, names, is_inset
        rect = tile.rect
        self._font = Font.of_tile(rect.width, rect.height)
        self._margin = max(2, self._font.pad)
        self._insets = [Rect(r.left - rect.left, r.top - rect.top, r.width, r.height) for r in insets]
        self._panel_height = self._font.capital + 2 * self._font.pad
        self._chart = StripChart(self._font)
        self._chart_rect = self._place_chart() if has_chart else None
        self._line_bottom, line_width = self._place_line()
        line_height = min(int(_LINE_HEIGHT * rect.height), self._line_bottom - self._top)
        self._line = InfoLine(self._font, line_width, line_height)
        self._bar = _ColorBar(self._font) if has_bar else None
        self._legend: Legend | None = None
        if tile.names and not is_inset:  # what is one subject's own is said in its row
            self._legend = Legend(self._font, tile.names, has_return="return" in names)
            self._names = [name for name in names if name not in ("episode", "return", "run")]

    def draw(self, frame: Frame, moment: Moment) -> None:
        rect, shown = self._tile.rect, [moment[index] for index in self._tile.subjects]
        view = frame[rect.top : rect.top + rect.height, rect.left : rect.left + rect.width]
        has_ended = not self._is_inset and all(snapshot.annotations.get("ended") for snapshot in shown)
        if has_ended:
            fade(view, _FADED)
        if self._is_inset:
            _frame_in(view, max(1, round(self._font.capital / 8)))
        right = self._draw_label(view, has_ended)
        if self._legend is not None:
            self._legend.draw(view, self._margin, self._top if right else self._margin, shown)
        if self._bar is not None:
            self._bar.draw(view, right + self._margin, self._right_edge(self._panel_height), self._margin)
        self._draw_chart(view, shown[0])
        latest = next((snapshot for snapshot in shown if not snapshot.annotations.get("ended")), shown[0])
        fields = line_fields(self._names, latest, self._facts)
        if fields:
            self._line.draw(view, fields, self._margin, self._line_bottom)

    def _draw_label(self, view: Frame, has_ended: bool) -> int:
        """In the upper left corner; returns where it ends."""
        font, label = self._font, self._tile.label or ""
        if not (label or has_ended) or self._panel_height + 2 * self._margin > len(view):
            return 0
        gap = font.capital if label and has_ended else 0
        room = self._right_edge(self._panel_height) - self._margin - 2 * font.pad
        ending = font.width(_ENDED) + gap if has_ended else 0
        label = font.fitted(label, room - ending)
        left, top = self._margin, self._margin
        right = left + 2 * font.pad + font.width(label) + ending
        darken(view[top : top + self._panel_height, left:right])
        x = font.draw(view, label, left + font.pad, top + font.pad + font.capital, INK)
        if has_ended:
            font.draw(view, _ENDED, x + gap, top + font.pad + font.capital, WARNING)
        return right

    def _draw_chart(self, view: Frame, snapshot: Snapshot) -> None:
        rect = self._chart_rect
        if rect is not None:
            self._chart.add(snapshot)
            self._chart.draw(view[rect.top : rect.top + rect.height, rect.left : rect.left + rect.width])

    # ------------------------------------------------------------------ places

    @property
    def _top(self) -> int:
        """Above which there are label and colour bar."""
        return 2 * self._margin + self._panel_height

    def _right_edge(self, bottom: int) -> int:
        """How far to the right there is room down to a row: up to the margin, or to the pictures in this one."""
        lefts = [inset.left for inset in self._insets if inset.top < bottom + self._margin]
        return min([self._tile.rect.width, *lefts]) - self._margin

    def _place_chart(self) -> Rect | None:
        """In the lower right corner, clear of the pictures in this one. None where there is no room."""
        tile, margin = self._tile.rect, self._margin
        least = StripChart.min_size(self._font)
        narrow = min(_CHART_LENGTH * self._font.capital, int(_NARROW * tile.width))
        width = max(int(_CHART[0] * tile.width), narrow, least[0])
        height = max(int(_CHART[1] * tile.height), least[1])
        if width > _MOST_WIDTH * tile.width:
            width = tile.width - 2 * margin
        top = tile.height - margin - height
        below = [inset.left for inset in self._insets if inset.top + inset.height + margin > top]
        left = min([tile.width, *below]) - margin - width
        if width < least[0] or height > _MOST_HEIGHT * tile.height or top < self._top or left < margin:
            return None
        return Rect(left, top, width, height)

    def _place_line(self) -> tuple[int, int]:
        """Row of the panel's lower edge, and its width: left of the chart, or above it."""
        tile, margin, chart = self._tile.rect, self._margin, self._chart_rect
        if chart is None:
            return tile.height - margin, tile.width - 2 * margin
        if chart.left - 2 * margin >= _MIN_LINE * self._font.capital:
            return tile.height - margin, chart.left - 2 * margin
        return chart.top - margin, tile.width - 2 * margin


class _ColorBar:
    """What the colours of a ghost mean."""

    def __init__(self, font: Font) -> None:
        self._font = font
        self._first, self._last = "error  0", f"{ERROR_RANGE:g} m"
        length = round(_BAR * font.capital)
        self._colors = np.rint(255 * error_colors(np.linspace(0.0, ERROR_RANGE, length))).astype(np.uint8)
        self._height = font.capital + 2 * font.pad
        self._width = font.width(self._first) + font.width(self._last) + length + 4 * font.pad

    def draw(self, view: Frame, left: int, right: int, top: int) -> None:
        """In an upper right corner, if there is room between left and right."""
        if right - left < self._width or top + self._height > len(view):
            return
        font, panel = self._font, view[top : top + self._height, right - self._width : right]
        darken(panel)
        baseline = font.pad + font.capital
        start = font.draw(panel, self._first, font.pad, baseline, DIM) + font.pad
        end = start + len(self._colors)
        panel[font.pad : baseline, start:end] = self._colors
        font.draw(panel, self._last, end + font.pad, baseline, DIM)


def _frame_in(view: Frame, width: int) -> None:
    """An edge of so many pixels, by which a picture in a picture is told from what is behind it."""
    for edge in (view[:width], view[-width:], view[:, :width], view[:, -width:]):
        edge[:] = INK


def _touch(a: Rect, b: Rect) -> bool:
    return (
        a.left < b.left + b.width and b.left < a.left + a.width
        and a.top < b.top + b.height and b.top < a.top + a.height
    )  # fmt: skip
