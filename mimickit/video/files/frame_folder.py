"""A clip as a folder of numbered pictures."""

import contextlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mimickit.video.errors import VideoError


class FrameFolder:
    """Writes a clip as 000000.png, 000001.png, ... into a folder; every file in it is complete.

    write() raises VideoError with the cause when the disk fails.
    """

    def __init__(self, part: Path, *, width: int, height: int, hardware: bool = False) -> None:
        """part is the folder to write to while filming; it is made if it isn't there."""
        self.part = part
        self.num_frames = 0
        self.notes = ["hardware: png asked for, which the CPU encodes"] if hardware else []
        self._shape = (height, width, 3)
        try:
            part.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise VideoError(f"{part}: can't be written: {error.strerror or error}") from error

    def write(self, frame: NDArray[np.uint8]) -> None:
        """Append one RGB frame (height, width, 3) uint8; the array may be reused when the call returns."""
        if frame.shape != self._shape:
            raise ValueError(f"frame: expected shape {self._shape}, found {frame.shape}")
        path = self.part / f"{self.num_frames:06d}.png"
        try:
            write_whole(path, encode_png(frame)).replace(path)
        except OSError as error:
            raise VideoError(f"{path}: {error.strerror or error}") from error
        self.num_frames += 1

    def close(self) -> None:
        """Does nothing: the part holds all frames at any time."""

    def abort(self) -> None:
        """Does nothing: what was written stays in the part."""


def encode_png(frame: NDArray[np.uint8]) -> bytes:
    """An RGB picture (height, width, 3) uint8 as the bytes of a png."""
    import cv2

    options = [cv2.IMWRITE_PNG_COMPRESSION, 1, cv2.IMWRITE_PNG_STRATEGY, cv2.IMWRITE_PNG_STRATEGY_RLE]
    done, data = cv2.imencode(".png", cv2.cvtColor(frame, cv2.COLOR_RGB2BGR), options)
    assert done
    return bytes(data)


def write_whole(path: Path, data: bytes) -> Path:
    """A new file beside path with this content, to be given the name path. Raises OSError, and leaves nothing then."""
    part = path.with_name(path.name + ".tmp")
    try:
        part.write_bytes(data)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    return part
