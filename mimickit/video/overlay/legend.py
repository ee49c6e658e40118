"""Which colour is whose, where several share one scene."""

from collections.abc import Sequence

from mimickit.video.overlay.text import INK, WARNING, Font, Frame, darken
from mimickit.video.palette import subject_color
from mimickit.video.snapshot import Snapshot


class Legend:
    """A row for each: a patch of its colour and its name, in an upper left corner; its return too if asked for."""

    def __init__(self, font: Font, names: Sequence[str], *, has_return: bool) -> None:
        self._font, self._names, self._has_return = font, list(names), has_return

    def draw(self, view: Frame, left: int, top: int, shown: Sequence[Snapshot]) -> None:
        """Draw into an RGB picture (H, W, 3), in place, as many rows as there is room for."""
        font = self._font
        room = max((len(view) // 2 - top - 2 * font.pad) // font.row, 1)
        rows = [self._row(index, snapshot) for index, snapshot in enumerate(shown)]
        if len(rows) > room:
            rows = [*rows[: room - 1], f"and {len(rows) - room + 1} more"]
        patch = font.capital
        names = [font.fitted(name, view.shape[1] // 2 - patch - 3 * font.pad) for name in rows]
        width = 3 * font.pad + patch + max(font.width(name) for name in names)
        darken(view[top : top + 2 * font.pad + len(names) * font.row - (font.row - patch), left : left + width])
        for row, name in enumerate(names):
            baseline = top + font.pad + patch + row * font.row
            x = left + font.pad
            is_more = row == room - 1 and len(shown) > room
            if not is_more:
                view[baseline - patch : baseline, x : x + patch] = [round(255 * c) for c in subject_color(row)]
            ink = WARNING if not is_more and shown[row].annotations.get("ended") else INK
            font.draw(view, name, x + patch + font.pad, baseline, ink)

    def _row(self, index: int, snapshot: Snapshot) -> str:
        total = snapshot.annotations.get("episode_return")
        parts = [self._names[index]]
        if self._has_return and total is not None:
            parts.append(f"{total:.1f}")
        if snapshot.annotations.get("ended"):
            parts.append("ended")
        return "  ".join(parts)
