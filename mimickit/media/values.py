"""What may be attached as media, before it is a file: arrays, text, numbers, paths, and W&B's own values."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Number
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mimickit.media.types import FPS_RANGE, HTML, File, Histogram, Image, Media, MediaError, Video, is_number

_CHANNELS = (1, 3, 4)  # gray, RGB, RGBA
_MAX_BINS = 512


@dataclass(frozen=True)
class Unsaved:
    """A media value that is to become a file of the run folder. What it is given is checked when it is attached, and
    the name that errors have to say is known.
    """

    kind: type[Media]
    data: Any  # Video: (T, H, W, 3) uint8; Image: (H, W, 3) uint8; Histogram: (counts, edges); HTML: text; or a Path
    caption: str = ""
    fps: float | None = None
    bins: int = 64


def video(frames: Any, *, fps: float | None = None, caption: str = "") -> Unsaved:
    """A clip: a file, a wandb.Video, or frames.

    Args:
        frames: (T, H, W, C) or (T, C, H, W) or gray (T, H, W), uint8, also as a list of pictures; or a path.
        fps: frames per second; default: the environment's control rate. Of a file it is read from the file.
    """
    return Unsaved(Video, frames, caption, fps)


def image(picture: Any, *, caption: str = "") -> Unsaved:
    """A picture: a file, a wandb.Image, or (H, W, C), (C, H, W) or gray (H, W), uint8."""
    return Unsaved(Image, picture, caption)


def histogram(values: ArrayLike | tuple[ArrayLike, ArrayLike], *, bins: int = 64, caption: str = "") -> Unsaved:
    """The counts of values in bins of equal width; or counts (n,) and edges (n + 1,) as numpy.histogram gives them."""
    return Unsaved(Histogram, values, caption, bins=bins)


def html(page: str | Path, *, caption: str = "") -> Unsaved:
    """A page: its text, or a path of its file (as a Path)."""
    return Unsaved(HTML, page, caption)


def file(path: str | Path, *, caption: str = "") -> Unsaved:
    """Any file."""
    return Unsaved(File, path, caption)


def as_unsaved(name: str, value: object) -> Unsaved:
    """What a value means as media.

    Args:
        name: of the media, for the error.
        value: Media, an Unsaved, a path, an array of one picture or of the frames of a clip, a list of pictures, or a
            wandb.Video, Image, Html or Histogram.

    Raises:
        MediaError: nothing that can be media.
    """
    if isinstance(value, Unsaved):
        return _checked(name, value)
    if isinstance(value, Media):
        return Unsaved(type(value), value.path, value.caption, getattr(value, "fps", None))
    if isinstance(value, (str, Path)):
        return Unsaved(kind_of(Path(value)), Path(value))
    if type(value).__module__.partition(".")[0] == "wandb":
        return _of_wandb(name, value)
    array = as_array(value)
    if isinstance(array, np.ndarray) and array.ndim in (2, 3):
        return _checked(name, Unsaved(Image, array))
    if isinstance(array, np.ndarray) and array.ndim > 3:
        return _checked(name, Unsaved(Video, array))
    found = f"shape {array.shape}" if isinstance(array, np.ndarray) else f"{type(value).__name__}"
    raise MediaError(f"media {name!r}: expected media, a path, pictures or a W&B value, found {found}")


def kind_of(path: Path) -> type[Media]:
    """The media type that a file's suffix says."""
    return next((kind for kind in (Video, Image, HTML) if path.suffix.lower() in kind.SUFFIXES), File)


def as_array(value: object) -> object:
    """Tensors and lists of pictures as one numpy array; anything else as it is."""
    if hasattr(value, "detach"):
        known = value.detach().cpu()
        return (known.float() if "bfloat16" in str(known.dtype) else known).numpy()
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and len(value):
        parts = [as_array(part) for part in value]
        arrays = [np.asarray(part) for part in parts if isinstance(part, (np.ndarray, Number))]
        has_pictures = any(isinstance(part, np.ndarray) for part in parts)
        if has_pictures and len(arrays) == len(parts) and len({array.shape for array in arrays}) == 1:
            return np.stack(arrays)
    return value


def _checked(name: str, value: Unsaved) -> Unsaved:
    """The value, its data in the form that Unsaved says."""
    kind, data = value.kind, as_array(value.data)
    if not is_text(value.caption):
        raise MediaError(f"media {name!r}: caption: expected text, found {value.caption!r}")
    if value.fps is not None and not (is_number(value.fps) and FPS_RANGE[0] <= value.fps <= FPS_RANGE[1]):
        expected = f"a number from {FPS_RANGE[0]:g} to {FPS_RANGE[1]:g}"
        raise MediaError(f"media {name!r}: fps: expected {expected}, found {value.fps!r}")
    if type(data).__module__.partition(".")[0] == "wandb":
        known = _of_wandb(name, data)
        if known.kind is not kind:
            raise MediaError(f"media {name!r}: expected {kind.NOUN}, found a wandb.{type(data).__name__}")
        return replace(known, caption=value.caption or known.caption, fps=value.fps)
    if kind is Histogram:
        return replace(value, data=_counts(name, data, value.bins))
    if isinstance(data, (str, os.PathLike)) and not (kind is HTML and isinstance(data, str)):
        return replace(value, data=Path(data))
    if kind is HTML and not (is_text(data) and data.strip()):
        raise MediaError(f"media {name!r}: expected the text of a page, or its path, found {data!r}")
    if kind is File:
        raise MediaError(f"media {name!r}: expected the path of a file, found {data!r}")
    if kind is Video:
        return replace(value, data=_frames(name, data))
    return replace(value, data=_picture(name, data)) if kind is Image else value


