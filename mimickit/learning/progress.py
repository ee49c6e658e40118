"""How far training has come: a bar in a terminal, plain lines elsewhere."""

import sys
import time
from types import TracebackType
from typing import Any, Self

_LINE_EVERY_S = 10.0


class Progress:
    """Shows samples, samples/s, return and the time left; a context manager."""

    def __init__(self, max_samples: int, *, start: int = 0, enabled: bool = True) -> None:
        """Begin at start samples; max_samples is where training ends, sys.maxsize is nowhere."""
        self._total = None if max_samples >= sys.maxsize else max_samples
        self._start, self._samples = start, start
        self._enabled = enabled
        self._bar: Any = None
        self._task: Any = None
        self._began = self._last_line = time.monotonic()

    def __enter__(self) -> Self:
        if self._enabled and sys.stderr.isatty():
            self._bar, self._task = _make_bar(self._total, self._start)
            self._bar.start()
        return self

    def update(self, samples: int, *, samples_per_s: float, episode_return: float) -> None:
        """Show where training stands; samples_per_s of the last iteration, episode_return the mean of its episodes."""
        self._samples = samples
        text = f"{samples_per_s:,.0f} samples/s  return {episode_return:.1f}"
        if self._bar is not None:
            self._bar.update(self._task, completed=samples, text=text)
        elif self._enabled and time.monotonic() - self._last_line >= _LINE_EVERY_S:
            self._last_line = time.monotonic()
            self.say(f"{samples:,}{self._share()} samples  {text}{self._time_left()}")

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        if self._bar is not None:
            self._bar.console.print(line, highlight=False, markup=False)
        elif self._enabled:
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()

    def _share(self) -> str:
        return f" of {self._total:,}" if self._total else ""

    def _time_left(self) -> str:
        done = self._samples - self._start
        if not self._total or done <= 0:
            return ""
        seconds = (time.monotonic() - self._began) * max(0, self._total - self._samples) / done
        return f"  {seconds / 60:.1f} min left"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _make_bar(total: int | None, start: int) -> tuple[Any, Any]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("training"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} samples  {task.fields[text]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    # redirecting would catch what third parties write to stdout, such as results that are piped on
    bar = RichProgress(*columns, console=Console(stderr=True), redirect_stdout=False)
    return bar, bar.add_task("training", total=total, completed=start, text="")
