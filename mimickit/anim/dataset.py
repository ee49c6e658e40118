"""Datasets of motion clips: a YAML file `motions: [{file: ..., weight: ...}, ...]`."""

import math
from pathlib import Path
from typing import Any

import yaml

from mimickit.anim.motion import MotionError
from mimickit.util.keys import ConfigError, as_float, reject_unknown

_KEYS = ("file", "weight")


def read_dataset(path: Path) -> list[tuple[Path, float]]:
    """Clips and weights of a dataset file, in its order.

    A relative file is looked for beside the dataset, then in the working directory. A weight left out is 1;
    one of 0 keeps a clip without ever sampling it, and at least one must be above 0. Raises MotionError.
    """
    if not path.is_file():
        raise MotionError(f"{path}: no such dataset file")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise MotionError(f"{path}: not readable as YAML: {error}") from None
    if not isinstance(content, dict) or "motions" not in content:
        raise MotionError(f"{path}: expected 'motions: [{{file, weight}}, ...]', found {_brief(content)}")
    _refuse_unknown(content, ("motions",), str(path))
    entries = content["motions"]
    if not isinstance(entries, list) or not entries:
        raise MotionError(f"{path}: motions: expected at least one clip, found {_brief(entries)}")
    clips = [_read_entry(path, i, entry) for i, entry in enumerate(entries)]
    if not any(weight > 0.0 for _, weight in clips):
        raise MotionError(f"{path}: motions: expected a weight above 0, found only weights of 0")
    return clips


def _read_entry(path: Path, index: int, entry: Any) -> tuple[Path, float]:
    where = f"motions[{index}]"
    if not isinstance(entry, dict) or not isinstance(entry.get("file"), str) or not entry["file"]:
        raise MotionError(f"{path}: {where}: expected {{file: path, weight: number}}, found {_brief(entry)}")
    _refuse_unknown(entry, _KEYS, f"{path}: {where}")
    return _find(path, where, entry["file"]), _read_weight(path, where, entry.get("weight", 1.0))


def _read_weight(path: Path, where: str, value: Any) -> float:
    try:
        weight = as_float(value, "weight", f"{path}: {where}")
    except ConfigError as error:
        raise MotionError(str(error)) from None
    if not 0.0 <= weight < math.inf:
        raise MotionError(f"{path}: {where}: weight: expected a number of at least 0, found {value!r}")
    return weight


def _find(path: Path, where: str, name: str) -> Path:
    for candidate in (path.parent / name, Path(name)):
        if candidate.is_file():
            return candidate
    raise MotionError(
        f"{path}: {where}.file: {name} is neither in {path.parent} nor in the working directory {Path.cwd()}"
    )


def _refuse_unknown(mapping: dict[Any, Any], known: tuple[str, ...], source: str) -> None:
    try:
        reject_unknown(mapping, known, source)
    except ConfigError as error:
        raise MotionError(str(error)) from None


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
