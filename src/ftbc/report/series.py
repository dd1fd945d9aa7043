"""What the curves of a report show: accuracy and energy of one method at several numbers of steps, and of ANNs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ftbc.measure.energy import CMOS_45NM
from ftbc.measure.evaluate import Evaluation

if TYPE_CHECKING:
    from ftbc.comparison import Comparison


@dataclass(frozen=True)
class Point:
    """Accuracy in percent at t steps, its standard deviation if it is a mean, and microjoules by energy model.

    cached: the same with the layers that read the image computed once; empty if that is not known.
    """

    t: int
    accuracy: float
    spread: float | None = None
    energy: Mapping[str, float] = field(default_factory=dict)
    cached: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Series:
    """The points of one method."""

    name: str
    points: tuple[Point, ...]

    def at(self, t: int) -> Point | None:
        """The point of t steps, if there is one."""
        return next((point for point in self.points if point.t == t), None)

    @classmethod
    def over_time(cls, name: str, found: Evaluation) -> Series:
        """One network, read at each of its steps."""
        return cls(name, tuple(_point(found, t) for t in range(1, len(found.accuracy) + 1)))

    @classmethod
    def of_last_steps(cls, name: str, found: Mapping[int, Evaluation]) -> Series:
        """Several networks, each made for its own T and read at the last of its steps."""
        return cls(name, tuple(_point(evaluation, t) for t, evaluation in found.items()))


@dataclass(frozen=True)
class Baseline:
    """An ANN: its accuracy in percent, and microjoules by the energy models that it can run under."""

    name: str
    accuracy: float
    energy: Mapping[str, float] = field(default_factory=dict)


def of_comparison(table: Comparison) -> tuple[list[Series], list[Baseline]]:
    """The recipes of a comparison that have figures, and its ANN at the largest T."""
    series = []
    for name in table.names:
        rows = [row for row in table.rows if row.recipe == name and row.accuracy is not None]
        points = [
            Point(row.steps, row.accuracy or 0.0, row.spread, {CMOS_45NM.name: row.energy or 0.0}) for row in rows
        ]
        series += [Series(name, tuple(points))] if points else []
    known = [(ann, t) for t, ann in table.ann.items() if ann is not None]
    energy = next((row.ann_energy for row in table.rows if row.ann_energy is not None), None)
    baselines = [Baseline("ANN", known[-1][0], {} if energy is None else {CMOS_45NM.name: energy})] if known else []
    return series, baselines


def _point(found: Evaluation, t: int) -> Point:
    energy, cached = ({name: values[t - 1] for name, values in found.energies(c).items()} for c in (False, True))
    return Point(t, found.accuracy[t - 1], None, energy, cached)
