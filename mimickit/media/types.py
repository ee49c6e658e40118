"""Media that episodes and tests leave behind: always files, named by path, never pixels in memory."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

MEDIA_KEY = "episode_media"  # of a result: name -> list of media
MEDIA_DIR = "media"  # in the run folder: what callbacks attached, and copies of what may change or go
CLIPS_DIR = "videos"  # in the run folder: the recorder's clips
FPS_RANGE = (0.1, 1000.0)  # frames per second that a clip may have


class MediaError(ValueError):
    """A media value that can't be used; the message names its key, what was found and what was expected."""


@dataclass(frozen=True, kw_only=True)
class Media:
    """A file and a caption."""

    KIND: ClassVar[str] = "file"
    NOUN: ClassVar[str] = "a file"  # as errors call it
    SUFFIXES: ClassVar[frozenset[str]] = frozenset()  # empty: any

    path: Path
    caption: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, os.PathLike)):
            raise MediaError(f"{type(self).__name__}: path: expected a path, found {self.path!r}")
        object.__setattr__(self, "path", Path(self.path))

    def validate(self, key: str) -> None:
        """Raise MediaError, naming key, unless the file is there, not empty and has a suffix of its kind."""
        if not self.path.is_file():
            raise MediaError(f"media {key!r}: expected {self.NOUN}, found nothing at {self.path}")
        if self.path.stat().st_size == 0:
            raise MediaError(f"media {key!r}: expected {self.NOUN}, found an empty file: {self.path}")
        if self.SUFFIXES and self.path.suffix.lower() not in self.SUFFIXES:
            expected = ", ".join(sorted(self.SUFFIXES))
            raise MediaError(f"media {key!r}: expected {self.NOUN} ({expected}), found {self.path.name}")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: type, path and the facts that are known."""
        facts = {name: value for name, value in asdict(self).items() if value is not None and value != ""}
        return {"type": self.KIND} | {k: str(v) if isinstance(v, Path) else v for k, v in facts.items()}


@dataclass(frozen=True, kw_only=True)
class Video(Media):
    """A finished clip."""

    KIND: ClassVar[str] = "video"
    NOUN: ClassVar[str] = "a video file"
    SUFFIXES: ClassVar[frozenset[str]] = frozenset({".mp4", ".webm", ".gif", ".mov", ".mkv"})

    fps: float | None = None  # frames per second
    num_frames: int | None = None
    width: int | None = None  # pixels
    height: int | None = None  # pixels
    side_file: Path | None = None  # JSON beside the clip: what it shows

    def validate(self, key: str) -> None:
        """Raise MediaError, naming key, for a missing file or impossible figures."""
        super().validate(key)
        for name in ("fps", "num_frames", "width", "height"):
            value = getattr(self, name)
            if value is not None and not (is_number(value) and value > 0):
                raise MediaError(f"media {key!r}: {name}: expected a number above 0, found {value!r}")


@dataclass(frozen=True, kw_only=True)
class Frames(Media):
    """A folder of numbered pictures."""

    KIND: ClassVar[str] = "frames"

    fps: float | None = None  # frames per second, were they played
    num_frames: int | None = None

    def validate(self, key: str) -> None:
        """Raise MediaError, naming key, unless the folder is there and has pictures in it."""
        if not self.path.is_dir() or not any(self.path.glob("*.png")):
            raise MediaError(f"media {key!r}: expected a folder of png files, found none at {self.path}")


@dataclass(frozen=True, kw_only=True)
class Image(Media):
    """A picture."""

    KIND: ClassVar[str] = "image"
    NOUN: ClassVar[str] = "an image file"
    SUFFIXES: ClassVar[frozenset[str]] = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})


@dataclass(frozen=True, kw_only=True)
class HTML(Media):
    """A page that needs nothing beside itself."""

    KIND: ClassVar[str] = "html"
    NOUN: ClassVar[str] = "an HTML file"
    SUFFIXES: ClassVar[frozenset[str]] = frozenset({".html", ".htm"})


@dataclass(frozen=True, kw_only=True)
class File(Media):
    """Anything else."""


@dataclass(frozen=True, kw_only=True)
class Histogram(Media):
    """Counts of values, as JSON: {"counts": [n], "edges": [n + 1]}."""

    KIND: ClassVar[str] = "histogram"
    NOUN: ClassVar[str] = "a histogram file"
    SUFFIXES: ClassVar[frozenset[str]] = frozenset({".json"})

    def read(self) -> tuple[list[float], list[float]]:
        """Counts and edges. Raises ValueError for a file that isn't a histogram."""
        content = json.loads(self.path.read_text(encoding="utf-8"))
        counts, edges = [float(count) for count in content["counts"]], [float(edge) for edge in content["edges"]]
        if len(edges) != len(counts) + 1 or not counts:
            raise ValueError(f"{len(counts)} counts and {len(edges)} edges")
        return counts, edges

    def validate(self, key: str) -> None:
        """Raise MediaError, naming key, unless the file holds counts and one edge more."""
        super().validate(key)
        try:
            self.read()
        except (KeyError, TypeError, ValueError) as error:
            raise MediaError(f"media {key!r}: expected counts and one edge more in {self.path}: {error}") from None


def is_number(value: object) -> bool:
    """Whether a value is a real number, which bool is not meant to be."""
    return isinstance(value, Real) and not isinstance(value, bool)


def join_media(*parts: Mapping[str, Sequence[Media]]) -> dict[str, list[Media]]:
    """All media by name, in the order of parts."""
    joined: dict[str, list[Media]] = {}
    for part in parts:
        for name, items in part.items():
            joined.setdefault(name, []).extend(items)
    return joined
