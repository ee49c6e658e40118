"""What the pages that films leave behind have in common: a template in web/, and a file that is whole or not there."""

import os
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from pathlib import Path

from mimickit.video.errors import VideoError


def web_text(name: str) -> str:
    """The content of a file in web/."""
    return resources.files("mimickit.video.pages").joinpath("web", name).read_text(encoding="utf-8")


def filled(template: str, pieces: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """A template of web/ in pieces, each @@NAME@@ in it replaced by the pieces of that name."""
    for number, part in enumerate(web_text(template).split("@@")):
        if number % 2:
            yield from pieces[part]
        else:
            yield part


def write_whole(path: Path, pieces: Iterable[str]) -> None:
    """Write a file under a temporary name beside it, and give it its own when it is complete; what was at path is
    replaced then. Raises VideoError naming it.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        try:
            with part.open("w", encoding="utf-8", errors="xmlcharrefreplace") as file:
                file.writelines(pieces)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise VideoError(f"{path}: can't be written: {error.strerror or error}") from error
