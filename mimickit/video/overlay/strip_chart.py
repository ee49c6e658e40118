"""The strip chart: reward and tracking error over the last seconds, scrolling."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mimickit.video.overlay.body_error import body_errors
from mimickit.video.overlay.text import DIM, Font, Frame, Ink, darken
from mimickit.video.snapshot import FloatArray, Snapshot

SPAN = 4.0
"""s that a chart shows."""
_CAPACITY = 256  # samples that a history keeps
_STEP = 2.0 * SPAN / _CAPACITY  # s; samples that come faster than twice in it replace each other
_GRID: Ink = (84, 92, 102)
_CUT: Ink = (205, 212, 220)
_SCALE_FROM = 14  # capitals of width from which a plot has room for the upper end of its scale
_SCALE_ROOM = "0.05"
_SHIFT = 3  # bits of a pixel's fraction


@dataclass(frozen=True)
class Strip:
    """One curve: what it is called, and the least that its scale reaches."""

    name: str
    color: Ink
    shade: Ink  # of the area below the curve
    least: float
    template: str


STRIPS = (
    Strip("reward", (118, 214, 130), (46, 84, 60), 1.0, "{:.2f}"),
    Strip("error", (255, 150, 92), (100, 64, 48), 0.05, "{:.3f} m"),
)
"""What is charted, from above."""


def chart_values(snapshot: Snapshot) -> tuple[float, float]:
    """Reward, and tracking error (m): the mean distance of the first actor's bodies from the reference's, both seen
    from their root. NaN for what is not known.
    """
    reward = snapshot.annotations.get("reward")
    error = snapshot.annotations.get("tracking_error")
    if snapshot.poses and snapshot.ghosts and len(snapshot.poses[0][0]) == len(snapshot.ghosts[0][0]):
        error = body_errors(snapshot.poses[0], snapshot.ghosts[0]).mean()
    return _number(reward), _number(error)


class History:
    """Samples of the last SPAN seconds, in a fixed amount of memory at any rate of samples."""

    def __init__(self, width: int) -> None:
        """width: numbers a sample."""
        self._times, self._values = np.zeros(_CAPACITY), np.zeros((_CAPACITY, width))
        self._cuts = np.zeros(_CAPACITY, dtype=bool)
        self._count = 0

    def add(self, time: float, values: tuple[float, ...], *, is_cut: bool) -> None:
        """A sample at a time (s), which never goes back. is_cut: it has nothing to do with the sample before."""
        count = self._count
        if count >= 2 and not self._cuts[count - 1] and time - self._times[count - 2] < _STEP:
            count -= 1
        if count == _CAPACITY:
            for array in (self._times, self._values, self._cuts):
                array[:-1] = array[1:]
            count -= 1
        self._times[count], self._values[count], self._cuts[count] = time, values, is_cut
        self._count = count + 1

    @property
    def now(self) -> float:
        """Time of the last sample (s)."""
        return float(self._times[self._count - 1]) if self._count else 0.0

    def last(self) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        """Times (N,), values (N, W) and cuts (N,) of the last SPAN seconds, and of one sample before."""
        first = int(np.searchsorted(self._times[: self._count], self.now - SPAN, side="right"))
        kept = slice(max(first - 1, 0), self._count)
        return self._times[kept], self._values[kept], self._cuts[kept]


class StripChart:
    """Draws a panel with a curve for every strip and its present value beside it."""

    def __init__(self, font: Font) -> None:
        self._font = font
        self._history = History(len(STRIPS))
        samples = [text for strip in STRIPS for text in (strip.name, strip.template.format(8.888))]
        self._column = max(font.width(text) for text in samples)  # of the values

    @staticmethod
    def min_size(font: Font) -> tuple[int, int]:
        """Width and height (pixels) below which nothing can be read."""
        return 13 * font.capital, 2 * (font.row + font.capital) + 3 * font.pad

    def add(self, snapshot: Snapshot) -> None:
        """The next frame's values."""
        self._history.add(snapshot.time, chart_values(snapshot), is_cut=snapshot.is_cut)

    def draw(self, panel: Frame) -> None:
        """Draw what was added into a part of the picture (H, W, 3), in place."""
        darken(panel)
        font, (height, width) = self._font, panel.shape[:2]
        times, values, cuts = self._history.last()
        strip_height = (height - 3 * font.pad) // len(STRIPS)
        left, right = font.pad, width - 2 * font.pad - self._column
        has_scale = right - left >= _SCALE_FROM * font.capital
        if has_scale:
            left += font.width(_SCALE_ROOM) + font.pad // 2
        x = (right - left) * (1.0 - (self._history.now - times) / SPAN)
        for row, strip in enumerate(STRIPS):
            top = font.pad + row * (strip_height + font.pad)
            low, high = scale_of(values[:, row], strip.least)
            self._draw_curve(panel[top : top + strip_height, left:right], strip, x, values[:, row], cuts, (low, high))
            self._draw_value(panel, strip, right + font.pad, top, values[-1, row])
            if has_scale:
                font.draw(panel, f"{high:g}", font.pad, top + font.capital, DIM)

    def _draw_curve(
        self, plot: Frame, strip: Strip, x: FloatArray, values: FloatArray, cuts: NDArray[np.bool_],
        scale: tuple[float, float],
    ) -> None:  # fmt: skip
        import cv2

        font, height, (low, high) = self._font, plot.shape[0], scale
        thick = max(1, round(font.capital / 8))
        y = thick + (height - 1 - 2 * thick) * (high - values) / (high - low)
        zero = thick + (height - 1 - 2 * thick) * high / (high - low)
        grid = max(1, round(font.capital / 14))
        plot[max(round(zero) - grid + 1, 0) : round(zero) + 1] = _GRID
        for part in _unbroken(values, cuts):
            line = _fixed(np.stack((x[part], y[part]), axis=-1))
            ends = _fixed(np.array([[x[part][-1], zero], [x[part][0], zero]]))
            cv2.fillPoly(plot, [np.concatenate((line, ends))], strip.shade, cv2.LINE_8, _SHIFT)
            _stroke(plot, line, strip.color, thick)
        for place in x[cuts]:
            if place >= 0.0:
                plot[:, int(place) : int(place) + grid] = _CUT

    def _draw_value(self, panel: Frame, strip: Strip, left: int, top: int, value: float) -> None:
        font = self._font
        font.draw(panel, strip.name, left, top + font.capital, DIM)
        text = strip.template.format(value) if math.isfinite(value) else "-"
        font.draw(panel, text, left, top + font.row + font.capital, strip.color)


