"""What the files of a clip are called: its suffix, its part, what lies beside it, and names that never collide."""

import contextlib
import errno
from pathlib import Path

from mimickit.video.config import VideoFormat
from mimickit.video.errors import VideoError

PART_SUFFIX = ".part"
TRACE_SUFFIX = ".trace"
POSTER_SUFFIX = ".png"
_FORMATS = {".mp4": VideoFormat.MP4, ".webm": VideoFormat.WEBM, ".gif": VideoFormat.GIF}
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS, errno.EACCES)


def suffix_of(video_format: VideoFormat) -> str:
    """What the names of a format end in, for instance .mp4; nothing for a folder of frames."""
    return next((suffix for suffix, known in _FORMATS.items() if known is video_format), "")


def format_of(path: Path) -> VideoFormat:
    """What a clip of that name is; a name without a suffix of a video is a folder of frames."""
    return _FORMATS.get(path.suffix.lower(), VideoFormat.PNG)


def beside(path: Path, ending: str) -> Path:
    """The file beside a clip that has its name, but for the suffix: beside(film.mp4, ".json") is film.json. A dot in
    the name of a folder of frames begins no suffix.
    """
    return path.with_name(path.name.removesuffix(_suffix(path)) + ending)


def part_of(path: Path) -> Path:
    """What a clip is called while it is filmed."""
    return path.with_name(path.name + PART_SUFFIX)


def reserve_name(path: Path) -> Path:
    """Choose the name of a clip or trace: path, or path with a number where it is taken; its part is created empty,
    so that no other process chooses the same, and so is the folder that it is in. Raises VideoError where nothing
    can be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            name = free_name(path)
            with contextlib.suppress(FileExistsError):
                if _suffix(name):
                    part_of(name).open("xb").close()
                else:
                    part_of(name).mkdir()
                return name
    except OSError as error:
        raise VideoError(f"{path}: can't be written: {error.strerror or error}") from error


def free_name(path: Path) -> Path:
    """path, or the first of <stem>_001, _002, ... of which there is neither clip, part (of any format: they would
    share a side file), side file nor poster.
    """
    suffix = _suffix(path)
    number, candidate = 0, path
    while any(p.exists() or p.is_symlink() for p in _claims(candidate)):
        number += 1
        candidate = beside(path, f"_{number:03d}{suffix}")
    return candidate


def discard_part(part: Path) -> None:
    """Remove a part in which there is nothing to see; does nothing if it is gone, or a folder that holds frames."""
    with contextlib.suppress(OSError):
        if part.is_dir():
            part.rmdir()
        else:
            part.unlink(missing_ok=True)


def give_name(source: Path, final: Path) -> Path:
    """Name a complete file or folder final, or final with a number where that is taken; returns the name. Of a
    file the old name may be left. Raises OSError.
    """
    name = final
    while True:
        try:
            _rename_to_new(source, name)
            return name
        except FileExistsError:
            name = free_name(final)


def _suffix(path: Path) -> str:
    """The suffix of a video, trace or poster, as it is spelled; nothing for a folder."""
    return path.suffix if path.suffix.lower() in (*_FORMATS, TRACE_SUFFIX, POSTER_SUFFIX) else ""


def _claims(path: Path) -> list[Path]:
    """What must not be there for a name to be free."""
    claims = [path, part_of(path), beside(path, ".json")]
    if path.suffix.lower() not in (TRACE_SUFFIX, POSTER_SUFFIX):  # which are themselves beside a clip
        claims.append(beside(path, POSTER_SUFFIX))
        claims += [part_of(beside(path, suffix)) for suffix in (*_FORMATS, "")]
    return claims


def _rename_to_new(source: Path, name: Path) -> None:
    """Raises FileExistsError where the name is taken."""
    if source.is_dir():
        _rename_folder(source, name)
        return
    try:
        name.hardlink_to(source)  # unlike a rename, fails if the name is taken
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if name.exists():
            raise FileExistsError(errno.EEXIST, "the name is taken") from error
        source.rename(name)  # a file system without links


def _rename_folder(source: Path, name: Path) -> None:
    """A rename replaces no file and no folder but an empty one."""
    if name.exists():
        raise FileExistsError(errno.EEXIST, "the name is taken")
    try:
        source.rename(name)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.ENOTDIR, errno.EEXIST):
            raise FileExistsError(errno.EEXIST, "the name is taken") from error
        raise
