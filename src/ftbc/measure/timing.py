"""Time several ways to do the same work, in turn, so that a noisy machine disturbs all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ftbc.errors import InputError
from ftbc.progress import Progress, silent

Run = Callable[[], object]


@dataclass(frozen=True)
class Spread:
    """What repeated measurements of one quantity say: their median, and the smallest and largest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of measured values.

        >>> print(Spread.of([1.0, 4.0, 2.0]))
        2.00 (1.00..4.00)
        """
        return cls(statistics.median(values), min(values), max(values))

    def to_dict(self) -> dict[str, float]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Spread:
        """The spread of `to_dict`."""
        return cls(data["median"], data["low"], data["high"])

    def __mul__(self, factor: float) -> Spread:
        return Spread(self.median * factor, self.low * factor, self.high * factor)

    def __str__(self) -> str:
        digits = 0 if self.median >= 100 else 1 if self.median >= 10 else 2 if self.median >= 0.1 else 3
        return f"{self.median:.{digits}f} ({self.low:.{digits}f}..{self.high:.{digits}f})"


@dataclass(frozen=True)
class Way:
    """One way to do the work: a call, and how many items (images) it takes care of."""

    run: Run
    items: int = 1


@dataclass(frozen=True)
class Timing:
    """Seconds of one way, round by round, and how many items it took care of in each."""

    seconds: tuple[float, ...]
    items: int = 1

    @property
    def per_second(self) -> Spread:
        """Items a second."""
        return Spread.of([self.items / taken for taken in self.seconds])

    def speed_over(self, other: Timing) -> Spread:
        """How many times as many items a second as ``other``, round by round: what disturbs a round disturbs both."""
        if len(self.seconds) != len(other.seconds):
            raise InputError("timings of different runs have no ratio: measure both in one call of interleaved")
        share = self.items / other.items
        return Spread.of([share * b / a for a, b in zip(self.seconds, other.seconds, strict=True)])


def timed(run: Run) -> float:
    """Seconds that one call takes."""
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def interleaved(
    ways: Mapping[str, Way],
    repeats: int = 5,
    clock: Callable[[Run], float] = timed,
    progress: Progress = silent,
    what: str = "measuring",
) -> dict[str, Timing]:
    """Run every way ``repeats`` times in turn, after one run of each to warm up.

    Each round begins with another way: what a way leaves behind in caches and clock rates meets all of them.
    clock: how a call is timed.
    """
    if repeats < 1:
        raise InputError(f"repeats={repeats}: give a whole number, at least 1")
    names, done, total = list(ways), 0, len(ways) * (repeats + 1)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(repeats + 1):
        first = turn % len(names) if names else 0
        for name in names[first:] + names[:first]:
            taken = clock(ways[name].run)
            done += 1
            progress(what, done, total)
            if turn:
                seconds[name].append(taken)
    return {name: Timing(tuple(seconds[name]), ways[name].items) for name in names}


def fastest(timings: Mapping[str, Timing], count: int = 1) -> list[str]:
    """The names of the ways with the most items a second, best first."""
    return sorted(timings, key=lambda name: -timings[name].per_second.median)[:count]
