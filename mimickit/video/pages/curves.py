"""Curves as inline SVG."""

import html
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mimickit.util.ticks import ticks

WIDTH, HEIGHT = 360, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 350, 12, 186  # of the plot
_MAX_POINTS = 240  # of a curve: more than its pixels


@dataclass(frozen=True)
class Curve:
    """Values over samples."""

    name: str
    color: str  # CSS
    x: Sequence[float]
    y: Sequence[float]


def chart(curves: Sequence[Curve], label: str) -> str:
    """An SVG element with all curves on common axes; label is read to those who can't see it."""
    xs = [x for curve in curves for x in curve.x]
    ys = [y for curve in curves for y in curve.y]
    if not xs:
        return ""
    x_low, x_high = _spread(min(xs), max(xs))
    y_low, y_high = _spread(min(ys), max(ys))

    def place(x: float, y: float) -> str:
        across = _LEFT + (_RIGHT - _LEFT) * (x - x_low) / (x_high - x_low)
        down = _BOTTOM - (_BOTTOM - _TOP) * (y - y_low) / (y_high - y_low)
        return f"{across:.1f},{down:.1f}"

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(label)}">']
    parts += _axes(place, (x_low, x_high), (y_low, y_high))
    for curve in curves:
        points = [place(x, y) for x, y in _thinned(curve)]
        title = f"<title>{html.escape(curve.name)}</title>"
        if len(points) == 1:
            across, down = points[0].split(",")
            parts.append(f'<circle cx="{across}" cy="{down}" r="3" fill="{curve.color}">{title}</circle>')
        elif points:
            parts.append(f'<polyline points="{" ".join(points)}" stroke="{curve.color}">{title}</polyline>')
    return "".join([*parts, "</svg>"])


def _axes(
    place: Callable[[float, float], str], x_range: tuple[float, float], y_range: tuple[float, float]
) -> Iterable[str]:
    for y, text in _labelled(ticks(*y_range, most=5)):
        down = place(x_range[0], y).split(",")[1]
        yield f'<line x1="{_LEFT}" x2="{_RIGHT}" y1="{down}" y2="{down}"/>'
        yield f'<text x="{_LEFT - 5}" y="{down}" dy="4" text-anchor="end">{text}</text>'
    for x, text in _labelled(ticks(*x_range, most=5)):
        across = place(x, y_range[0]).split(",")[0]
        yield f'<text x="{across}" y="{_BOTTOM + 16}" text-anchor="middle">{text}</text>'


def _labelled(values: Sequence[float]) -> list[tuple[float, str]]:
    """With what stands beside them: as short as tells them apart."""
    texts = [short(value) for value in values]
    if len(set(texts)) < len(texts):
        texts = [f"{value:.8g}" for value in values]
    return list(zip(values, texts, strict=True))


def _spread(low: float, high: float) -> tuple[float, float]:
    """Ends of an axis; a single value gets some room."""
    return (low, high) if high > low else (low - (abs(low) or 1.0) * 0.5, high + (abs(high) or 1.0) * 0.5)


def _thinned(curve: Curve) -> list[tuple[float, float]]:
    """The curve with no more points than can be told apart: of each stretch the mean."""
    points = list(zip(curve.x, curve.y, strict=True))
    if len(points) <= _MAX_POINTS:
        return points
    bounds = [round(index * len(points) / _MAX_POINTS) for index in range(_MAX_POINTS + 1)]
    stretches = (points[begin:end] for begin, end in zip(bounds, bounds[1:], strict=False))
    return [(sum(x for x, _ in part) / len(part), sum(y for _, y in part) / len(part)) for part in stretches]


def short(value: float) -> str:
    """A number as an axis or a table has room for it: 1.5M, 20k, 0.853, 2e-05."""
    for unit, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= 10.0 * factor or (abs(value) >= factor and value % (factor / 10.0) == 0.0):
            return f"{value / factor:.4g}{unit}"
    return f"{value:.4g}"
