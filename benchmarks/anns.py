"""Which ANN? ResNet-20 in torch, TorchScript and ONNX Runtime, in float32 and int8, beside the event engine."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks import results
from benchmarks.networks import Subject, resnet20
from benchmarks.processes import Rival, alone, best_of_each, group, opened, race
from benchmarks.settings import Settings
from ftbc.convert import convert
from ftbc.measure.speed import density
from ftbc.measure.timing import fastest
from ftbc.network import SpikingNetwork

TORCH = "own: ANN, torch"
LABELS = {
    TORCH: "ANN, torch, float32",
    "own: ANN, TorchScript": "ANN, TorchScript, float32",
    "onnx_ann: ANN, ONNX Runtime float32": "ANN, ONNX Runtime, float32",
    "onnx_ann: ANN, ONNX Runtime int8": "ANN, ONNX Runtime, int8",
    "own: event": "SNN, events, float32",
    "own: event-int16": "SNN, events, int16",
}


def run(settings: Settings) -> None:
    """Images a second over those of the ANN in torch, each at its best batch, and one image at a time."""
    subject = resnet20(settings)
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for steps in settings.pick((4, 8), (2,)):
        snn = convert(subject.model, subject.images, steps, subject.recipe)
        for threads in settings.threads:
            rows += _measure(subject, snn, threads, settings, notes)
    results.write(settings, "anns", rows, list(dict.fromkeys(notes)))


def _measure(
    subject: Subject, snn: SpikingNetwork, threads: int, settings: Settings, notes: list[str]
) -> list[dict[str, Any]]:
    images = subject.images[: subject.batch]
    print(f"{subject.name}, T = {snn.steps}, {threads} threads, {len(images)} images: over the ANN in torch")
    with opened(("own", "onnx_ann"), snn, images, threads, settings) as (rivals, missing):
        for note in missing:
            print(f"  {note}; there is no int8 ANN to compare with")
        notes += missing
        timings = race(rivals, settings.repeats, best_of_each(rivals, list(LABELS)))
        agreement = _agreement(rivals, list(timings), subject, images)
        versions = {name: version for rival in rivals.values() for name, version in rival.versions.items()}
    rows = []
    spikes = density(snn, images)
    for single in (False, True):
        entered = {name: timing for name, timing in timings.items() if alone(name) == single or not single}
        best = {label: fastest({n: t for n, t in entered.items() if group(n) == label}) for label in LABELS}
        for label, names in best.items():
            if not names:
                continue
            timing, base = timings[names[0]], timings[best[TORCH][0]]
            spiking = "ANN" not in label
            row = {
                "network": subject.name,
                "what": LABELS[label],
                "how": names[0],
                "one_image_at_a_time": single,
                "n": len(images),
                "steps": snn.steps if spiking else None,
                "density": spikes if spiking else None,
                "recipe": subject.recipe.name,
                "threads": threads,
                "repeats": settings.repeats,
                "images_per_second": timing.per_second.to_dict(),
                "over_ann": timing.speed_over(base).to_dict(),
                "same_class_as_ann": agreement[names[0]],
                "rival_versions": versions,
            }
            rows.append(row)
            place = "one at a time" if single else "best batch"
            print(f"  {row['what']:28} {place:14} {timing.speed_over(base)!s:>20} x", flush=True)
    return rows


@torch.no_grad()
def _agreement(rivals: dict[str, Rival], names: list[str], subject: Subject, images: torch.Tensor) -> dict[str, float]:
    """The share of images that get the class which the ANN gives them."""
    wanted = subject.model(images).argmax(1)
    found = {}
    for name in names:
        kind, _, offer = name.partition(": ")
        found[name] = float((rivals[kind].output(offer).argmax(1) == wanted).double().mean())
    return found
