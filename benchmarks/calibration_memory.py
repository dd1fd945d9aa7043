"""Peak memory of `best` against the number of images and of steps, each measured in a process of its own (Linux)."""

from __future__ import annotations

import sys
from typing import Any

import torch

import ftbc
from benchmarks import results
from benchmarks.memory import FORGET, forget_peak, in_a_process, peak
from benchmarks.networks import cifar, resnet20
from benchmarks.settings import Settings
from ftbc.measure.speed import density
from ftbc.measure.timing import Spread

PART = "calibration-memory"
RECIPE = "best"


def run(settings: Settings) -> None:
    """How much the peak of a process grows while it calibrates a network."""
    if not FORGET.exists():
        print(f"{PART}: left out, it is measured by /proc of Linux\n")
        results.write(settings, PART, [], ["left out: it is measured by /proc of Linux"])
        return
    subject = resnet20(settings, "mean-square")
    print(f"growth of peak memory while calibrating, MB, {subject.name}, {RECIPE}")
    rows: list[dict[str, Any]] = []
    for steps, images in settings.pick([(4, 256), (4, 1024), (4, 4096), (32, 256), (32, 1024)], [(2, 8), (2, 16)]):
        command = ("benchmarks.calibration_memory", str(steps), str(images))
        grown = Spread.of([in_a_process(*command) for _ in range(settings.repeats)])
        few = subject.images[:8]
        rows.append(
            {
                **subject.about(),
                "recipe": RECIPE,
                "steps": steps,
                "n": images,
                "threads": torch.get_num_threads(),
                "density": density(ftbc.convert(subject.model, few, steps, subject.recipe), few),
                "repeats": settings.repeats,
                "grown_mb": grown.to_dict(),
            }
        )
        print(f"  T = {steps:3}, {images:5} images  {grown!s:>22}", flush=True)
    results.write(settings, PART, rows)


def _measure(steps: int, count: int) -> float:
    model, few = ftbc.zoo.load("resnet20-cifar10"), cifar(min(count, 256))
    images = few.repeat(-(-count // len(few)), 1, 1, 1)[:count]  # memory does not depend on what is in them
    ftbc.convert(model, images[:2], 2, RECIPE)
    forget_peak()
    before = peak()
    ftbc.convert(model, images, steps, RECIPE)
    return peak() - before


if __name__ == "__main__":
    print(_measure(int(sys.argv[1]), int(sys.argv[2])))
