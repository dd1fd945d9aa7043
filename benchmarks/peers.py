"""ftbc beside SpikingJelly and snnTorch: the same ResNet-20, images and threads, in processes that run in turn.

"same network" is our converted network, thresholds and all, with their neurons; "ann2snn" is SpikingJelly's own
conversion of the ANN.
"""

from __future__ import annotations

from typing import Any

import torch

from benchmarks import results
from benchmarks.networks import Subject, resnet20
from benchmarks.processes import best_of_each, group, opened, race
from benchmarks.settings import Settings
from ftbc.convert import convert
from ftbc.measure.speed import density
from ftbc.measure.timing import fastest
from ftbc.network import SpikingNetwork

ANN = "own: ANN, torch"
OURS = {
    "own: layerwise": "ftbc, layerwise",
    "own: stepwise": "ftbc, stepwise",
    "own: event": "ftbc, events, float32",
    "own: event-int16": "ftbc, events, int16",
}
PEERS = {
    "jelly: same network": "SpikingJelly, same network",
    "jelly: ann2snn": "SpikingJelly, ann2snn",
    "snntorch_loop: same network": "snnTorch, same network",
}


def run(settings: Settings) -> None:
    """How many times as fast as each peer each engine is."""
    # Without temporal biases, which the neurons of the peers do not have.
    subject = resnet20(settings, "mean-square")
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for steps in settings.pick((8, 32), (2,)):
        snn = convert(subject.model, subject.images, steps, subject.recipe)
        for threads in settings.threads:
            rows += _measure(subject, snn, threads, settings, notes)
    results.write(settings, "peers", rows, list(dict.fromkeys(notes)))


def _measure(
    subject: Subject, snn: SpikingNetwork, threads: int, settings: Settings, notes: list[str]
) -> list[dict[str, Any]]:
    images = subject.images[: subject.batch]
    print(f"{subject.name}, T = {snn.steps}, {threads} threads, {len(images)} images, each at its best batch")
    with opened(("own", "jelly", "snntorch_loop"), snn, images, threads, settings) as (rivals, missing):
        for note in missing:
            print(f"  {note}")
        notes += missing
        tried = race(rivals, settings.repeats, best_of_each(rivals, [ANN, *OURS, *PEERS], single=False))
        best = {label: fastest({n: t for n, t in tried.items() if group(n) == label}) for label in (ANN, *OURS, *PEERS)}
        chosen = {label: names[0] for label, names in best.items() if names}
        versions = {name: version for rival in rivals.values() for name, version in rival.versions.items()}
        wanted = snn(images)[-1]
        outputs = {}
        for label, name in chosen.items():
            kind, _, offer = name.partition(": ")
            outputs[label] = rivals[kind].output(offer)
    rows = []
    spikes = density(snn, images)
    for label, name in chosen.items():
        if label == ANN:
            continue
        timing = tried[name]
        ratios = {OURS[own]: tried[chosen[own]].speed_over(timing) for own in OURS if label in PEERS}
        rows.append(
            {
                "network": subject.name,
                "program": {**OURS, **PEERS}[label],
                "how": name,
                "n": len(images),
                "steps": snn.steps,
                "density": spikes,
                "recipe": subject.recipe.name,
                "threads": threads,
                "repeats": settings.repeats,
                "images_per_second": timing.per_second.to_dict(),
                "over_ann": timing.speed_over(tried[chosen[ANN]]).to_dict(),
                "ours_over_this": {own: spread.to_dict() for own, spread in ratios.items()},
                "same_class": _share(outputs[label].argmax(1) == wanted.argmax(1)),
                "largest_difference": float((outputs[label] - wanted).abs().max()),
                "rival_versions": versions,
            }
        )
        for own, spread in ratios.items():
            print(f"  {own:24} over {PEERS[label]:28} {spread!s:>20} x", flush=True)
    return rows


def _share(right: torch.Tensor) -> float:
    return float(right.double().mean())
