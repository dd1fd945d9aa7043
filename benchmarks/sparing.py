"""Neurons of other kinds than plain ones, by what an engine need not do for them: events in the place of dense layers,
and whole sums in the place of steps, each against `layerwise` at every step; and an evaluation that counts the spikes
and operations of every image, on events and by `layerwise`.
"""

from __future__ import annotations

import importlib
from unittest.mock import patch

import torch
from torch import Tensor

from benchmarks import results
from benchmarks.networks import resnet20
from benchmarks.settings import Settings
from ftbc.convert import convert
from ftbc.measure.evaluate import evaluate
from ftbc.measure.machine import threads as using_threads
from ftbc.measure.timing import Way, interleaved
from ftbc.network import SpikingNetwork
from ftbc.recipes import recipe

COUNTING = "plain, with all operations counted, on events"
KINDS = {
    "a potential each (SNN Calibration), on events": recipe("snnc-potential"),
    "signed, on events": recipe("ftbc-signed", calibrate=()),
    "burst, on events": recipe("burst"),
    "differential, on events": recipe("differential"),
    "parallel, on whole sums": recipe("parallel-relu", calibrate=()),
    COUNTING: recipe("mean-square"),
}
"""Recipes whose neurons are measured, without calibrations that change nothing in their speed."""

_LAYERWISE = importlib.import_module("ftbc.simulate.layerwise")  # the package has the function under that name


def run(settings: Settings) -> None:
    """Each kind at few and at many steps, on one thread."""
    subject, rows = resnet20(settings), []
    with using_threads(1), torch.no_grad():
        for steps, images in settings.pick(((16, 32), (64, 8)), ((2, 2),)):
            x = subject.images[:images]
            for what, method in KINDS.items():
                snn = convert(subject.model, x, steps, method)
                ways = _counting(snn, x) if what == COUNTING else _running(snn, x)
                timings = interleaved(dict(zip(("all", "spared"), ways, strict=True)), settings.repeats)
                over = timings["spared"].speed_over(timings["all"])
                row = {"kind": what, "network": "ResNet-20", "steps": steps, "n": images, "threads": 1}
                rows.append({**row, "repeats": settings.repeats, "over": over.to_dict()})
                print(f"{what}, T = {steps}: {over} x layerwise at every step", flush=True)
    results.write(settings, "sparing", rows)


def _running(snn: SpikingNetwork, x: Tensor) -> tuple[Way, Way]:
    return Way(lambda: _at_every_step(snn, x)), Way(lambda: snn(x, engine="event"))


def _counting(snn: SpikingNetwork, x: Tensor) -> tuple[Way, Way]:
    data = x, torch.zeros(len(x), dtype=torch.long)

    def way(engine: str) -> Way:
        return Way(lambda: evaluate(snn, data, engine=engine, counted_images=len(x)))

    return way("layerwise"), way("event")


def _at_every_step(snn: SpikingNetwork, x: Tensor) -> Tensor:
    with patch.object(_LAYERWISE, "needs", lambda *_: None):
        return snn(x)
