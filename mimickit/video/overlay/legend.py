"""Which colour is whose, where several share one scene."""

from collections.abc import Sequence

from mimickit.video.overlay.text import INK, WARNING, Font, Frame, darken
from mimickit.video.palette import subject_color
from mimickit.video.snapshot import Snapshot


class Legend:
    """A row for each: a patch of its colour and its name, in an upper left corner."""

    def __init__(self, font: Font, names: Sequence[str]) -> None:
        self._font, self._names = font, list(names)

    def draw(self, view: Frame, left: int, top: int, shown: Sequence[Snapshot]) -> None:
        """Draw into an RGB picture (H, W, 3), in place, as many rows as there is room for."""
        font = self._font
        rows = min(len(self._names), (len(view) // 2 - top - 2 * font.pad) // font.row)
        patch = font.capital
        names = [font.fitted(name, view.shape[1] // 2 - patch - 3 * font.pad) for name in self._names[:rows]]
        if not names:
            return
        width = 3 * font.pad + patch + max(font.width(name) for name in names)
        darken(view[top : top + 2 * font.pad + rows * font.row - (font.row - patch), left : left + width])
        for row, name in enumerate(names):
            baseline = top + font.pad + patch + row * font.row
            x = left + font.pad
            view[baseline - patch : baseline, x : x + patch] = [round(255 * c) for c in subject_color(row)]
            ink = WARNING if shown[row].annotations.get("ended") else INK
            font.draw(view, name, x + patch + font.pad, baseline, ink)
