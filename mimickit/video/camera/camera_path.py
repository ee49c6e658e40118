"""The path of a dolly camera: key poses in a YAML file, and the smooth way through them.

The file is a list of key poses in the order of their times::

    - {time: 0.0, eye: [4, -3, 1.5], target: [0, 0, 0.9]}
    - {time: 2.5, eye: [1, -4, 1.0], target: [1, 0, 0.9], fov: 30}
    - {time: 6.0, eye: [0, -2, 2.0], target: [2, 0, 0.5]}

time is in seconds of the clip, eye and target are places (m), fov is vertical (degrees; left out: the configured one).
Places are in the environment's frame. With ``relative: true`` they are seen from the subject's place on the ground,
smoothed, and go with it; the list is then named ``poses``::

    relative: true
    poses:
      - {time: 0.0, eye: [4, -3, 1.5], target: [0, 0, 0.9]}
      - {time: 2.5, eye: [1, -4, 1.0], target: [0, 0, 0.9]}

The camera is at every key pose at its time, between two it passes no coordinate's larger or smaller value, starts and
stops softly, and stands at the first pose before its time and at the last one for ever after.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mimickit.config import find_path, parse_yaml
from mimickit.util.keys import ConfigError, as_bool, as_float, reject_unknown
from mimickit.video.snapshot import FloatArray

_FOV_RANGE = (1.0, 170.0)  # degrees


@dataclass(frozen=True)
class CameraPath:
    """Key poses of a camera, interpolated."""

    times: FloatArray
    """(K,) s, increasing."""
    values: FloatArray
    """(K, 7): eye and target (m), field of view (degrees)."""
    is_relative: bool
    """Whether eye and target are seen from the subject's place."""
    slopes: FloatArray = field(init=False, repr=False)
    """(K, 7) rates of change at the keys (1/s)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "slopes", _monotone_slopes(self.times, self.values))

    def at(self, time: float) -> tuple[FloatArray, FloatArray, float]:
        """Eye (3,), target (3,) and field of view (degrees) at a time (s): a cubic between two keys."""
        times, slopes = self.times, self.slopes
        if time <= times[0] or time >= times[-1]:
            value = self.values[0 if time <= times[0] else -1]
        else:
            i = int(np.searchsorted(times, time, side="right")) - 1
            span = times[i + 1] - times[i]
            t = (time - times[i]) / span
            value = (
                (1.0 + 2.0 * t) * (1.0 - t) ** 2 * self.values[i]
                + t * t * (3.0 - 2.0 * t) * self.values[i + 1]
                + span * t * (1.0 - t) * ((1.0 - t) * slopes[i] - t * slopes[i + 1])
            )
        return value[:3], value[3:6], float(value[6])


def load_camera_path(path: str | Path, default_fov: float) -> CameraPath:
    """Read the key poses of a file; default_fov (degrees) is that of keys which name none. Raises ConfigError."""
    file = find_path(path, "video: camera_path")
    try:
        content = parse_yaml(file.read_text(encoding="utf-8-sig"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: can't be read: {error}") from None
    is_relative = False
    if isinstance(content, Mapping):
        reject_unknown(content, ("relative", "poses"), str(file))
        is_relative = as_bool(content.get("relative", False), "relative", str(file))
        content = content.get("poses")
    if not isinstance(content, list) or not content:
        raise ConfigError(f"{file}: expected a list of key poses (time, eye, target, fov), found {content!r}")
    rows: list[list[float]] = []
    for number, key in enumerate(content, start=1):
        source = f"{file}: key {number} of {len(content)}"
        rows.append(_read_key(key, default_fov, source))
        if number > 1 and rows[-1][0] <= rows[-2][0]:
            raise ConfigError(f"{source}: time: expected more than {rows[-2][0]:g} s, found {rows[-1][0]:g}")
    table = np.array(rows)
    return CameraPath(table[:, 0], table[:, 1:], is_relative)


def _read_key(key: Any, default_fov: float, source: str) -> list[float]:
    """Time, eye, target, fov of a key pose."""
    if not isinstance(key, Mapping):
        raise ConfigError(f"{source}: expected time, eye, target and fov, found {key!r}")
    reject_unknown(key, ("time", "eye", "target", "fov"), source)
    for name in ("time", "eye", "target"):
        if name not in key:
            raise ConfigError(f"{source}: {name} is missing")
    time, fov = _number(key["time"], "time", source), _number(key.get("fov", default_fov), "fov", source)
    eye, target = _point(key["eye"], "eye", source), _point(key["target"], "target", source)
    low, high = _FOV_RANGE
    if not low <= fov <= high:
        raise ConfigError(f"{source}: fov: expected {low:g} to {high:g} degrees, found {fov:g}")
    if eye == target:
        raise ConfigError(f"{source}: eye and target: expected two different points, found {eye} twice")
    return [time, *eye, *target, fov]


def _point(value: Any, name: str, source: str) -> list[float]:
    if not isinstance(value, list) or len(value) != 3:
        raise ConfigError(f"{source}: {name}: expected three numbers (m), found {value!r}")
    return [_number(number, name, source) for number in value]


def _number(value: Any, name: str, source: str) -> float:
    number = as_float(value, name, source)
    if not np.isfinite(number):
        raise ConfigError(f"{source}: {name}: expected a finite number, found {value!r}")
    return number


def _monotone_slopes(times: FloatArray, values: FloatArray) -> FloatArray:
    """(K, N) rates of change at the keys with which cubics between them overshoot nothing (Fritsch and Butland, 1984).

    At an interior key, the weighted harmonic mean of the slopes on either side, none where they differ in sign; none
    at the ends.
    """
    slopes = np.zeros_like(values)
    if len(times) > 2:
        span = np.diff(times)[:, None]
        chord = np.diff(values, axis=0) / span
        before, after = chord[:-1], chord[1:]
        of_before, of_after = span[:-1] + 2.0 * span[1:], 2.0 * span[:-1] + span[1:]
        same = before * after > 0.0
        scale = np.where(same, of_before * after + of_after * before, 1.0)
        slopes[1:-1] = np.where(same, (of_before + of_after) * before * after / scale, 0.0)
    return slopes
