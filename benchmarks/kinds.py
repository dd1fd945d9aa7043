"""Neurons of all kinds: a step in one compiled pass over memory against several passes of torch, and the plain kind."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import torch

from benchmarks import results
from benchmarks.networks import resnet20
from benchmarks.settings import Settings
from ftbc.convert import convert
from ftbc.measure.machine import threads as using_threads
from ftbc.measure.timing import Way, interleaved
from ftbc.recipes import recipe

PLAIN = "mean-square"
KINDS = {
    "signed, a threshold each (SNM)": "snm",
    "signed, a threshold a channel": "ftbc-signed",
    "burst": "burst",
    "differential": "differential",
}
"""Recipes whose neurons are measured, without their calibration."""


def run(settings: Settings) -> None:
    """The dense engine with each kind of neuron, for one thread and for all."""
    steps, images = settings.pick((16, 64), (2, 2))
    subject = resnet20(settings)
    x = subject.images[:images]
    rows = []
    for count in settings.threads:
        with using_threads(count), torch.no_grad():
            usual = convert(subject.model, x, steps, PLAIN)
            for what, name in KINDS.items():
                snn = convert(subject.model, x, steps, recipe(name, calibrate=()))
                timings = interleaved(
                    {
                        "one pass": Way(lambda snn=snn: snn(x)),
                        "several": Way(_in_several_passes(lambda snn=snn: snn(x))),
                        "usual kind": Way(lambda usual=usual: usual(x)),
                    },
                    settings.repeats,
                )
                over = {
                    "over": timings["one pass"].speed_over(timings["several"]),
                    "over_usual": timings["one pass"].speed_over(timings["usual kind"]),
                }
                rows.append(
                    {
                        "kind": what,
                        "network": "ResNet-20",
                        "steps": steps,
                        "n": images,
                        "threads": count,
                        "repeats": settings.repeats,
                        **{key: spread.to_dict() for key, spread in over.items()},
                    }
                )
                print(
                    f"{what}, T = {steps}, {count} threads: {over['over']} x several passes, {over['over_usual']} x "
                    "the usual kind",
                    flush=True,
                )
    results.write(settings, "kinds", rows)


def _in_several_passes(call: Callable[[], object]) -> Callable[[], object]:
    def plainly() -> object:
        with patch("ftbc.neuron.one_pass._loops", lambda: None):
            return call()

    return plainly
