"""Round numbers for axes."""

import math


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from low to high, at most so many."""
    span = high - low
    if not (math.isfinite(span) and span > 0.0):
        return [low]
    unit = 10.0 ** math.floor(math.log10(span / most))
    gap = next(factor * unit for factor in (1.0, 2.0, 5.0, 10.0, 20.0) if span / (factor * unit) <= most - 1)
    return [gap * index for index in range(math.ceil(low / gap - 1e-9), math.floor(high / gap + 1e-9) + 1)]
