"""Writes a line of facts into a frame."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TEXT_SHARE = 0.029  # height of the capitals by the frame's height
_CAPITALS = 22.0  # pixels, their height in the font at scale 1
_MIN_SCALE = 0.36  # smaller, nobody can read it
_INK = (245, 247, 250)
_SHADE = 0.45  # what is left of the picture's brightness behind the line


def overlay_text(annotations: Mapping[str, Any]) -> str:
    """episode_time (s), episode and episode_return as one line; what is not known is left out."""
    parts = []
    if annotations.get("episode_time") is not None:
        parts.append(f"{float(annotations['episode_time']):6.2f} s")
    if annotations.get("episode") is not None:
        parts.append(f"episode {annotations['episode']}")
    if annotations.get("episode_return") is not None:
        parts.append(f"return {float(annotations['episode_return']):.1f}")
    return "   ".join(parts)


def draw_line(frame: NDArray[np.uint8], text: str) -> None:
    """Write text into the lower left corner of an RGB frame (H, W, 3), in place, on a darkened strip."""
    if not text:
        return
    import cv2

    font = cv2.FONT_HERSHEY_SIMPLEX
    height, width = frame.shape[:2]
    scale = max(_TEXT_SHARE * height / _CAPITALS, _MIN_SCALE)
    natural = cv2.getTextSize(text, font, 1.0, 1)[0][0]
    scale = min(scale, 0.9 * width / natural)
    thickness = max(1, round(scale * 1.8))
    (text_width, text_height), base = cv2.getTextSize(text, font, scale, thickness)
    pad = text_height // 3 + 2
    left, bottom = pad, height - pad
    top, right = bottom - text_height - base - 2 * pad, min(left + text_width + 2 * pad, width)
    strip = frame[max(top, 0) : bottom, left:right]
    strip[:] = (strip * _SHADE).astype(np.uint8)
    cv2.putText(frame, text, (left + pad, bottom - base - pad // 2), font, scale, _INK, thickness, cv2.LINE_AA)