def _stroke(plot: Frame, line: NDArray[np.int32], color: Ink, thick: int) -> None:
    import cv2

    if thick > 2:
        cv2.polylines(plot, [line], False, color, thick, cv2.LINE_AA, _SHIFT)
        return
    for row in range(thick):  # thin lines, one below the other, take a fifth of the time of a line of two pixels
        cv2.polylines(plot, [line + np.array([0, row << _SHIFT])], False, color, 1, cv2.LINE_AA, _SHIFT)


def scale_of(values: FloatArray, least: float) -> tuple[float, float]:
    """Ends of a scale with round numbers that holds 0, `least` and all values."""
    known = values[np.isfinite(values)]
    high, low = float(np.max(known, initial=0.0)), float(np.min(known, initial=0.0))
    return (-_round_up(-low) if low < 0.0 else 0.0), max(least, _round_up(high))


def _round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, ..."""
    if value <= 0.0:
        return 0.0
    unit = 10.0 ** math.floor(math.log10(value))
    return float(next(step * unit for step in (1.0, 2.0, 5.0, 10.0) if value <= step * unit * (1.0 + 1e-9)))


def _unbroken(values: FloatArray, cuts: NDArray[np.bool_]) -> Iterator[slice]:
    """Stretches of known values without a cut inside."""
    known = np.isfinite(values)
    begins = known & (cuts | ~np.concatenate(([False], known[:-1])))
    ends = known & np.concatenate((cuts[1:] | ~known[1:], [True]))
    for begin, end in zip(np.flatnonzero(begins), np.flatnonzero(ends), strict=True):
        yield slice(int(begin), int(end) + 1)


def _fixed(points: FloatArray) -> NDArray[np.int32]:
    return np.rint(points * (1 << _SHIFT)).astype(np.int32)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
