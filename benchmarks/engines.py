"""The engines against the ANN with folded BatchNorm, at its best batch."""

from __future__ import annotations

from collections.abc import Callable

import torch

import ftbc
from benchmarks.timing import interleaved
from ftbc.graph.canonical import canonical
from ftbc.graph.fold import fold
from ftbc.graph.trace import trace

IMAGES = 64


def run() -> dict[str, float]:
    """Image-steps per second of each engine over images per second of the ANN."""
    model = ftbc.zoo.load("resnet20-cifar10")
    images = ftbc.data.load("cifar10-sample")[0].take(IMAGES).tensor()
    ann = canonical(trace(model, images)).graph
    fold(ann)
    ratios = {}
    print(f"image-steps/s over the ANN's images/s, ResNet-20, {IMAGES} images (median of 5)")
    for steps in (8, 32):
        snn = ftbc.convert(model, images, steps, "mean-square")
        ways: dict[str, Callable[[], object]] = {
            f"ANN {batch}": lambda batch=batch: [ann(part) for part in images.split(batch)] for batch in (8, 16, 64)
        }
        ways["layerwise"] = lambda snn=snn: snn(images)
        ways["stepwise"] = lambda snn=snn: snn(images, engine="stepwise")
        with torch.no_grad():
            taken = {name: median for name, (median, _, _) in interleaved(ways).items()}
        best = min(seconds for name, seconds in taken.items() if name.startswith("ANN"))
        for engine in ("layerwise", "stepwise"):
            ratios[f"{engine} T={steps}"] = steps * best / taken[engine]
            print(f"  {engine:10} T = {steps:3}  {ratios[f'{engine} T={steps}']:5.2f} x")
    return ratios
