"""Colours and light: a pale studio floor that dissolves into the haze under a blue sky. RGB in 0..1."""

import numpy as np
from numpy.typing import NDArray

HAZE = (0.84, 0.89, 0.94)
ZENITH = (0.33, 0.54, 0.83)
FLOOR = (0.715, 0.735, 0.76)
FLOOR_OTHER = (0.645, 0.665, 0.695)
LINE = (0.86, 0.875, 0.89)
CELL = 1.0  # m, side of a ground cell

AMBIENT = np.array([0.41, 0.41, 0.42])
KEY_COLOR = np.array([0.59, 0.575, 0.55])
KEY_DIRECTION = np.array([0.38, 0.62, -1.15])  # from behind the default camera's left shoulder
RIM_COLOR = np.array([0.12, 0.13, 0.15])
RIM_DIRECTION = np.array([-0.5, -0.75, -0.45])
FILL = 0.10  # of the light that comes from the camera

GHOST_COLOR = (0.30, 0.72, 0.98, 0.32)
SHADE = 0.80  # of a colour: every second body along a limb is darker, where a file has no colours
SUBJECT_COLORS = (
    (0.90, 0.55, 0.25),
    (0.25, 0.60, 0.70),
    (0.62, 0.45, 0.75),
    (0.45, 0.65, 0.35),
    (0.80, 0.40, 0.45),
)


def subject_color(index: int) -> tuple[float, float, float]:
    """By which one of several is known; they repeat after a few."""
    return SUBJECT_COLORS[index % len(SUBJECT_COLORS)]


def ghost_color(index: int) -> tuple[float, float, float, float]:
    """RGBA of the ghost of one of several: its colour, paler."""
    red, green, blue = (0.45 * part + 0.55 for part in subject_color(index))
    return red, green, blue, GHOST_COLOR[3]


def distant_floor() -> NDArray[np.float64]:
    """(3,) what the lit cells blur into at the horizon, so that floor and sky meet without an edge."""

    def falls(direction: NDArray[np.float64]) -> float:
        return float(-direction[2] / np.linalg.norm(direction))

    light = AMBIENT + KEY_COLOR * falls(KEY_DIRECTION) + RIM_COLOR * falls(RIM_DIRECTION)
    return np.asarray(0.5 * (np.array(FLOOR) + np.array(FLOOR_OTHER)) * light)
