"""How long an experiment takes on this machine: counted in passes of its networks and their operations.

One small network is timed, the operations of all others are counted without numbers in them; so it is a guess, but a
quick one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache

import torch
from torch.utils.flop_counter import FlopCounterMode

from ftbc import zoo
from ftbc.calibrate import FTBC, CorrelationSearch, Refit, ReleasedFTBC, WeightCorrection
from ftbc.measure.machine import threads
from ftbc.recipe import Recipe
from ftbc.reproduce.experiment import TABLE, Source
from ftbc.reproduce.setting import Setting
from ftbc.reproduce.table import by_network, lacks

TEST_IMAGES = {"cifar10": 10_000, "cifar100": 10_000, "imagenet": 50_000}
SAMPLE_IMAGES = 1000
_STEP = {"layerwise": 1.2, "stepwise": 1.4, "event": 0.3}
"""One step of the spiking network in passes of the ANN, measured on ResNet-20 (docs/speed.md)."""
_CORRECTED = 1.8
"""One step of a calibration in passes of the ANN: each step is fired twice."""
_FITTED = 20
"""Regressions and searches in passes of the ANN over the calibration images, about."""
_LOOKS = 5
"""Passes over the calibration images for thresholds and for the comparison with the model itself."""
_TRIES = 5
_SECONDS = ((90, 1, "s"), (5400, 60, "min"), (172_800, 3600, "h"), (float("inf"), 86_400, "days"))


def estimate(setting: Setting, everything: bool = False) -> float | None:
    """Seconds that an experiment takes, of what is there, or of all; None if there is nothing."""
    if setting.experiment.kind == "bias-search":
        return 1.0
    operations = [images * operations_per_image(source) for source, images in _work(setting, everything)]
    return sum(operations) / operations_per_second() if operations else None


def in_words(seconds: float | None) -> str:
    """A time that nobody takes for exact.

    >>> in_words(100), in_words(7200), in_words(None)
    ('about 2 min', 'about 2 h', '-')
    """
    if seconds is None:
        return "-"
    _, unit, word = next(entry for entry in _SECONDS if seconds < entry[0])
    return f"about {max(1, round(seconds / unit))} {word}"


@cache
def operations_per_second() -> float:
    """Of a small network on all threads that torch uses, if nothing else runs: by processor time, not by the clock."""
    model, x, best = zoo.build("resnet20", classes=10).eval(), torch.rand(16, 3, 32, 32), float("inf")
    count = torch.get_num_threads()
    with threads(1), torch.no_grad():
        for _ in range(_TRIES):
            begun = time.thread_time()
            model(x)
            best = min(best, time.thread_time() - begun)
    return count * len(x) * _operations("resnet20", None) / best


def operations_per_image(source: Source) -> float:
    """Floating-point operations of one image through a network."""
    network = source.blueprint or zoo.Blueprint.from_dict(zoo.entries()[str(source.zoo)].network)
    return _operations(network.architecture, network.width)


@cache
def _operations(architecture: str, width: float | None) -> float:
    """Counted on a network without numbers; activations, BatchNorm and classes hardly matter."""
    side = zoo.architectures()[architecture].side
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        zoo.Blueprint(architecture, width=width).build().eval()(torch.empty(1, 3, side, side))
    return float(counter.get_total_flops())


def passes(recipe: Recipe, steps: int, images: int) -> float:
    """How many images pass the ANN, or in a time like that, while a recipe converts for T steps."""
    total = float(_LOOKS * images)
    for piece in recipe.calibrate:
        if isinstance(piece, FTBC):
            total += _CORRECTED * steps * piece.iterations * min(piece.batch * piece.batches, images)
        elif isinstance(piece, ReleasedFTBC):
            total += _CORRECTED * steps * piece.batch * piece.batches
        elif isinstance(piece, WeightCorrection):
            total += 3 * piece.iterations * piece.batch + steps * images
        elif isinstance(piece, Refit | CorrelationSearch):
            total += _FITTED * images + _CORRECTED * steps * images
        else:
            total += _CORRECTED * steps * images
    return total


def _work(setting: Setting, everything: bool) -> Iterator[tuple[Source, float]]:
    """Networks, and how many images pass each."""
    experiment, scale, step = setting.experiment, setting.scale, _STEP[setting.engine]
    if experiment.kind != TABLE:
        source = experiment.networks.get("subject", {}).get(setting.name)
        if source is not None and _counts(setting, str(scale.data), source, everything):
            yield source, _of_figure(setting)
        return
    for part in experiment.parts:
        for key, rows in by_network(part).items():
            source = experiment.networks[key].get(setting.name)
            if source is None or not _counts(setting, part.data, source, everything):
                continue
            total = 0.0
            for t in setting.steps(part.steps):
                tests = _test_images(setting, part.data, t)
                total += sum(passes(row.method_here(setting.name), t, scale.images) + step * t * tests for row in rows)
            yield source, scale.seeds * total


def _counts(setting: Setting, data: str, source: Source, everything: bool) -> bool:
    """Whether a network is there, or is to be counted although it is not: which needs to know what it is."""
    known = source.zoo is None or source.zoo in zoo.entries()
    return known if everything else not lacks(setting, data, source)


def _of_figure(setting: Setting) -> float:
    """A guess by the numbers that a figure may have: batches, iterations, alphas."""
    figure, scale, step = setting.experiment.figure, setting.scale, _STEP[setting.engine]
    steps, tests = max(scale.steps), _test_images(setting, str(scale.data), max(scale.steps))
    courses, batches = len(figure.get("alphas", [1])), figure.get("batches", 0)
    corrected = _CORRECTED * steps * (batches * figure.get("batch", 0) + figure.get("iterations", 10) * 256)
    return courses * (corrected + step * steps * tests * (batches + 1)) + 2 * _LOOKS * scale.images


def _test_images(setting: Setting, data: str, t: int) -> int:
    scale = setting.scale
    there = SAMPLE_IMAGES if setting.material.place(data) == "cifar10-sample" else TEST_IMAGES.get(data, 0)
    count = min(scale.test_images or there, there)
    if scale.limit is not None and scale.full_up_to is not None and t > scale.full_up_to:
        count = min(count, scale.limit)
    return count
