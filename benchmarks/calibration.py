"""What a calibration costs: FTBC in one pass against re-running, on events against step by step, against the ANN."""

from __future__ import annotations

from unittest.mock import patch

import torch

from benchmarks import results
from benchmarks.networks import resnet20
from benchmarks.settings import Settings
from ftbc.calibrate import FTBC, Calibration
from ftbc.calibrate.by_events import ByEvents
from ftbc.convert import convert
from ftbc.measure.machine import threads as using_threads
from ftbc.measure.speed import density, folded
from ftbc.measure.timing import Spread, Timing, Way, fastest, interleaved
from ftbc.network import SpikingNetwork
from ftbc.recipes import recipe
from tests.calibrate.rerun import correct_by_rerunning

UPDATE = "one update, re-run for each layer and step, over one pass"
EVENTS = "one update, step by step, over one on events"
WHOLE = "FTBC, 10 iterations of 2 x 128 images, T = 8, over T passes of the ANN"
WHOLE_QUICK = "FTBC, 1 iteration, over T passes of the ANN"


def run(settings: Settings) -> None:
    """Three ratios of time, each for one thread and for all."""
    rows = []
    for count in settings.threads:
        with using_threads(count), torch.no_grad():
            for what, calibration, spread in (_update(settings), _events(settings), _whole(settings)):
                steps, images = calibration.steps, calibration.images
                rows.append(
                    {
                        "what": what,
                        "network": "ResNet-20",
                        "steps": steps,
                        "n": len(images),
                        "density": density(SpikingNetwork(calibration.snn, steps, recipe("ftbc")), images),
                        "threads": count,
                        "repeats": settings.repeats,
                        "ratio": spread.to_dict(),
                    }
                )
                print(f"{what}, T = {steps}, {len(images)} images, {count} threads: {spread} x", flush=True)
    results.write(settings, "calibration", rows)


def _update(settings: Settings) -> tuple[str, Calibration, Spread]:
    """One update of all biases from one batch of 32 images, T = 4."""
    steps, images = settings.pick((4, 32), (2, 2))
    calibration, method = _prepared(settings, steps, images), FTBC()
    x = calibration.images
    timings = interleaved(
        {
            "one pass": Way(lambda: method.correct(calibration, x)),
            "re-run": Way(lambda: correct_by_rerunning(method, calibration, x)),
        },
        settings.repeats,
    )
    return UPDATE, calibration, timings["one pass"].speed_over(timings["re-run"])


def _events(settings: Settings) -> tuple[str, Calibration, Spread]:
    """One update of all biases from one batch of 128 images, T = 8, where the biases are nearly found."""
    steps, images = settings.pick((8, 128), (2, 2))
    calibration, method = _prepared(settings, steps, images), FTBC()
    x = calibration.images
    target = method.targets(calibration, x)
    with patch("ftbc.calibrate.by_events.WORTH", 0):
        events = ByEvents.of(calibration, target, images, 1)
    assert events is not None
    timings = interleaved(
        {
            "on events": Way(lambda: method.correct(calibration, x, target, events)),
            "step by step": Way(lambda: method.correct(calibration, x, target)),
        },
        settings.repeats,
    )
    return EVENTS, calibration, timings["on events"].speed_over(timings["step by step"])


def _whole(settings: Settings) -> tuple[str, Calibration, Spread]:
    """A whole calibration over T passes of the ANN over the 256 images that an iteration draws."""
    steps, images = settings.pick((8, 256), (2, 8))
    method = settings.pick(FTBC(iterations=10, batch=128, batches=2), FTBC(iterations=1, batch=4, batches=2))
    calibration = _prepared(settings, steps, images)
    x = calibration.images
    ways = {
        f"ANN {batch}": Way(lambda batch=batch: [calibration.ann(part) for part in x.split(batch)])
        for batch in (8, 16, 64)
    }
    timings = interleaved({"FTBC": Way(lambda: method(calibration)), **ways}, settings.repeats)
    best = timings[fastest({name: timings[name] for name in ways})[0]]
    over = Timing(tuple(steps * taken for taken in best.seconds)).speed_over(timings["FTBC"])
    return settings.pick(WHOLE, WHOLE_QUICK), calibration, over


def _prepared(settings: Settings, steps: int, images: int) -> Calibration:
    subject = resnet20(settings)
    x = subject.images[:images]
    snn = convert(subject.model, x, steps, "mean-square").graph
    return Calibration(folded(subject.model, x), snn, steps, x, torch.Generator().manual_seed(0))
