"""A run folder's own record: log.txt for people, log.jsonl for programs."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mimickit.loggers.base import STEP_KEY, Logger, media_path
from mimickit.media.types import MEDIA_DIR, Media
from mimickit.util.files import FreePaths, copy_into, file_name, free_path

MIN_WIDTH = 12  # characters: '-1.23457e-05', the longest that %.6g makes


class TextLogger(Logger):
    """Writes log.txt, a table whose columns stay aligned, and log.jsonl, its machine-readable twin.

    A key that first appears late gets its column in the whole table (the rows above show '-'). Media are
    lines that begin with '#', so that readers of tables pass over them. In log.jsonl every line is an object:
    {"samples": 1000, "return": 0.5} for numbers (null if not finite), and for media
    {"samples": 1000, "media": {"test_video": [{"type": "video", "path": ...}]}}. Paths are relative to the
    run folder; a file from elsewhere, which may soon go, is copied into its folder media.
    """

    NAME = "text"
    MEDIA = (Media,)

    def __init__(self, out_dir: str | Path, *, resume_at: int | None = None) -> None:
        """Open the record of a run.

        Args:
            out_dir: the run folder. resume_at: go on with the record that is there up to so many samples; what lies
                past them is written anew by the resumed training. None: begin a record. A record that is not gone
                on with, or not with all of it, is kept beside the new one as log.1.txt and log.1.jsonl, log.2...,
                the highest number the latest.
        """
        super().__init__()
        self._dir = Path(out_dir)
        self._free = FreePaths()
        self._dir.mkdir(parents=True, exist_ok=True)
        self._txt, self._jsonl = self._dir / "log.txt", self._dir / "log.jsonl"
        self._columns: list[str] = []
        self._rows: list[dict[str, Any]] = []
        older = [] if resume_at is None else read_rows(self._jsonl)
        self._rows = [row for row in older if resume_at is not None and row.get(STEP_KEY, 0) <= resume_at]
        if resume_at is None or len(self._rows) < len(older):
            keep_older(self._txt)
            keep_older(self._jsonl)
        if self._rows:
            self._jsonl.write_text("".join(map(_line, self._rows)), encoding="utf-8")
        self._rewrite()

    def _write_row(self, row: Mapping[str, float], step: int) -> None:
        words = {key.replace(" ", "_"): value for key, value in row.items()}  # a blank would be a column's end
        self._append({STEP_KEY: step} | words | {STEP_KEY: step})

    def _write_media(self, key: str, items: Sequence[Media], step: int) -> None:
        self._append({STEP_KEY: step, "media": {key: [self._describe(key, item) for item in items]}})

    def _describe(self, key: str, item: Media) -> dict[str, Any]:
        files = {name: value for name, value in vars(item).items() if isinstance(value, Path)}
        return item.to_dict() | {name: self._keep(key, file) for name, file in files.items()}

    def _keep(self, key: str, file: Path) -> str:
        """The file's path relative to the run folder, after copying it there where it lies outside."""
        if not file.resolve().is_relative_to(self._dir.resolve()) and file.is_file():
            file = copy_into(file, self._dir / MEDIA_DIR / file_name(key), self._free)
        return media_path(file, self._dir)

    def _append(self, entry: dict[str, Any]) -> None:
        self._rows.append(entry)
        with self._jsonl.open("a", encoding="utf-8") as file:
            file.write(_line(entry))
        if "media" not in entry and any(key not in self._columns for key in entry):
            self._rewrite()
        else:
            with self._txt.open("a", encoding="utf-8") as file:
                file.write(self._format(entry))

    def _rewrite(self) -> None:
        """Write the whole table anew, with a column for every key seen so far."""
        keys = (key for row in self._rows if "media" not in row for key in row)
        self._columns = list(dict.fromkeys(keys))
        part = self._txt.with_suffix(".txt.part")
        header = "".join(f"{key:>{self._width(key)}}" for key in self._columns)
        body = "".join(self._format(row) for row in self._rows)
        part.write_text((header + "\n" if header else "") + body, encoding="utf-8")
        part.replace(self._txt)

    def _width(self, key: str) -> int:
        return max(len(key), MIN_WIDTH) + 2

    def _format(self, row: Mapping[str, Any]) -> str:
        if "media" in row:
            items = ((key, item) for key, found in row["media"].items() for item in found)
            return "".join(f"# {STEP_KEY} {row[STEP_KEY]}: {key}: {item['path']}\n" for key, item in items)
        cells = (f"{_number(row.get(key, '-')):>{self._width(key)}}" for key in self._columns)
        return "".join(cells) + "\n"


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The entries of a log.jsonl; a last line that a killed process left unfinished is removed."""
    if not path.is_file():
        return []
    rows = []
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            rows.append({key: math.nan if value is None else value for key, value in json.loads(line).items()})
        except json.JSONDecodeError:
            if number < len(lines):
                raise ValueError(f"{path}:{number}: expected a JSON object, found {line[:60]!r}") from None
            path.write_text("".join(f"{kept}\n" for kept in lines[:-1]), encoding="utf-8")
    return rows


def _line(entry: Mapping[str, Any]) -> str:
    """An entry of log.jsonl."""
    return json.dumps({key: _finite(value) for key, value in entry.items()}) + "\n"


def keep_older(path: Path) -> None:
    """Rename an existing name.ext to name.N.ext with the lowest N that comes after all there are."""
    if path.exists():
        path.rename(free_path(path))


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) else f"{value:.6g}"
