"""What a run folder says of its run: configuration, figures and media, read without changing anything in it."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mimickit.config import load_yaml
from mimickit.util.keys import ConfigError
from mimickit.video.errors import VideoError

CONFIG_FILE, LOG_FILE, RESULT_FILE = "config.yaml", "log.jsonl", "result.json"
_STEP = "samples"
_SETTINGS = ("seed", "num_envs")  # numbers of a result that the configuration holds too


@dataclass(frozen=True)
class Exhibit:
    """One file that a run left."""

    key: str
    """Its name in the results; of several at one step the second is 'name #2'."""
    kind: str  # video, image, html, ...
    samples: int
    path: Path
    caption: str = ""


@dataclass(frozen=True)
class RunRecord:
    """One run."""

    name: str
    folder: Path
    config: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    """The numbers of its result."""
    curves: Mapping[str, tuple[list[float], list[float]]] = field(default_factory=dict)
    """By name: samples and values."""
    exhibits: tuple[Exhibit, ...] = ()


def is_run(folder: Path) -> bool:
    """Whether a folder is a run's."""
    return any((folder / name).is_file() for name in (CONFIG_FILE, LOG_FILE, RESULT_FILE))


def find_runs(folder: Path) -> list[Path]:
    """The folder, if it is a run's, else the runs right in it. Raises VideoError where there is none."""
    found = [folder] if is_run(folder) else sorted(path for path in folder.glob("*") if is_run(path))
    if not found:
        raise VideoError(f"{folder}: expected the folder of a run or of a group of runs, found no {LOG_FILE} in it")
    return found


def load_run(folder: Path, name: str | None = None) -> RunRecord:
    """Read a run's folder, also of a run that is under way or was killed. name: default the folder's.

    Raises VideoError naming a file that can't be read.
    """
    try:
        config = load_yaml(folder / CONFIG_FILE) if (folder / CONFIG_FILE).is_file() else {}
        entries = list(_entries(folder / LOG_FILE))
        result = _result(folder / RESULT_FILE)
    except (OSError, ValueError, ConfigError) as error:
        raise VideoError(f"{folder}: can't be read: {error}") from error
    curves: dict[str, tuple[list[float], list[float]]] = {}
    for entry in entries:
        for key, value in entry.items():
            if key not in (_STEP, "media") and _is_number(value):
                samples, values = curves.setdefault(key, ([], []))
                samples.append(float(entry[_STEP]))
                values.append(float(value))
    figures = {key: float(value) for key, value in result.items() if _is_number(value) and key not in _SETTINGS}
    return RunRecord(name or folder.resolve().name, folder, config, figures, curves, tuple(_exhibits(folder, entries)))


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a log; one that is not whole, because it is being written, is passed over."""
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get(_STEP), int):
            yield entry


def _result(path: Path) -> dict[str, Any]:
    result = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return result if isinstance(result, dict) else {}


def _exhibits(folder: Path, entries: list[dict[str, Any]]) -> Iterator[Exhibit]:
    """Media that are still there."""
    for entry in entries:
        for key, items in entry.get("media", {}).items():
            for number, item in enumerate(items, start=1):
                path = folder / item["path"]
                if path.exists():
                    name = key if number == 1 else f"{key} #{number}"
                    yield Exhibit(name, item["type"], entry[_STEP], path, item.get("caption", ""))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
