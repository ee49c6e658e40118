"""Reads a zip archive whose writer was killed: its table of contents is missing, its members are there."""

import struct
import zipfile
import zlib
from pathlib import Path

_LOCAL = struct.Struct("<4s5H3I2H")  # a member's own header
_SIGNATURE = b"PK\x03\x04"


class ScannedZip:
    """The whole members of a broken archive."""

    def __init__(self, path: Path, members: dict[str, tuple[int, int, int]]) -> None:
        self._file = path.open("rb")
        self._members = members  # where the data begins, its length, and how it is compressed

    def namelist(self) -> list[str]:
        """Names of the members, in order."""
        return list(self._members)

    def read(self, name: str) -> bytes:
        """A member's content. Raises KeyError, zlib.error."""
        start, length, method = self._members[name]
        self._file.seek(start)
        data = self._file.read(length)
        return zlib.decompress(data, -zlib.MAX_WBITS) if method == zipfile.ZIP_DEFLATED else data

    def size(self, name: str) -> int:
        """Bytes that a member takes in the archive."""
        return self._members[name][1]

    def close(self) -> None:
        """Close the file; may be called twice."""
        self._file.close()


def scan_zip(path: Path) -> ScannedZip:
    """Find the members by their own headers. Raises zipfile.BadZipFile where there is none."""
    members: dict[str, tuple[int, int, int]] = {}
    size, at = path.stat().st_size, 0
    with path.open("rb") as file:
        while at + _LOCAL.size <= size:
            file.seek(at)
            signature, _, _, method, _, _, _, length, _, name_length, extra_length = _LOCAL.unpack(
                file.read(_LOCAL.size)
            )
            start = at + _LOCAL.size + name_length + extra_length
            if signature != _SIGNATURE or start + length > size:
                break
            members[file.read(name_length).decode("utf-8", "replace")] = (start, length, method)
            at = start + length
    if not members:
        raise zipfile.BadZipFile("no member of an archive in it")
    return ScannedZip(path, members)
