"""Ratios of speeds, measured in turns within one run, so that a busy or slow machine slows both sides alike."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    measured: str
    baseline: str
    ratio: float
    wanted: str
    holds: bool


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call (s)."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_turns(works: dict[str, Callable[[], object]], *, rounds: int, warmup: int = 1) -> dict[str, float]:
    """Median seconds of each work, all run once in every round."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for index in range(warmup + rounds):
        for name, work in works.items():
            spent = seconds(work)
            if index >= warmup:
                times[name].append(spent)
    return {name: statistics.median(spent) for name, spent in times.items()}


def at_least(name: str, *, measured: str, baseline: str, ratio: float, bound: float) -> Row:
    """A ratio that should be bound or more."""
    return Row(name, measured, baseline, ratio, f">= {bound:g}", ratio >= bound)


def at_most(name: str, *, measured: str, baseline: str, ratio: float, bound: float) -> Row:
    """A ratio that should be bound or less."""
    return Row(name, measured, baseline, ratio, f"<= {bound:g}", ratio <= bound)


def within(name: str, *, measured: str, baseline: str, ratio: float, tolerance: float) -> Row:
    """A ratio that should be 1, give or take the tolerance."""
    return Row(name, measured, baseline, ratio, f"1 ± {tolerance:g}", abs(ratio - 1.0) <= tolerance)


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table."""
    lines = ["| what | measured | baseline | ratio | wanted | holds |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {row.name} | {row.measured} | {row.baseline} | {row.ratio:.2f} | {row.wanted} | "
        f"{'yes' if row.holds else 'NO'} |"
        for row in rows
    ]
    return "\n".join(lines)
