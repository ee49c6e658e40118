"""Text in the picture, in a size that suits its tile, and the dark panels that it stands on."""

import functools

import numpy as np
from numpy.typing import NDArray

Frame = NDArray[np.uint8]
Ink = tuple[int, int, int]

INK: Ink = (246, 248, 250)
DIM: Ink = (176, 184, 194)
WARNING: Ink = (255, 190, 70)

_SHARE = 0.024  # height of the capitals by the tile's shorter side
_MIN_CAPITAL = 8  # pixels; smaller, nobody can read it
_CAPITAL = 21.0  # pixels, of the face at scale 1
_STROKE = 1.9  # pixels at scale 1, where the face is made of strokes
_PANEL = 26  # brightness of a panel
_PANEL_SHARE = 0.66  # of it in what is seen, the rest is the picture


class Font:
    """One typeface in one size. Lengths are pixels."""

    def __init__(self, capital: int) -> None:
        """capital: height of capital letters."""
        import cv2

        self.capital = capital
        self.pad = max(3, round(0.6 * capital))
        """Between a panel's edge and its text."""
        self.row = round(1.8 * capital)
        """From one line to the next."""
        self._scale = capital / _CAPITAL
        # from OpenCV 5 on the face has outlines, and a thickness of two makes it bold
        has_strokes = int(cv2.__version__.partition(".")[0]) < 5
        self._thickness = max(1, round(_STROKE * self._scale)) if has_strokes else 1
        self.width = functools.lru_cache(maxsize=256)(self._measure)
        """(text) -> pixels across."""

    @classmethod
    def of_tile(cls, width: int, height: int) -> "Font":
        """In a size that can be read in a tile."""
        return cls(max(_MIN_CAPITAL, round(_SHARE * min(width, height))))

    def _measure(self, text: str) -> int:
        import cv2

        return int(cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, self._scale, self._thickness)[0][0])

    def draw(self, view: Frame, text: str, left: int, baseline: int, ink: Ink = INK) -> int:
        """Write into an RGB picture (H, W, 3), in place; returns where the text ends."""
        import cv2

        face = cv2.FONT_HERSHEY_SIMPLEX
        cv2.putText(view, text, (left, baseline), face, self._scale, ink, self._thickness, cv2.LINE_AA)
        return left + self.width(text)

    def fitted(self, text: str, width: int) -> str:
        """The text, or so much of it as fits, with dots for the rest."""
        if self.width(text) <= width:
            return text
        while text and self._measure(text + "..") > width:
            text = text[:-1]
        return text + ".." if text else ""


def darken(view: Frame) -> None:
    """Lay a translucent dark panel over an RGB picture (H, W, 3), in place."""
    _blend(view, _PANEL, _PANEL_SHARE)


def fade(view: Frame, share: float) -> None:
    """Take a share (0..1) of the brightness off an RGB picture (H, W, 3), in place."""
    _blend(view, 0, share)


def _blend(view: Frame, brightness: int, share: float) -> None:
    """A share of one brightness, the rest of the picture."""
    import cv2

    if view.size:
        cv2.convertScaleAbs(view, view, 1.0 - share, brightness * share)
