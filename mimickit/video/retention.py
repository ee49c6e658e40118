"""Which clips of a run are kept."""

import contextlib
import shutil
from collections.abc import Iterable
from pathlib import Path

from mimickit.video.clip import Clip
from mimickit.video.config import VideoConfig


class Shelf:
    """The recordings that a run has made, oldest first. Clips that other runs left in the folder are none of its."""

    def __init__(self) -> None:
        self._recordings: list[list[Clip]] = []

    def add(self, clips: list[Clip], config: VideoConfig) -> None:
        """Put a recording's clips on the shelf, and delete those that config doesn't keep: all files of them."""
        if clips:
            self._recordings.append(clips)
        if config.keep_last is None:
            return
        best = max(self._recordings, key=_score, default=None) if config.keep_best else None
        old, self._recordings = self._recordings[: -config.keep_last], self._recordings[-config.keep_last :]
        for recording in old:
            if recording is best:
                self._recordings.insert(0, recording)
            else:
                _delete(path for clip in recording for path in clip.files())


def _score(recording: list[Clip]) -> float:
    """Mean return of a recording; the least where there is none."""
    returns = [clip.mean_return for clip in recording if clip.mean_return is not None]
    return sum(returns) / len(returns) if returns else float("-inf")


def _delete(paths: Iterable[Path]) -> None:
    for path in set(paths):
        with contextlib.suppress(OSError):  # gone already, or not ours to delete
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
