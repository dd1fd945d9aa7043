"""All that the report of a conversion shows, measured: curves, energy, baselines, and a look inside."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ftbc.data import Images
from ftbc.measure.energy import energy_models, quantised_ann_energy
from ftbc.measure.evaluate import Evaluation, evaluate, reference_accuracy
from ftbc.measure.inside import look_inside
from ftbc.measure.quantised import bits_for, quantised
from ftbc.network import SpikingNetwork
from ftbc.progress import Progress, silent
from ftbc.protocol.origin import origin
from ftbc.report.html import Page, Picture
from ftbc.report.png import data_address
from ftbc.report.series import Baseline, Series

SHOWN = 12
"""How many test images are looked at one by one: the first."""
CLASSES = {
    "cifar10": ("plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
}


@torch.no_grad()
def conversion_page(
    model: nn.Module,
    snn: SpikingNetwork,
    test: Images,
    calibration: Any = None,
    others: Mapping[str, SpikingNetwork] | None = None,
    *,
    engine: str = "layerwise",
    facts: Mapping[str, Any] | None = None,
    command: str | None = None,
    title: str | None = None,
    progress: Progress = silent,
) -> Page:
    """Measure a network, and others beside it, each at every step.

    model: the ANN; calibration: images for the quantised ANN, which is left out without them; facts: what else belongs
    to the record, such as the seed; command: what the user typed.
    """
    networks = {snn.recipe.name: snn, **(others or {})}
    found = {
        name: evaluate(network, test, model if network is snn else None, engine=engine, progress=progress)
        for name, network in networks.items()
    }
    own = found[snn.recipe.name]
    series = [Series.over_time(name, result) for name, result in found.items()]
    return subject_page(
        model, snn, test, series, baselines(model, own, test, calibration, snn.steps),
        facts=facts, command=command, title=title or f"{snn.recipe.name}, T = {snn.steps}, on {test.name}",
    )  # fmt: skip


def subject_page(
    model: nn.Module,
    snn: SpikingNetwork,
    test: Images,
    series: Sequence[Series],
    anns: Sequence[Baseline],
    *,
    title: str,
    per_t: bool = False,
    facts: Mapping[str, Any] | None = None,
    command: str | None = None,
) -> Page:
    """A page of curves that are known already, with a look inside one network."""
    shown = test.take(min(SHOWN, len(test)))
    inside = look_inside(snn, shown.tensor().to(next(snn.graph.parameters())), model)
    pictures = [
        Picture(data_address(pixels) if pixels.shape[0] in (1, 3) else None, int(label))
        for pixels, label in zip(shown.images, shown.labels, strict=True)
    ]
    last, ann = series[0].points[-1], anns[0] if anns else None
    against = f", the ANN {ann.accuracy:.2f} %" if ann else ""
    return Page(
        title=title,
        summary=f"{series[0].name}: {last.accuracy:.2f} % at T = {last.t}{against}, on {len(test):,} test images.",
        series=series,
        baselines=anns,
        per_t=per_t,
        subject=f"{snn.recipe.name}, made for T = {snn.steps}; measured on {len(shown)} test images",
        inside=inside,
        errors={row.name: row.error for row in snn.layers() if row.error == row.error},
        pictures=pictures,
        classes=_classes(test, snn),
        recipe=snn.recipe.to_toml(),
        facts={**(facts or {}), "test images": f"{len(test):,} of {test.name}", **record(command)},
    )


def baselines(model: nn.Module, found: Evaluation, test: Any, calibration: Any, steps: int) -> list[Baseline]:
    """The ANN as it is and, with calibration images, in integers: of the bits that match up to T steps, and of 8."""
    if found.reference_accuracy is None:
        return []
    rows = [Baseline("ANN", found.reference_accuracy, found.reference_energies())]
    integers = [name for name, known in energy_models().items() if known.bits is not None]
    counted = found.reference_operations
    for bits in sorted({*range(1, bits_for(steps) + 1), 8}) if calibration is not None else ():
        energy = quantised_ann_energy(counted.macs, found.image_macs, counted.acs, bits)
        accuracy = reference_accuracy(quantised(model, calibration, bits), test)
        rows.append(Baseline(f"ANN, {bits}-bit", accuracy, dict.fromkeys(integers, energy)))
    return rows


def record(command: str | None) -> dict[str, Any]:
    """Command, versions and machine, for people."""
    made = origin(command)
    versions = ", ".join(f"{name} {version}" for name, version in made["machine"]["versions"].items())
    facts = {"command": made["command"], "commit": made["commit"], "versions": versions, "made": made["time"]}
    return {name: value for name, value in facts.items() if value is not None}


def _classes(test: Images, snn: SpikingNetwork) -> Sequence[str] | None:
    """Names of the classes of a data set that is known by name."""
    names = CLASSES.get(re.split(r"[ _-]", test.name)[0])
    return names if names is not None and snn.graph.shape(snn.graph.output) == (len(names),) else None
