"""The rows of a comparison: what a recipe does at one T, averaged over its calibrations, and which rows are best."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ftbc.protocol.measured import Measured

DIGITS = 2
"""Of accuracies in tables. What looks equal there counts as equal."""


@dataclass(frozen=True)
class Row:
    """What a recipe does at ``steps`` time steps.

    accuracy: the mean over the calibrations, in percent, of which ``accuracies`` has one for each of ``seeds``; spread:
    their standard deviation (that of a sample), None for one alone. ann_accuracy, ann_energy: of the network it came
    from, on the same test images. firing_rate: spikes per neuron and step; spikes, synops, energy: per image, the last
    in microjoules; all of these up to this step, extra steps included, and means over the calibrations.
    calibrated_for: the T of the calibration. levels: what its spikes are, such as "binary"; needs: "gradients", or
    "training", of the network for this method; steppable: whether it takes one step at a time.
    reason: why there are no figures, which are None then, or not of all seeds.
    """

    recipe: str
    steps: int
    calibrated_for: int
    seeds: tuple[int, ...]
    accuracy: float | None
    spread: float | None
    accuracies: tuple[float, ...]
    ann_accuracy: float | None
    firing_rate: float | None
    spikes: float | None
    synops: float | None
    energy: float | None
    ann_energy: float | None
    calibration_seconds: float | None
    calibration_images: int | None
    extra_steps: int | None
    test_images: int
    levels: str | None = None
    needs: str | None = None
    steppable: bool | None = None
    reason: str = ""

    @property
    def shown(self) -> float | None:
        """The accuracy as tables show it."""
        return None if self.accuracy is None else round(self.accuracy, DIGITS)

    @property
    def plain(self) -> bool:
        """Whether its T steps are what others call T steps: spikes of one size, one step at a time, none beside."""
        return self.levels in (None, "binary") and self.steppable is not False and not self.extra_steps


def averaged(
    recipe: str,
    steps: int,
    calibrated_for: int,
    found: Mapping[int, Measured],
    ann_accuracy: float | None,
    test_images: int,
    reason: str = "",
    **facts: Any,
) -> Row:
    """The row of the calibrations of some seeds; without any it holds the reason. facts: what the recipe says."""
    cells = list(found.values())
    accuracies = tuple(cell.accuracy[steps - 1] for cell in cells)

    def mean(values: Iterable[float]) -> float | None:
        return statistics.fmean(values) if cells else None

    return Row(
        recipe=recipe,
        steps=steps,
        calibrated_for=calibrated_for,
        seeds=tuple(found),
        accuracy=mean(accuracies),
        spread=statistics.stdev(accuracies) if len(cells) > 1 else None,
        accuracies=accuracies,
        ann_accuracy=ann_accuracy,
        firing_rate=mean(cell.rate(steps) for cell in cells),
        spikes=mean(cell.spikes[steps - 1] for cell in cells),
        synops=mean(cell.synops[steps - 1] for cell in cells),
        energy=mean(cell.energy[steps - 1] for cell in cells),
        ann_energy=mean(cell.reference_energy for cell in cells),
        calibration_seconds=mean(cell.calibration_seconds for cell in cells),
        calibration_images=cells[0].calibration_images if cells else None,
        extra_steps=max(cell.extra_steps for cell in cells) if cells else None,
        test_images=test_images,
        reason=reason,
        **facts,
    )


def best(rows: Sequence[Row]) -> dict[tuple[str, int], str]:
    """Which cells of a table, by recipe and T, are best at their T.

    "best": no other is more accurate, as far as the table shows it; several may be equal. "best plain": if that is not
    plain (see `Row`), the best of those that are. A row that is alone is not marked.
    """
    marks: dict[tuple[str, int], str] = {}
    for steps in dict.fromkeys(row.steps for row in rows):
        column = [row for row in rows if row.steps == steps and row.shown is not None]
        if len(column) < 2:
            continue
        for mark, among in (("best plain", [row for row in column if row.plain]), ("best", column)):
            top = max((row.shown for row in among if row.shown is not None), default=None)
            marks |= {(row.recipe, steps): mark for row in among if row.shown == top}
    return marks
