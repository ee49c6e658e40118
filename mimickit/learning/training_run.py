"""What belongs to one call of an agent's train()."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mimickit.learning.progress import Progress
from mimickit.loggers.base import Logger
from mimickit.media.types import Media


@dataclass
class TrainingRun:
    """Where its results go, and what it has found so far."""

    out_dir: Path
    logger: Logger
    bar: Progress
    save_int_models: bool
    start: float  # perf_counter() at the beginning, set back by the time that a resumed run had taken before
    result: dict[str, Any] = field(default_factory=dict)  # of the last test
    media: dict[str, list[Media]] = field(default_factory=dict)  # of the last iteration
    saved_at: int = -1  # iteration of the last checkpoint
