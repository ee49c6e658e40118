"""The folder of a run: one run at a time, and nothing left in it by a run that was refused before it began."""

import contextlib
import itertools
import os
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mimickit.cli.options import Mode, run_folder_of
from mimickit.cli.settings import Settings
from mimickit.factory import CONFIG_FILE, MODEL_FILE
from mimickit.util.keys import ConfigError

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

LOCK_FILE = ".lock"  # there while a run is under way; one that kill -9 left behind locks nobody out


class RunFolder:
    """A folder that one run alone writes in, for as long as a with block lasts.

    A block that an exception ends before begun is set leaves the folder as it was: new files go, files that were
    renamed to make room for them get their names back, and a folder that was made for the run goes.
    """

    def __init__(self, path: Path, made: Iterable[Path] = ()) -> None:
        """Lock a folder; made are the folders, innermost first, that were made for this run.

        Raises:
            ConfigError: another run is writing in it. OSError: it can't be written in.
        """
        self.path = path
        self.begun = False
        self._made = list(made)
        self._lock = _lock(path)
        self._before = {_identity(entry): entry for entry in self._entries()}

    def _entries(self) -> list[Path]:
        """Everything in the folder but the lock, what is in a folder before it."""
        return sorted((entry for entry in self.path.rglob("*") if entry != self.path / LOCK_FILE), reverse=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        undo = error is not None and not self.begun
        if undo:
            with contextlib.suppress(OSError):  # the error that ended the run is the one to tell
                self._restore()
        if self._lock is not None:
            (self.path / LOCK_FILE).unlink(missing_ok=True)
            os.close(self._lock)
        if undo:
            _remove_empty(self._made)

    def has_new(self, name: str) -> bool:
        """Whether files have been added to a folder in it."""
        before = set(self._before.values())
        return any(entry.is_file() and entry not in before for entry in (self.path / name).rglob("*"))

    def _restore(self) -> None:
        for entry in self._entries():
            old = self._before.get(_identity(entry), entry)
            if old != entry:
                entry.replace(old)
        before = set(self._before.values())
        new = [entry for entry in self._entries() if entry not in before]
        folders = [entry for entry in new if entry.is_dir() and not entry.is_symlink()]
        for entry in new:
            if entry not in folders:
                entry.unlink()
        _remove_empty(folders)


def _identity(entry: Path) -> tuple[int, int]:
    """What stays the same when a file is renamed, and is no other's."""
    found = entry.lstat()
    return found.st_ino, found.st_mtime_ns


def _remove_empty(folders: Iterable[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):  # somebody else has put something in it
            folder.rmdir()


def _lock(folder: Path) -> int | None:
    """An open file that holds the lock on a folder; None on a system or file system that knows no locks.

    Raises:
        ConfigError: another run holds it.
    """
    while fcntl is not None:
        handle = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise ConfigError(
                f"--out_dir: {folder}: another run is writing in this folder; wait for its end or name another folder"
            ) from None
        except OSError:
            return handle
        if os.fstat(handle).st_nlink:
            return handle
        os.close(handle)  # the run that held it has just ended, and removed the file
    return None


def make_run_folder(settings: Settings) -> RunFolder:
    """The run's folder, made and locked; a default name is never one that exists.

    Raises:
        ConfigError: it can't be made, another run is writing in it, or it holds the model of another training.
    """
    named = settings.options.out_dir
    if named is None and settings.resume is not None:
        named = run_folder_of(settings.resume)
    try:
        if named is None:
            return _new_folder(settings)
        made = _missing(named)
        named.mkdir(parents=True, exist_ok=True)
        folder = RunFolder(named, made)
    except OSError as err:
        raise ConfigError(f"--out_dir: can't write in {named or 'output'}: {err.strerror}") from None
    if settings.options.mode is Mode.TRAIN and settings.resume is None and (named / MODEL_FILE).exists():
        with folder:
            raise ConfigError(
                f"--out_dir: {named} holds a trained {MODEL_FILE} already; go on with it (--resume {named}) "
                "or name another folder"
            )
    return folder


def _new_folder(settings: Settings) -> RunFolder:
    env = Path(settings.env.source.split(" (")[0]).stem.removesuffix("_env")
    if env == Path(CONFIG_FILE).stem:
        env = settings.env.name("env_name").rpartition(":")[2]
    name = f"{settings.options.mode.value}_{env}_{time.strftime('%Y-%m-%d_%H-%M-%S')}"
    for suffix in itertools.chain([""], (f"_{number}" for number in itertools.count(2))):
        path = Path("output") / (name + suffix)
        made = _missing(path)
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        return RunFolder(path, made)
    raise AssertionError("unreachable")


def _missing(path: Path) -> list[Path]:
    """The folders that have to be made for a path, innermost first."""
    return [folder for folder in (path, *path.parents) if not folder.exists()]
