"""The still picture that stands for a clip."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mimickit.video.errors import VideoError
from mimickit.video.files.frame_folder import encode_png, write_whole
from mimickit.video.files.names import give_name

_GROWTH = 1.25  # from one kept frame to the next: the poster is within an eighth of the middle
_FIRST_STEPS = 4  # below this index every frame is kept


class Poster:
    """A frame from near the middle of a clip whose length nobody knows yet.

    Kept are a handful of frames, as compressed pictures, each a quarter further into the clip than the one before;
    those too early to become the middle are let go. The one taken is within an eighth of the middle's index.
    """

    def __init__(self) -> None:
        self._kept: list[tuple[int, bytes]] = []  # index and png
        self._num_seen = 0
        self._next = 0

    def see(self, frame: NDArray[np.uint8]) -> None:
        """To be called with every frame of the clip, (height, width, 3) uint8 RGB, in order; copies what it keeps."""
        index, self._num_seen = self._num_seen, self._num_seen + 1
        if index < self._next:
            return
        self._next = index + 1 if index < _FIRST_STEPS else round(index * _GROWTH)
        self._kept.append((index, encode_png(frame)))
        while len(self._kept) > 1 and self._kept[1][0] <= index / 2:
            self._kept.pop(0)

    @property
    def index(self) -> int:
        """Which frame save() would write, counted from 0; of the clip as seen so far."""
        return self._nearest()[0]

    def save(self, path: Path) -> Path:
        """Write the picture (png), whole or not at all; returns its name: path, or path with a number where that is
        taken. At least one frame must have been seen. Raises VideoError.
        """
        _, picture = self._nearest()
        try:
            part = write_whole(path, picture)
            try:
                return give_name(part, path)
            finally:
                part.unlink(missing_ok=True)
        except OSError as error:
            raise VideoError(f"{path}: {error.strerror or error}") from error

    def _nearest(self) -> tuple[int, bytes]:
        if not self._kept:
            raise ValueError("poster: expected at least one frame, found none")
        return min(self._kept, key=lambda kept: abs(2 * kept[0] - (self._num_seen - 1)))
