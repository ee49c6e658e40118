"""Names that are free, and copies that are whole."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path


def free_path(path: Path) -> Path:
    """The path itself if nothing is there, else name.N.ext with N after all that there are."""
    if not path.exists():
        return path
    others = (other.name for other in path.parent.glob(f"*{path.suffix}"))
    found = (re.fullmatch(rf"{re.escape(path.stem)}\.(\d+){re.escape(path.suffix)}", name) for name in others)
    number = 1 + max((int(match[1]) for match in found if match), default=0)
    return path.with_name(f"{path.stem}.{number}{path.suffix}")


class FreePaths:
    """free_path for many files of the same names: a search begins where the last one ended, whatever there are."""

    def __init__(self) -> None:
        self._next: dict[Path, int] = {}

    def __call__(self, path: Path) -> Path:
        """The path itself if nothing is there, else name.N.ext."""
        free = path
        while free.exists() or free.is_symlink():
            number = self._next.get(path, 1)
            self._next[path] = number + 1
            free = path.with_name(f"{path.stem}.{number}{path.suffix}")
        return free


def copy_into(source: Path, folder: Path, free: Callable[[Path], Path] = free_path) -> Path:
    """Copy a file, or a folder with all in it, into a folder, which is made; returns the copy. Its name is the source's
    or, where that is taken, what free makes of it.

    The name appears when the copy is complete. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target = free(folder / source.name)
    part = target.with_name(f".{target.name}.part")
    try:
        if source.is_dir():
            shutil.copytree(source, part)
        else:
            shutil.copy2(source, part)
        part.replace(target)
    finally:
        remove(part)
    return target


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there. Raises OSError."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def file_name(text: str) -> str:
    """Text as a name of a file or folder: what would be a path or a hidden file in it becomes '_'."""
    return re.sub(r"[^\w.+=-]+", "_", text).lstrip(".") or "_"
