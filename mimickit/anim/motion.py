"""Motion clips: what they hold, and files of them.

A clip is a row of poses at a fixed rate. Each frame: root position (3, m), root rotation (3, exponential
map, rad), then the character's dofs (rad) depth-first: a ball joint 3 (exponential map), a hinge 1. n
frames last (n - 1) / fps seconds.
"""

import logging
import math
import os
import tempfile
import zipfile
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mimickit.anim.safe_pickle import NoPickleError, UnsafePickleError, load_pickle
from mimickit.util.keys import ConfigError
from mimickit.util.rotations import exp_map_to_quat, quat_diff_angle

ROOT_SIZE = 6  # numbers a frame before the dofs
_KEYS = ("loop_mode", "fps", "frames")
_FORMATS = f"a clip (.npz, or .pkl: a pickled dict of {', '.join(_KEYS)}) or a dataset of clips (.yaml)"
_PICKLE_HEAD = b"\x80"  # with which every pickle of Python 3 begins; the oldest kinds begin like any text
_SUDDEN_TURN = math.radians(45.0)  # of the root from one frame to the next; worth a warning

_log = logging.getLogger("mimickit.anim")


class MotionError(ConfigError):
    """A clip that can't be used; the text names the file, the key, what was found and what was expected."""


class LoopMode(IntEnum):
    """What happens when time runs past the end of a clip."""

    CLAMP = 0  # the last pose is held
    WRAP = 1  # the clip starts again where it ended


@dataclass(frozen=True)
class Motion:
    """One clip."""

    loop_mode: LoopMode
    fps: float  # frames a second, not necessarily whole
    frames: NDArray[np.float32]  # (T, 6 + D)

    @property
    def num_frames(self) -> int:
        """T."""
        return len(self.frames)

    @property
    def num_dofs(self) -> int:
        """D."""
        return self.frames.shape[1] - ROOT_SIZE

    @property
    def length(self) -> float:
        """Seconds from the first frame to the last."""
        return (self.num_frames - 1) / self.fps


def make_motion(loop_mode: object, fps: object, frames: object, *, source: str = "motion") -> Motion:
    """A clip of unchecked values, frames of shape (T, 6 + D). Raises MotionError naming the source."""
    motion = Motion(_check_loop_mode(loop_mode, source), _check_fps(fps, source), _check_frames(frames, source))
    _warn_of_sudden_turns(motion, source)
    return motion


def load_motion(path: str | os.PathLike[str]) -> Motion:
    """The clip in a file: native (.npz) or a pickled dict of loop_mode, fps, frames, whatever its suffix.

    Raises MotionError; a pickle that asks for code is refused without running any.
    """
    path = Path(path)
    if not path.is_file():
        raise MotionError(f"{path}: no such motion file")
    with path.open("rb") as file:
        head = file.read(64)
    if head.lstrip()[:1] in (b"{", b"["):
        raise MotionError(
            f"{path}: this looks like a DeepMimic JSON clip, which depends on its skeleton; "
            "convert it with python -m mimickit.anim.importers"
        )
    values = _read_native(path) if head[:2] == b"PK" else _read_pickle(path, head)
    missing = [key for key in _KEYS if key not in values]
    if missing:
        found = ", ".join(str(key) for key in list(values)[:8]) + (", ..." if len(values) > 8 else "")
        raise MotionError(f"{path}: missing {', '.join(missing)}; found {found or 'nothing'}")
    return make_motion(*(values[key] for key in _KEYS), source=str(path))


def save_motion(path: str | os.PathLike[str], motion: Motion) -> None:
    """Write a clip as .npz without pickle, whole or not at all."""
    path = Path(path)
    if path.suffix != ".npz":
        raise MotionError(f"{path}: a motion is written as .npz")
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(
                file,
                loop_mode=np.int64(motion.loop_mode),
                fps=np.float64(motion.fps),
                frames=motion.frames.astype(np.float32),
            )
        Path(part).chmod(0o644)
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def _read_native(path: Path) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise MotionError(f"{path}: not a readable motion archive: {error}") from None


def _read_pickle(path: Path, head: bytes) -> dict[str, Any]:
    try:
        values = load_pickle(path)
    except NoPickleError as error:
        if head.startswith(_PICKLE_HEAD):
            raise MotionError(str(error)) from None
        found = f"a file that begins with {head[:16]!r}" if head else "an empty file"
        raise MotionError(f"{path}: expected {_FORMATS}, found {found}") from None
    except UnsafePickleError as error:
        if not head.startswith(_PICKLE_HEAD):
            raise MotionError(f"{error}; expected {_FORMATS}") from None
        raise MotionError(str(error)) from None
    if not isinstance(values, dict):
        raise MotionError(f"{path}: expected a dict of {', '.join(_KEYS)}, found {type(values).__name__}")
    return values


def _plain(value: object) -> object:
    """A 0-d array's or numpy scalar's Python value."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return value.item()
    return value


def _check_loop_mode(value: object, source: str) -> LoopMode:
    value = _plain(value)
    if isinstance(value, int) and not isinstance(value, bool) and value in tuple(LoopMode):
        return LoopMode(value)
    raise MotionError(f"{source}: loop_mode: expected 0 (clamp) or 1 (wrap), found {value!r}")


def _check_fps(value: object, source: str) -> float:
    value = _plain(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0:
        return float(value)
    raise MotionError(f"{source}: fps: expected a number of frames a second above 0, found {value!r}")


def _check_frames(value: object, source: str) -> NDArray[np.float32]:
    if isinstance(value, list | tuple):
        widths = [len(row) if isinstance(row, list | tuple | np.ndarray) else -1 for row in value]
        odd = next((i for i, width in enumerate(widths) if width != widths[0] or width < 0), None)
        if odd is not None:
            found = f"{widths[odd]} numbers" if widths[odd] >= 0 else repr(value[odd])
            raise MotionError(f"{source}: frames: expected {widths[0]} numbers like the first, frame {odd} has {found}")
    try:
        frames = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise MotionError(f"{source}: frames: expected rows of numbers: {error}") from None
    if frames.size == 0:
        raise MotionError(f"{source}: frames: expected at least one frame, found none")
    if frames.ndim != 2 or frames.shape[1] < ROOT_SIZE:
        raise MotionError(f"{source}: frames: expected {ROOT_SIZE} + dofs numbers a frame, found {frames.shape}")
    bad = np.flatnonzero(~np.isfinite(frames).all(axis=1))
    if len(bad):
        raise MotionError(f"{source}: frames: frame {bad[0]} holds a number that is not finite")
    return frames.astype(np.float32)


def _warn_of_sudden_turns(motion: Motion, source: str) -> None:
    quats = exp_map_to_quat(torch.from_numpy(motion.frames[:, 3:ROOT_SIZE]))
    angles = quat_diff_angle(quats[1:], quats[:-1])
    if len(angles) and float(angles.max()) > _SUDDEN_TURN:
        frame = int(angles.argmax())
        _log.warning(
            "%s: the root turns by %.0f degrees from frame %d to frame %d; is the clip cut, or coarse?",
            source,
            math.degrees(float(angles.max())),
            frame,
            frame + 1,
        )
