"""The engines against the ANN with folded BatchNorm at its best batch: several networks, T, one thread and all."""

from __future__ import annotations

from typing import Any

from benchmarks import results
from benchmarks.networks import Subject, subjects
from benchmarks.settings import Settings
from ftbc.convert import convert
from ftbc.measure.speed import Bench, Speed
from ftbc.report.table import speed_table


def run(settings: Settings) -> None:
    """Images a second at T over those of the ANN, many at once and one at a time.

    Where some networks alone are asked for, the rows of the others stay.
    """
    before = results.read(settings.to, "engines") if settings.networks else None
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in before["rows"] if before else ():
        rows.setdefault(row["network"], []).append(row)
    for subject in subjects(settings):
        found = measure(subject, settings)
        rows[subject.name] = [{**subject.about(), **speed.to_dict()} for speed in found]
        spikes = ", ".join(dict.fromkeys(f"{100 * row.density:.1f} % (T = {row.steps})" for row in found))
        print(f"{subject.name}: {subject.weights}; {subject.pictures}; recipe {subject.recipe.name}")
        print(f"{subject.many} images at once, spikes per neuron and step {spikes}")
        print(speed_table(found), end="\n\n", flush=True)
        # After each network: a later one may be interrupted.
        results.write(settings, "engines", [row for own in rows.values() for row in own])


def measure(subject: Subject, settings: Settings) -> list[Speed]:
    """All engines, T and numbers of threads for one network."""
    bench = Bench(subject.model, subject.images, alone=subject.alone, repeats=settings.repeats)
    found = []
    for steps in settings.pick((4, 8, 32), (2, 4)):
        snn = convert(subject.model, subject.images, steps, subject.recipe)
        for threads in settings.threads:
            found += bench.compare(snn, batches=(subject.many, 1), threads=threads)
    return found
