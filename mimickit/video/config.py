"""How to film: the fields behind the --video_* flags and the video block of an engine file."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from mimickit.util.keys import ConfigError, as_bool, as_float, as_int, reject_unknown

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


class ViewLayout(Enum):
    """How several views share a film."""

    SPLIT = "split"  # tiles of one size
    PIP = "pip"  # the first fills the picture, the others are small pictures in it
    SEPARATE = "separate"  # one clip each


class EnvLayout(Enum):
    """How several environments share a film."""

    TILES = "tiles"  # a grid, one tile each
    SCENE = "scene"  # neighbours on one ground
    OVERLAID = "overlaid"  # in one place, each in a colour of its own, half transparent
    SEPARATE = "separate"  # one clip each


class VideoFormat(Enum):
    """Kind of the file."""

    MP4 = "mp4"
    WEBM = "webm"
    GIF = "gif"
    PNG = "png"  # a folder of numbered frames


class Codec(Enum):
    """How mp4 and webm are compressed."""

    H264 = "h264"
    H265 = "h265"
    AV1 = "av1"
    VP9 = "vp9"


class Pick(Enum):
    """An episode of a test that is worth a clip of its own."""

    BEST = "best"  # by its return
    WORST = "worst"
    MEDIAN = "median"
    MOTION = "motion"  # of every motion of a dataset the median one


OVERLAYS = ("time", "episode", "return", "samples", "run", "chart", "contacts", "key_bodies", "error")
"""What can be drawn into a film."""
_OF_REFERENCE = {"chart", "key_bodies", "error"}  # that show how far it is from the reference
DEFAULT_OVERLAYS = ("time", "episode", "return")


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
    """A camera mode: track, still, orbit, side, front, top, chase, first_person, dolly, or a function of one's own as
    package.module:function."""
    views: tuple[str, ...] = ()
    """Several cameras in one film, for instance track,side; default: camera alone."""
    view_layout: ViewLayout = ViewLayout.SPLIT
    """Several views: split (tiles), pip (small pictures in the first) or separate (one clip each)."""
    position: Vector | None = None
    """Where the camera is (m): relative to the subject's place on the ground (side, front, chase: turned with its
    heading; first_person: in the body's frame); for still in the environment's frame."""
    target: Vector | None = None
    """What the camera looks at (m), in the same frame as position."""
    fov: float = 45.0
    """Vertical field of view (degrees)."""
    orbit_speed: float = 30.0
    """How fast an orbiting camera turns (degrees per second)."""
    body: str | None = None
    """Through whose eyes first_person looks: a body's name; default: the head, else the root."""
    camera_path: Path | None = None
    """YAML of the key poses that a dolly passes: a list of time (s), eye, target (m) and fov (degrees)."""
    env: int = 0
    """Which environment is filmed."""
    envs: tuple[int, ...] = ()
    """Several environments in one film, for instance 0,3,7; default: env alone."""
    env_layout: EnvLayout = EnvLayout.TILES
    """Several environments: tiles, scene (neighbours on one ground), overlaid (in one place) or separate (one clip
    each)."""
    format: VideoFormat = VideoFormat.MP4
    """mp4, webm, gif, or png: a folder of frames."""
    codec: Codec | None = None
    """h264, h265 or av1 in an mp4, vp9 or av1 in a webm; default: the first of each."""
    hardware: bool = False
    """Encode on the GPU (NVENC) where it can; where it can't, a note says so and the CPU does it."""
    quality: Quality = Quality.STANDARD
    """draft (no shadow), standard, or high (finer shadow, antialiasing, slower encoding)."""
    poster: bool = False
    """Leave a still picture (png) beside every clip."""
    ghost: GhostMode = GhostMode.OFF
    """Show the reference motion as a translucent ghost: off, on (in its place) or beside."""
    overlay: tuple[str, ...] = field(default=(), metadata={"bare": True})
    """Draw into the picture: time, episode, return, samples, run, chart (reward and tracking error), contacts (forces),
    key_bodies (and their targets), error (colours the ghost), or all; true: time, episode and return."""
    speed: float = 1.0
    """Of the film: 0.25 is slow motion, in which poses between two steps are interpolated."""
    trace: bool = True
    """Keep each clip's trace beside it, from which it can be filmed again: --mode film --trace FILE."""
    replay: bool = False
    """Leave a page beside every clip in which the scene turns and plays in a browser, offline."""
    defer: bool = False
    """Keep only the trace while the test runs and film it afterwards, in a process of its own."""
    pick: tuple[Pick, ...] = ()
    """Clips of a test's best, worst and median episode over all environments, or one of every motion of a dataset, in
    place of env or envs."""
    every: int = 1
    """Film every Nth test, from the first on; 0: none."""
    final: bool = False
    """Film the last test of a training whatever every says; where training makes no tests, one is made at its end."""
    train_every: float | None = None
    """Film training itself too, exploration and all: the next episode after every so many samples."""
    keep_last: int | None = None
    """Keep the run's last N clips, delete older ones; default: keep all."""
    keep_best: bool = False
    """With keep_last: never delete the clip with the highest return."""
    max_seconds: float | None = None
    """A clip ends after so many seconds of film; default: with the test."""
    strict: bool = False
    """Raise when filming fails; else the failure is reported and the run goes on."""
    out_dir: Path | None = None
    """Folder of clips that are given no path; None is ./videos."""

    def __post_init__(self) -> None:
        for name, kind in _ENUMS.items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _as_enum(kind, value, name))
        for name in ("position", "target"):
            object.__setattr__(self, name, _as_vector(getattr(self, name), name))
        for name in ("out_dir", "camera_path"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, Path(getattr(self, name)))
        object.__setattr__(self, "overlay", _as_overlays(self.overlay))
        object.__setattr__(self, "pick", tuple(_as_enum(Pick, pick, "pick") for pick in self.pick))
        self._check_numbers()
        self._check_sets()

    def _check_numbers(self) -> None:
        for name, (low, high, unit) in _RANGES.items():
            value = getattr(self, name)
            if value is not None:
                _check(name, value, low, high, unit)
        for name, values in (("env", (self.env,)), ("envs", self.envs)):
            if min(values, default=0) < 0:
                raise ConfigError(f"video: {name}: expected 0 or more, found {min(values)}")
        if self.position is not None and self.position == self.target:
            raise ConfigError(f"video: position and target: expected two different points, found {self.position} twice")

    def _check_sets(self) -> None:
        for name in ("envs", "views", "pick"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ConfigError(f"video: {name}: expected each only once, found {_words(values)}")
        if self.codec is not None and self.codec not in CODECS[self.format]:
            known = _words(CODECS[self.format]) or "none"
            raise ConfigError(
                f"video: codec: expected {known} for format {self.format.value}, found {self.codec.value}"
            )
        if "dolly" in self.cameras and self.camera_path is None:
            raise ConfigError("video: camera_path is missing: a dolly needs the YAML of its key poses")
        for name in ("replay", "defer"):
            if getattr(self, name) and not self.trace:
                raise ConfigError(f"video: {name} needs the trace, which trace false does without")
        if self.keep_best and self.keep_last is None:
            raise ConfigError("video: keep_best has no effect without keep_last: every clip is kept")

    @property
    def cameras(self) -> tuple[str, ...]:
        """The camera of each view."""
        return self.views or (self.camera,)

    @property
    def shows_reference(self) -> bool:
        """Whether the reference motion is in the picture."""
        return self.ghost is not GhostMode.OFF or not _OF_REFERENCE.isdisjoint(self.overlay)

    @property
    def env_ids(self) -> tuple[int, ...]:
        """The environments that are filmed."""
        return self.envs or (self.env,)

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

    def to_mapping(self) -> dict[str, Any]:
        """Plain values, as YAML and JSON can hold them; from_mapping() reads them back."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    @property
    def even_size(self) -> tuple[int, int]:
        """Width and height of the frames: the next even numbers."""
        return self.width + self.width % 2, self.height + self.height % 2


CODECS = {
    VideoFormat.MP4: (Codec.H264, Codec.H265, Codec.AV1),
    VideoFormat.WEBM: (Codec.VP9, Codec.AV1),
    VideoFormat.GIF: (),
    VideoFormat.PNG: (),
}
"""Which codecs a format may hold, its default first."""
_ENUMS: dict[str, type[Enum]] = {
    "quality": Quality, "ghost": GhostMode, "view_layout": ViewLayout, "env_layout": EnvLayout,
    "format": VideoFormat, "codec": Codec,
}  # fmt: skip
_RANGES = {
    "width": (_MIN_SIZE, _MAX_SIZE, "pixels"),
    "height": (_MIN_SIZE, _MAX_SIZE, "pixels"),
    "fps": (0.1, 1000.0, "frames per second"),
    "fov": (1.0, 170.0, "degrees"),
    "speed": (0.01, 100.0, "times real time"),
    "every": (0, 10**9, "tests"),
    "train_every": (1.0, 1e15, "samples"),
    "keep_last": (1, 10**9, "clips"),
    "max_seconds": (0.1, 1e9, "s"),
}


def _read(key: str, value: Any, source: str) -> Any:
    default = getattr(VideoConfig, key)
    if value is None and default is None:
        return None
    if isinstance(default, bool):
        return as_bool(value, key, source)
    if key in ("envs", "views", "pick", "overlay"):
        words = value.replace(",", " ").split() if isinstance(value, str) else value
        items = list(words) if isinstance(words, (list, tuple)) else [words]
        return tuple(as_int(item, key, source) for item in items) if key == "envs" else tuple(items)
    if isinstance(default, int) or key == "keep_last":
        return as_int(value, key, source)
    if isinstance(default, float) or key in ("fps", "max_seconds", "train_every"):
        return as_float(value, key, source)
    if key in ("camera", "body") and not isinstance(value, str):
        raise ConfigError(f"{source}: {key}: expected a name, found {value!r}")
    return value


def _as_overlays(values: Iterable[Any]) -> tuple[str, ...]:
    """Names of overlays, in the order of OVERLAYS."""
    names: set[str] = set()
    for value in values:
        word = str(value).lower()
        if word in ("true", "yes", "1"):
            names.update(DEFAULT_OVERLAYS)
        elif word == "all":
            names.update(OVERLAYS)
        elif word in OVERLAYS:
            names.add(word)
        elif word not in ("false", "no", "0", "none"):
            raise ConfigError(
                f"video: overlay: expected true, false, all, or some of {', '.join(OVERLAYS)}, "
                f"found {value!r}"
            )
    return tuple(name for name in OVERLAYS if name in names)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value


def _words(values: Iterable[Any]) -> str:
    return ", ".join(str(value.value if isinstance(value, Enum) else value) for value in values)


def _as_enum(kind: type[_E], value: Any, key: str) -> _E:
    if isinstance(value, kind):
        return value
    if key == "ghost" and str(value).lower() in ("true", "false"):  # YAML reads an unquoted off as false, on as true
        value = "on" if str(value).lower() == "true" else "off"
    words = {str(member.value): member for member in kind}
    found = words.get(str(value).lower())
    if found is None:
        raise ConfigError(
            f"video: {key}: expected one of {', '.join(words)}, found {value!r}"
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
