"""Names that are free, and copies that are whole."""

import re
import shutil
from pathlib import Path


def free_path(path: Path) -> Path:
    """The path itself if nothing is there, else name.N.ext with N after all that there are."""
    if not path.exists():
        return path
    others = (other.name for other in path.parent.glob(f"*{path.suffix}"))
    found = (re.fullmatch(rf"{re.escape(path.stem)}\.(\d+){re.escape(path.suffix)}", name) for name in others)
    number = 1 + max((int(match[1]) for match in found if match), default=0)
    return path.with_name(f"{path.stem}.{number}{path.suffix}")


def copy_into(source: Path, folder: Path) -> Path:
    """Copy a file into a folder, which is made, under its own name or one that is free; returns the copy.

    The name appears when the copy is complete. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target = free_path(folder / source.name)
    part = target.with_name(f".{target.name}.part")
    try:
        shutil.copy2(source, part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return target


def file_name(text: str) -> str:
    """Text as a name of a file or folder: what would be a path or a hidden file in it becomes '_'."""
    return re.sub(r"[^\w.+=-]+", "_", text).lstrip(".") or "_"
