"""How to film: the fields behind the --video_* flags and the video block of an engine file."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from mimickit.util.keys import ConfigError, as_bool, as_float, as_int, nearest, reject_unknown

Vector = tuple[float, float, float]
_E = TypeVar("_E", bound=Enum)

_MIN_SIZE, _MAX_SIZE = 16, 7680  # pixels


class Quality(Enum):
    """How much work goes into a picture."""

    DRAFT = "draft"  # no shadow
    STANDARD = "standard"  # shadow
    HIGH = "high"  # finer shadow, antialiasing, slower encoding


class GhostMode(Enum):
    """Where the reference motion is shown."""

    OFF = "off"
    ON = "on"  # in the place where the reference is: on the character, when it tracks well
    BESIDE = "beside"  # set off to the side


@dataclass(frozen=True)
class VideoConfig:
    """How a clip is filmed. Checked when made: raises ConfigError naming the field, the value and what was
    expected.
    """

    enabled: bool = False
    """Whether environments film themselves in TEST mode."""
    width: int = 854
    """Pixels; an odd size is rounded up, because H.264 players need even ones."""
    height: int = 480
    """Pixels."""
    fps: float | None = None
    """Frames per second of the file; None is the control rate, a lower one skips frames and keeps real time.
    """
    camera: str = "track"
    """Name of a camera mode (track, still, orbit) or a function of one's own as package.module:function."""
    position: Vector | None = None
    """Where the camera is (m): track and orbit from the subject's place on the ground, still in the
    environment's frame.
    """
    target: Vector | None = None
    """What the camera looks at (m), in the same frame as position."""
    fov: float = 45.0
    """Vertical field of view (degrees)."""
    orbit_speed: float = 30.0
    """How fast an orbiting camera turns (degrees per second)."""
    env: int = 0
    """Which environment is filmed."""
    quality: Quality = Quality.STANDARD
    """draft, standard or high."""
    ghost: GhostMode = GhostMode.OFF
    """Show the reference motion as a translucent ghost: off, on (in its place) or beside."""
    overlay: bool = False
    """Write time, episode and return into the picture."""
    strict: bool = False
    """Raise when filming fails; else the failure is reported and the run goes on."""
    out_dir: Path | None = None
    """Folder of clips that are given no path; None is ./videos."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "quality", _as_enum(Quality, self.quality, "quality"))
        object.__setattr__(self, "ghost", _as_enum(GhostMode, self.ghost, "ghost"))
        object.__setattr__(self, "position", _as_vector(self.position, "position"))
        object.__setattr__(self, "target", _as_vector(self.target, "target"))
        if self.out_dir is not None:
            object.__setattr__(self, "out_dir", Path(self.out_dir))
        for name in ("width", "height"):
            _check(name, getattr(self, name), _MIN_SIZE, _MAX_SIZE, "pixels")
        if self.fps is not None:
            _check("fps", self.fps, 0.1, 1000.0, "frames per second")
        _check("fov", self.fov, 1.0, 170.0, "degrees")
        if self.env < 0:
            raise ConfigError(f"video: env: expected 0 or more, found {self.env}")
        if self.position is not None and self.position == self.target:
            raise ConfigError(f"video: position and target: expected two different points, found {self.position} twice")

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], source: str) -> "VideoConfig":
        """From YAML or flags, numbers and booleans may be strings; unknown keys are refused. source names the
        file.
        """
        return cls().updated(values, source)

    def updated(self, values: Mapping[str, Any], source: str) -> "VideoConfig":
        """A copy with some fields changed; values as in from_mapping."""
        reject_unknown(values, [f.name for f in fields(self)], source)
        try:
            return replace(self, **{key: _read(key, value, source) for key, value in values.items()})
        except ConfigError as error:
            text = str(error)
            raise ConfigError(text if text.startswith(source) else f"{source}: {text}") from None

    @property
    def even_size(self) -> tuple[int, int]:
        """Width and height of the frames: the next even numbers."""
        return self.width + self.width % 2, self.height + self.height % 2


def _read(key: str, value: Any, source: str) -> Any:
    if key in ("enabled", "overlay", "strict"):
        return as_bool(value, key, source)
    if key in ("width", "height", "env"):
        return as_int(value, key, source)
    if key in ("fov", "orbit_speed") or (key == "fps" and value is not None):
        return as_float(value, key, source)
    if key == "camera" and not isinstance(value, str):
        raise ConfigError(f"{source}: camera: expected a name or package.module:function, found {value!r}")
    return value


def _as_enum(kind: type[_E], value: Any, key: str) -> _E:
    if isinstance(value, kind):
        return value
    if value is False and key == "ghost":  # YAML reads an unquoted off as false, on as true
        value = "off"
    elif value is True and key == "ghost":
        value = "on"
    words = {str(member.value): member for member in kind}
    found = words.get(str(value).lower())
    if found is None:
        raise ConfigError(
            f"video: {key}: expected one of {', '.join(words)}, found {value!r}{nearest(str(value), words)}"
        )
    return found


def _as_vector(value: Any, key: str) -> Vector | None:
    if value is None:
        return None
    words = value.replace(",", " ").split() if isinstance(value, str) else value
    try:
        numbers = [as_float(word, key, "video") for word in words]
    except TypeError:
        numbers = []
    if len(numbers) != 3:
        raise ConfigError(f"video: {key}: expected three numbers (m), found {value!r}")
    return numbers[0], numbers[1], numbers[2]


def _check(key: str, value: float, low: float, high: float, unit: str) -> None:
    if not low <= value <= high:
        raise ConfigError(f"video: {key}: expected {low:g} to {high:g} {unit}, found {value:g}")
