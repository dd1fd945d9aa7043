"""FTBC in one pass against re-running the network for each layer and step, as released code does."""

from __future__ import annotations

import torch

import ftbc
from benchmarks.timing import interleaved
from ftbc.calibrate import Calibration
from ftbc.graph.canonical import canonical
from ftbc.graph.fold import fold
from ftbc.graph.trace import trace
from tests.calibrate.rerun import correct_by_rerunning

STEPS, IMAGES = 4, 32


def run() -> dict[str, float]:
    """One update from one batch of 32 images, ResNet-20, T = 4: the ratio of the two ways."""
    model = ftbc.zoo.load("resnet20-cifar10")
    images = ftbc.data.load("cifar10-sample")[0].take(IMAGES).tensor()
    method = ftbc.FTBC()
    snn = ftbc.convert(model, images, STEPS, "mean-square").graph
    ann = canonical(trace(model, images)).graph
    fold(ann)
    calibration = Calibration(ann, snn, STEPS, images, torch.Generator())
    with torch.no_grad():
        taken = interleaved(
            {
                "one pass": lambda: method.correct(calibration, images),
                "re-run": lambda: correct_by_rerunning(method, calibration, images),
                "ANN": lambda: ann(images),
            },
            repeats=3,
        )
    layers = len(ftbc.convert(model, images, 1, "mean-square").layers())
    one_pass, rerun, ann_seconds = (taken[name][0] for name in ("one pass", "re-run", "ANN"))
    print(f"FTBC, one update, ResNet-20 ({layers} layers), T = {STEPS}, {IMAGES} images (median of 3)")
    print(f"  re-run / one pass     {rerun / one_pass:6.1f} x")
    print(f"  one pass / (T x ANN)  {one_pass / (STEPS * ann_seconds):6.2f} x")
    return {"rerun_over_one_pass": rerun / one_pass, "one_pass_over_steps_times_ann": one_pass / (STEPS * ann_seconds)}