def is_text(value: object) -> TypeGuard[str]:
    """Whether a value is a text that can be written to a file."""
    try:
        return isinstance(value, str) and bool(value.encode("utf-8") or True)
    except UnicodeEncodeError:  # half of a pair of surrogates
        return False


def _counts(name: str, data: Any, bins: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Counts (n,) and edges (n + 1,) of values, or as they are given."""
    if not (is_number(bins) and isinstance(bins, Integral) and int(bins) > 0):
        raise MediaError(f"media {name!r}: bins: expected a whole number above 0, found {bins!r}")
    if isinstance(data, tuple) and len(data) == 2 and np.ndim(data[1]) == 1 and np.shape(data[0]) != np.shape(data[1]):
        return _known_counts(name, _numbers(name, data[0]), _numbers(name, data[1]))
    known = _numbers(name, data)
    known = known[np.isfinite(known)]
    if not known.size:
        raise MediaError(f"media {name!r}: expected finite numbers to count, found none")
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.histogram(known, bins=min(int(bins), _MAX_BINS))
    except ValueError as error:  # too far apart, or too close to each other
        found = f"found {known.min()} to {known.max()}: {error}"
        raise MediaError(f"media {name!r}: expected numbers to count, {found}") from None


def _known_counts(name: str, counts: NDArray[Any], edges: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Counts and edges that can be a histogram's."""
    if not counts.size or len(edges) != len(counts) + 1:
        raise MediaError(f"media {name!r}: expected counts and one edge more, found {len(counts)} and {len(edges)}")
    if not (np.isfinite(counts).all() and (counts >= 0).all()):
        raise MediaError(f"media {name!r}: expected counts from 0, found {counts.min()} to {counts.max()}")
    if not (np.isfinite(edges).all() and (np.diff(edges) >= 0).all()):
        raise MediaError(f"media {name!r}: expected edges that rise, found {edges[:8].tolist()}")
    return counts, edges


def _numbers(name: str, values: Any) -> NDArray[np.float64]:
    """Real numbers (n,)."""
    try:
        found = np.asarray(as_array(values))
    except ValueError:  # lists of different lengths
        raise MediaError(f"media {name!r}: expected numbers to count, found lists of different lengths") from None
    if found.dtype.kind not in "biuf":
        short = repr(values) if len(repr(values)) < 60 else f"{type(values).__name__} of {found.dtype}"
        raise MediaError(f"media {name!r}: expected numbers to count, found {short}")
    return found.astype(np.float64).ravel()


def _of_wandb(name: str, value: Any) -> Unsaved:
    """A W&B value, whose file may be a temporary one."""
    kinds: Mapping[str, type[Media]] = {"Video": Video, "Image": Image, "Html": HTML}
    found = type(value).__name__
    if found == "Histogram":
        return Unsaved(Histogram, _known_counts(name, _numbers(name, value.histogram), _numbers(name, value.bins)))
    path = getattr(value, "_path", None)
    if found not in kinds or not path:
        known = ", ".join((*kinds, "Histogram"))
        raise MediaError(f"media {name!r}: of W&B's values expected one of {known}, found wandb.{found}")
    return Unsaved(kinds[found], Path(path), str(getattr(value, "_caption", None) or ""))


def _frames(name: str, data: object) -> NDArray[np.uint8]:
    """(T, H, W, 3) uint8."""
    expected = "frames (T, H, W, 3) uint8"
    frames = _bytes(name, data, expected)
    if frames.ndim == 5 and frames.shape[0] == 1:  # a batch of one, as other loggers have it
        frames = frames[0]
    if frames.ndim == 3:
        frames = frames[..., None]
    if frames.ndim == 4 and frames.shape[-1] not in _CHANNELS and frames.shape[1] in _CHANNELS:
        frames = frames.transpose(0, 2, 3, 1)
    if frames.ndim != 4 or frames.shape[-1] not in _CHANNELS or 0 in frames.shape:
        raise MediaError(f"media {name!r}: expected {expected}, found shape {frames.shape}")
    return _rgb(frames)


def _picture(name: str, data: object) -> NDArray[np.uint8]:
    """(H, W, 3) uint8."""
    expected = "a picture (H, W, 3) uint8"
    picture = _bytes(name, data, expected)
    if picture.ndim == 2:
        picture = picture[..., None]
    if picture.ndim == 3 and picture.shape[-1] not in _CHANNELS and picture.shape[0] in _CHANNELS:
        picture = picture.transpose(1, 2, 0)
    if picture.ndim != 3 or picture.shape[-1] not in _CHANNELS or 0 in picture.shape:
        raise MediaError(f"media {name!r}: expected {expected}, found shape {picture.shape}")
    return _rgb(picture)


def _bytes(name: str, data: object, expected: str) -> NDArray[np.uint8]:
    if not isinstance(data, np.ndarray):
        raise MediaError(f"media {name!r}: expected {expected}, found {type(data).__name__}")
    if data.dtype != np.uint8:
        raise MediaError(f"media {name!r}: expected {expected}, found {data.dtype}")
    return data


def _rgb(pictures: NDArray[np.uint8]) -> NDArray[np.uint8]:
    colored = np.repeat(pictures, 3, axis=-1) if pictures.shape[-1] == 1 else pictures[..., :3]
    return np.ascontiguousarray(colored)
