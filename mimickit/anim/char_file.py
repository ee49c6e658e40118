"""Opens a character file of any format: MJCF, URDF, USD, or a description (YAML) that names one and adds drives."""

import functools
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco

from mimickit.anim.description import Description, find_robot, read_description
from mimickit.anim.drives import add_default_drives, add_drives, add_home
from mimickit.anim.source import CharacterError, CharacterSource
from mimickit.anim.urdf import finish_urdf, is_urdf, read_urdf

_USD = (".usd", ".usda", ".usdc", ".usdz")
_YAML = (".yaml", ".yml")
_INCLUDE = re.compile(r"""<include\s[^>]*?file\s*=\s*["']([^"']+)["']""")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def load_spec(
    path: str | Path, text: str | None = None, files: Mapping[str, Path | bytes] | None = None
) -> mujoco.MjSpec:
    """The character as an editable mujoco.MjSpec, with its drives and a keyframe "home" where the format has none.

    path may be a robot's name, robot:NAME. text and files: what source_of() gave, in place of the file, which need not
    be there any more; no drives are added then. Raises CharacterError.
    """
    if text is not None:
        return _parse(CharacterSource(Path(path), text, files or {}))
    description = describe(path)
    source = _read(description)
    is_mjcf = _is_mjcf(source)
    spec = _parse(source, on_disk=is_mjcf)
    name = str(description.path)
    add_drives(spec, description.drives, name)
    if description.is_made or not is_mjcf:
        add_default_drives(spec, name)
        add_home(spec, description.home, name)
    return spec


def source_of(path: str | Path) -> CharacterSource:
    """What a trace keeps of a character file: its text and all files that it refers to. Raises CharacterError."""
    return _read(describe(path))


def describe(path: str | Path) -> Description:
    """What is known of a character: the file that holds it, and what a description says of it."""
    path = find_robot(str(path))
    if path.suffix.lower() in _YAML:
        return read_description(path)
    if not path.is_file():
        raise CharacterError(f"{path}: no such character file")
    return Description(path, path)


def _read(description: Description) -> CharacterSource:
    path = description.file
    if path.suffix.lower() in _USD:
        from mimickit.anim.usd import read_usd

        return read_usd(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CharacterError(f"{path}: not a character file that can be read: {error}") from None
    if is_urdf(text):
        return read_urdf(path, text, description.packages)
    return _read_mjcf(path, text)


def _is_mjcf(source: CharacterSource) -> bool:
    return source.path.suffix.lower() not in _USD and not is_urdf(source.text)


# ---------------------------------------------------------------------- what the text refers to


def _read_mjcf(path: Path, text: str) -> CharacterSource:
    """An MJCF file with the files it includes and shows. Raises CharacterError for those that aren't there."""
    files: dict[str, Path | bytes] = {}
    _find_includes(path, text, files)
    try:
        spec = mujoco.MjSpec.from_file(str(path))
    except ValueError as error:
        raise CharacterError(f"{path}: MuJoCo can't read this file: {error}") from error
    for slot in _slots(spec):
        name = Path(slot.file).name if spec.strippath else slot.file
        places = list(dict.fromkeys(path.parent / folder / name for folder in (slot.folder, "")))
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            looked = ", ".join(str(place) for place in places)
            raise CharacterError(f"{path}: {slot.key.replace('/', ' ')}: no such file {slot.file!r}: {looked}")
        files[slot.key] = found.resolve()
    return CharacterSource(path, text, files)


def _find_includes(path: Path, text: str, files: dict[str, Path | bytes]) -> None:
    """Add the files that an MJCF includes, relative to it also where one includes another."""
    for name in _INCLUDE.findall(_COMMENT.sub("", text)):
        part = path.parent / name
        if f"include/{name}" in files or not part.is_file():
            continue  # MuJoCo's own words say what is wrong
        files[f"include/{name}"] = part.resolve()
        _find_includes(path, part.read_text(encoding="utf-8-sig", errors="replace"), files)


@dataclass(frozen=True)
class _Slot:
    """A place in a spec that names a file."""

    key: str  # kind, name of the element, and of a cube's textures the side
    file: str
    folder: str  # below the character file, in which it lies
    put: Callable[[str], None]  # names another file


def _slots(spec: Any) -> Iterator[_Slot]:
    kinds = (
        ("mesh", spec.meshes, spec.meshdir),
        ("hfield", spec.hfields, spec.meshdir),
        ("skin", spec.skins, spec.meshdir),
        ("texture", spec.textures, spec.texturedir),
    )
    for kind, elements, folder in kinds:
        for number, element in enumerate(elements):
            key = f"{kind}/{element.name or number}"
            if element.file:
                yield _Slot(key, element.file, folder, functools.partial(setattr, element, "file"))
            for side, file in enumerate(getattr(element, "cubefiles", ())):
                if file:
                    put = functools.partial(element.cubefiles.__setitem__, side)
                    yield _Slot(f"{key}/{side}", file, folder, put)


def _parse(source: CharacterSource, *, on_disk: bool = False) -> Any:
    """A spec in which every file is named by its full path, or lies in spec.assets."""
    include = {key.removeprefix("include/"): _content(value)
               for key, value in source.files.items() if key.startswith("include/")}  # fmt: skip
    try:
        if on_disk:
            spec = mujoco.MjSpec.from_file(str(source.path))
        else:
            spec = mujoco.MjSpec.from_string(source.text, include=include or None)
    except ValueError as error:
        raise CharacterError(f"{source.path}: MuJoCo can't read this file: {error}") from error
    spec.modelfiledir = str(source.path.parent)  # of files that an older trace doesn't hold
    assets = {}
    for slot in _slots(spec):
        value = source.files.get(slot.key)
        if isinstance(value, Path):
            slot.put(str(value))
        elif value is not None:
            name = hashlib.sha256(value).hexdigest()[:24] + Path(slot.file).suffix
            assets[name] = value
            slot.put(name)
    if assets:
        spec.assets = assets
    if is_urdf(source.text):
        finish_urdf(spec, source.text)
    return spec


def _content(value: Path | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.read_bytes()


def attach(scene: Any, child: Any, root: Any, prefix: str) -> Any:
    """Put a copy of a child spec's body and what hangs on it under the scene's world; returns the copy."""
    if child.assets:
        scene.assets = {**scene.assets, **child.assets}
    return scene.worldbody.add_frame().attach_body(root, prefix, "")
