"""The line in the lower left corner: time, episode, return, samples, run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mimickit.video.overlay.text import DIM, INK, Font, Frame, darken
from mimickit.video.snapshot import Snapshot

Piece = tuple[str, bool]
"""A text, and whether it is a value, which is written brighter than what it is the value of."""
Field = tuple[Piece, ...]

_GAP = 1.1  # capitals between two fields
_SPACE = 0.45  # capitals between the pieces of a field
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
# of what can be asked for, in this order: where its value is found, and how it is written
_FIELDS: dict[str, tuple[str, Callable[[Any], Field]]] = {
    "time": ("episode_time", lambda value: ((f"{float(value):.2f}", True), ("s", False))),
    "episode": ("episode", lambda value: (("episode", False), (str(value), True))),
    "return": ("episode_return", lambda value: (("return", False), (f"{float(value):.1f}", True))),
    "samples": ("samples", lambda value: ((short_number(float(value)), True), ("samples", False))),
    "run": ("run", lambda value: ((str(value), True),)),
}


def line_fields(names: Sequence[str], snapshot: Snapshot, facts: Mapping[str, Any]) -> list[Field]:
    """The fields that were asked for; what is not known is left out.

    Args:
        names: time, episode, return, samples, run; others mean nothing here.
        facts: of the recording (samples, run, name); an annotation of the same name goes before.
    """
    known = {**facts, **snapshot.annotations}
    known.setdefault("run", known.get("name"))
    known.setdefault("episode_time", snapshot.time)
    asked = [make for name, make in _FIELDS.items() if name in names]
    return [make(known[key]) for key, make in asked if known.get(key) is not None]


def short_number(value: float) -> str:
    """Three figures and a unit: 950, 12.3k, 1.25M."""
    for size, unit in _UNITS:
        if abs(value) >= 0.9995 * size:
            return f"{value / size:.3g}{unit}" if abs(value) < 999.5 * size else f"{value / size:.0f}{unit}"
    return f"{value:.0f}"


class InfoLine:
    """Draws the fields of one tile, in as many rows as they need.

    A field keeps the room that it once took, so that nothing jumps while its digits change.
    """

    def __init__(self, font: Font, width: int, height: int) -> None:
        """width, height: that the panel may take (pixels)."""
        self._font, self._width = font, width - 2 * font.pad
        self._max_rows = 1 + (height - font.capital - 2 * font.pad) // font.row
        self._gap, self._space = round(_GAP * font.capital), round(_SPACE * font.capital)
        self._room: dict[int, int] = {}  # pixels that a field has taken

    def draw(self, view: Frame, fields: Sequence[Field], left: int, bottom: int) -> None:
        """Draw into a tile (H, W, 3), in place, on a panel whose lower left corner is given."""
        font = self._font
        fields = [self._fitted(field) for field in fields]
        for index, field in enumerate(fields):
            self._room[index] = max(self._room.get(index, 0), self._measure(field))
        rows = self._rows(len(fields))[: max(self._max_rows, 0)]
        if not rows:
            return
        width = max(sum(self._room[i] + self._gap for i in row) - self._gap for row in rows)
        top = bottom - (len(rows) - 1) * font.row - font.capital - 2 * font.pad
        darken(view[top:bottom, left : left + width + 2 * font.pad])
        for number, row in enumerate(rows):
            x, baseline = left + font.pad, top + font.pad + font.capital + number * font.row
            for index in row:
                self._draw_field(view, fields[index], x, baseline)
                x += self._room[index] + self._gap

    def _draw_field(self, view: Frame, field: Field, left: int, baseline: int) -> None:
        for text, is_value in field:
            left = self._font.draw(view, text, left, baseline, INK if is_value else DIM) + self._space

    def _measure(self, field: Field) -> int:
        return sum(self._font.width(text) for text, _ in field) + self._space * (len(field) - 1)

    def _fitted(self, field: Field) -> Field:
        """A single text that is too long, cut."""
        return ((self._font.fitted(field[0][0], self._width), field[0][1]),) if len(field) == 1 else field

    def _rows(self, count: int) -> list[list[int]]:
        """Which fields stand in which row."""
        rows: list[list[int]] = []
        free = -1
        for index in range(count):
            need = self._room[index] + self._gap
            if free < need - self._gap:
                if self._room[index] > self._width:
                    continue  # no row is long enough
                rows.append([])
                free = self._width
            rows[-1].append(index)
            free -= need
        return rows
