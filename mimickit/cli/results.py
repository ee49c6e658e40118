"""What a run leaves behind: result.json, and what it prints."""

import json
import logging
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mimickit.cli.settings import Settings
from mimickit.loggers.text_logger import keep_older
from mimickit.media.types import MEDIA_KEY, Media
from mimickit.video.errors import VideoError
from mimickit.video.pages.group_page import write_group_page
from mimickit.video.pages.run_record import load_run

LOG = logging.getLogger("mimickit.cli")
RESULT_FILE, PAGE_FILE = "result.json", "index.html"
HEADLINE = ("mean_return", "normalised_return", "mean_ep_len", "num_eps", "falls")


@dataclass
class Report:
    """The facts about a run that are not the agent's to know."""

    settings: Settings
    out_dir: Path
    model_file: Path | None = None
    started: float = field(default_factory=time.monotonic)

    def facts(self) -> dict[str, Any]:
        """Seed, engine, model file and wall time (s)."""
        settings = self.settings
        return {
            "mode": settings.options.mode.value,
            "seed": settings.options.rand_seed,
            "engine": settings.engine.name("engine_name"),
            "env": settings.env.name("env_name"),
            "env_config": settings.env.source,
            "model_file": str(self.model_file) if self.model_file else None,
            "num_envs": settings.num_envs,
            "wall_time_s": round(time.monotonic() - self.started, 3),
        }

    def finish(self, result: Mapping[str, Any], *, interrupted: bool = False) -> dict[str, Any]:
        """Print the result and write result.json, and the page of the run; returns what was written."""
        media: Mapping[str, Sequence[Media]] = result.get(MEDIA_KEY) or {}
        numbers = {key: plain_number(value) for key, value in result.items() if key != MEDIA_KEY}
        clips = {name: [_with_file(item, self.out_dir) for item in items] for name, items in media.items()}
        content = numbers | self.facts() | ({"interrupted": True} if interrupted else {}) | {MEDIA_KEY: clips}
        print(summary(numbers, media, self.out_dir), flush=True)  # first: it is seen even where the disk is full
        write_json(self.out_dir / RESULT_FILE, content)
        try:
            write_group_page([load_run(self.out_dir)], self.out_dir / PAGE_FILE, self.out_dir.resolve().name)
        except (VideoError, OSError) as error:  # all that it shows is there all the same
            LOG.warning("the page of the run: %s", error)
        return content


def summary(numbers: Mapping[str, Any], media: Mapping[str, Sequence[Media]], out_dir: Path) -> str:
    """The lines that a run prints at its end: figures, clips, run folder."""
    shown = [key for key in HEADLINE if key in numbers]
    shown += [key for key in numbers if key not in HEADLINE]
    lines = [f"{key:28} {_short(numbers[key])}" for key in shown if numbers[key] is not None]
    lines += [f"{name:28} {item.path}" for name, items in media.items() for item in items]
    return "\n".join([*lines, f"{'run folder':28} {out_dir}"])


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file in one go: a reader finds the whole of it or none; an older one is kept beside it."""
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    keep_older(path)
    part.replace(path)


def plain_number(value: Any) -> Any:
    """A value for JSON: one-element tensors as numbers, not-a-number and infinity as null."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Path):
        return str(value)
    return value


def _with_file(item: Media, out_dir: Path) -> dict[str, Any]:
    """A media's facts: path, absolute, and file, relative to the run folder (which may move)."""
    facts = item.to_dict() | {k: str(v.resolve()) for k, v in vars(item).items() if isinstance(v, Path)}
    if item.path.resolve().is_relative_to(out_dir.resolve()):
        facts["file"] = item.path.resolve().relative_to(out_dir.resolve()).as_posix()
    return facts


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
