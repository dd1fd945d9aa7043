"""Time several ways to do the same thing, interleaved, so that a noisy machine disturbs all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def interleaved(ways: Mapping[str, Callable[[], object]], repeats: int = 5) -> dict[str, tuple[float, float, float]]:
    """Median, smallest and largest seconds of each way, after one run of each to warm up."""
    for way in ways.values():
        way()
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            begun = time.perf_counter()
            way()
            seconds[name].append(time.perf_counter() - begun)
    return {name: (statistics.median(taken), min(taken), max(taken)) for name, taken in seconds.items()}
