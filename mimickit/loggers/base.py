"""What every logger does: collect numbers, write them at a step, and take media on a channel of their own."""

import abc
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mimickit.media.types import Media

LOG = logging.getLogger("mimickit.loggers")
STEP_KEY = "samples"  # the step axis of every logger: environment samples taken so far


class MissingLibraryError(RuntimeError):
    """A logger whose library is missing; the message says which pip install brings it."""


class Logger(abc.ABC):
    """Collects numbers with log() and writes them as one row with write().

    A subclass need only say how a row and media are written; media that it can't show it mentions by path,
    and says so once.
    """

    NAME: str = "logger"
    MEDIA: tuple[type[Media], ...] = ()  # the media types that it shows; others are written as their paths

    def __init__(self) -> None:
        self._row: dict[str, float] = {}
        self._said: set[type[Media]] = set()
        self._step = 0  # of the last call
        self._closed = False
        self.run_failed = False
        """Set before close() where the run did not end well, for loggers that keep record of it."""

    def log(self, key: str, value: float, collection: str | None = None) -> None:
        """Add a number to the row that is being collected; a collection groups keys: losses/critic."""
        self._check_open()
        self._row[f"{collection}/{key}" if collection else key] = float(value)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError(f"{self.NAME} logger: closed; nothing can be written to it any more")

    def write(self, step: int | None = None) -> None:
        """Write the collected row at step (samples), by default that of the last call, and begin a new one."""
        self._check_open()
        row, self._row = self._row, {}
        step = self._step_of(step)
        self._write_row(row, step)

    def _step_of(self, step: int | None) -> int:
        self._step = self._step if step is None else step
        return self._step

    def write_media(self, media: Mapping[str, Sequence[Media]], step: int | None = None) -> None:
        """Write media by name at step (samples), by default that of the last call.

        Raises:
            MediaError: a file that isn't there or isn't what it says.
        """
        self._check_open()
        step = self._step_of(step)
        for key, items in media.items():
            for item in items:
                item.validate(key)
                if isinstance(item, self.MEDIA):
                    continue
                if type(item) not in self._said:
                    self._said.add(type(item))
                    LOG.warning("%s logger: shows no %s; its path is logged instead", self.NAME, item.KIND)
            self._write_media(key, items, step)

    @abc.abstractmethod
    def _write_row(self, row: Mapping[str, float], step: int) -> None:
        """Write one row of numbers."""

    @abc.abstractmethod
    def _write_media(self, key: str, items: Sequence[Media], step: int) -> None:
        """Write media that have been validated; those not of a type in MEDIA as their paths."""

    def write_model(self, path: Path, step: int) -> None:
        """Keep a trained model's file, as it is at step (samples), where that is more than a copy on the disk."""

    def close(self) -> None:
        """Write what is pending, then free everything; may be called twice."""
        if self._closed:
            return
        try:
            if self._row:
                self.write()
        finally:
            self._closed = True
            self._close()

    def _close(self) -> None:
        """Free what a subclass holds."""


class MultiLogger(Logger):
    """Hands everything to several loggers; one that fails is reported once and stops nothing else."""

    NAME = "multi"

    def __init__(self, loggers: Sequence[Logger]) -> None:
        super().__init__()
        self._loggers = list(loggers)
        self._failed: set[tuple[str, str]] = set()

    def _write_row(self, row: Mapping[str, float], step: int) -> None:
        for logger in self._loggers:
            with _Guard(logger, "numbers", self._failed):
                logger._row.update(row)
                logger.write(step)

    def write_media(self, media: Mapping[str, Sequence[Media]], step: int | None = None) -> None:
        """Hand media to every logger."""
        self._check_open()
        step = self._step_of(step)
        for logger in self._loggers:
            for key, items in media.items():
                with _Guard(logger, f"media {key!r}", self._failed):
                    logger.write_media({key: items}, step)

    def _write_media(self, key: str, items: Sequence[Media], step: int) -> None:
        raise NotImplementedError("write_media hands media on as they are")

    def write_model(self, path: Path, step: int) -> None:
        """Hand a model to every logger."""
        for logger in self._loggers:
            with _Guard(logger, "the model", self._failed):
                logger.write_model(path, step)

    def _close(self) -> None:
        for logger in self._loggers:
            with _Guard(logger, "the end of the run", self._failed):
                logger.run_failed = self.run_failed
                logger.close()


class _Guard:
    """Reports an exception of a logger once, with its cause, and goes on."""

    def __init__(self, logger: Logger, what: str, failed: set[tuple[str, str]]) -> None:
        self._key, self._failed = (logger.NAME, what), failed

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, err: BaseException | None, trace: object) -> bool:
        if not isinstance(err, Exception):
            return False
        if self._key not in self._failed:
            self._failed.add(self._key)
            LOG.warning("%s logger: could not write %s: %s: %s", *self._key, type(err).__name__, err)
        return True


def log_numbers(logger: Logger, result: Mapping[str, Any], collection: str | None = None) -> None:
    """Add the numbers of a result to the row that a logger collects; its media take their own channel."""
    for key, value in result.items():
        if key != STEP_KEY and isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
            logger.log(key, float(value), collection)


def media_path(path: Path, root: Path) -> str:
    """The path as it is written down: relative where it lies in the run folder, which may move."""
    try:
        return path.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return str(path)
