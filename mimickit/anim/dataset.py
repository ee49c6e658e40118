"""Datasets of motion clips: a YAML file `motions: [{file: ..., weight: ...}, ...]`."""

import difflib
import math
from pathlib import Path
from typing import Any

import yaml

from mimickit.anim.motion import MotionError

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
    _refuse_unknown(path, "the dataset", content, ("motions",))
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
    _refuse_unknown(path, where, entry, _KEYS)
    return _find(path, where, entry["file"]), _read_weight(path, where, entry.get("weight", 1.0))


def _read_weight(path: Path, where: str, value: Any) -> float:
    try:
        weight = math.nan if isinstance(value, bool) else float(value)  # YAML reads 1e-4 as text
    except (TypeError, ValueError):
        weight = math.nan
    if not math.isfinite(weight) or weight < 0.0:
        raise MotionError(f"{path}: {where}.weight: expected a number of at least 0, found {value!r}")
    return weight


def _find(path: Path, where: str, name: str) -> Path:
    for candidate in (path.parent / name, Path(name)):
        if candidate.is_file():
            return candidate
    raise MotionError(
        f"{path}: {where}.file: {name} is neither in {path.parent} nor in the working directory {Path.cwd()}"
    )


def _refuse_unknown(path: Path, where: str, mapping: dict[Any, Any], known: tuple[str, ...]) -> None:
    for key in mapping:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f", did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"
            raise MotionError(f"{path}: {where}: unknown key {key!r}{hint}")


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
