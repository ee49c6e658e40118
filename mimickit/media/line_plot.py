"""A plot of a few curves as a picture."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mimickit.util.ticks import ticks
from mimickit.video.overlay.text import Font
from mimickit.video.palette import subject_color

Ink = tuple[int, int, int]
_PAPER, _INK, _GRID = 250, (40, 48, 58), (222, 226, 232)
_SHIFT = 3  # bits of a pixel's fraction


def plot_lines(
    curves: Mapping[str, Sequence[float]],
    *,
    step: float = 1.0,
    title: str = "",
    x_label: str = "",
    size: tuple[int, int] = (640, 360),
) -> NDArray[np.uint8]:
    """Draw curves over a common axis.

    Args:
        curves: name, with its unit -> values; what is not finite leaves a gap. step: between two values on the axis.
        x_label: of the axis, with its unit. size: width and height (pixels).

    Returns:
        (H, W, 3) uint8 RGB.
    """
    import cv2

    width, height = size
    picture = np.full((height, width, 3), _PAPER, dtype=np.uint8)
    font = Font(max(8, height // 34))
    left, right = font.width("0000.00") + 2 * font.pad, width - 2 * font.pad
    top, bottom = 2 * font.row + font.pad, height - 2 * font.row
    low, high = _range([value for values in curves.values() for value in values])
    length = max([len(values) for values in curves.values()], default=0)
    end = max(length - 1, 1) * step

    def place(x: float, y: float) -> tuple[float, float]:
        return left + (right - left) * x / end, bottom - (bottom - top) * (y - low) / (high - low)

    for tick in ticks(low, high):
        row = round(place(0.0, tick)[1])
        cv2.line(picture, (left, row), (right, row), _GRID, 1)
        text = f"{tick:.4g}"
        font.draw(picture, text, left - font.pad - font.width(text), row + font.capital // 2, _INK)
    for tick in ticks(0.0, end):
        column, text = round(place(tick, low)[0]), f"{tick:.4g}"
        cv2.line(picture, (column, bottom), (column, bottom + font.pad), _GRID, 1)
        font.draw(picture, text, column - font.width(text) // 2, bottom + font.row, _INK)
    font.draw(picture, font.fitted(title, width - 2 * font.pad), font.pad, font.row, _INK)
    font.draw(picture, x_label, right - font.width(x_label), height - font.pad, _INK)
    at = left
    for number, (name, values) in enumerate(curves.items()):
        color = _color(number)
        for part in _unbroken(values):
            points = np.array([place(index * step, values[index]) for index in part])
            fixed = np.rint(points * (1 << _SHIFT)).astype(np.int32)
            cv2.polylines(picture, [fixed], False, color, 2, cv2.LINE_AA, _SHIFT)
        at = font.draw(picture, name, at, 2 * font.row, color) + 3 * font.pad
    return picture


def _range(values: Sequence[float]) -> tuple[float, float]:
    known = [value for value in values if math.isfinite(value)]
    low, high = min([0.0, *known]), max([0.0, *known])
    return (low, high) if high > low else (low, low + 1.0)


def _unbroken(values: Sequence[float]) -> list[range]:
    """Stretches of finite values."""
    stretches, begin = list[range](), 0
    for index in range(len(values) + 1):
        if index == len(values) or not math.isfinite(values[index]):
            if index > begin:
                stretches.append(range(begin, index))
            begin = index + 1
    return stretches


def _color(number: int) -> Ink:
    red, green, blue = (round(230 * part) for part in subject_color(number))
    return red, green, blue
