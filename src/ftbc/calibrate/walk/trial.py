"""Methods on trial: what helps one network harms another, and images that were set aside tell which.

    calibrate a copy with the method, and one without it, on three quarters of the images;
    error = mean over the last quarter of | output after T steps - output of the ANN |^2
    keep the method where its error is the smaller one; then all images calibrate the network itself

The error of the outputs, and not that of a layer: what brings a layer nearer to its activations on other images does
not always bring the network nearer to its answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor

from ftbc.calibrate.base import Calibration
from ftbc.simulate import layerwise, read

if TYPE_CHECKING:
    from ftbc.calibrate.walk.conduct import LayerCalibrator

    Walk: TypeAlias = Callable[[Sequence[LayerCalibrator], Calibration], None]

_SET_ASIDE = 4
"""One image of so many; with fewer there is no trial, and what would be on trial is left out."""

_AT_ONCE = 64


def without_what_harms(
    methods: Sequence[LayerCalibrator], calibration: Calibration, walk: Walk
) -> Sequence[LayerCalibrator]:
    """The methods of a walk, less those on trial if the network is better off without them."""
    proven = [method for method in methods if not method.on_trial]
    if len(proven) == len(methods):
        return methods
    count = len(calibration.images) // _SET_ASIDE
    if not count:
        return proven
    # A source of chance of its own: the walk over all images draws what it would draw without a trial.
    order = torch.randperm(len(calibration.images), generator=_chance(calibration)).to(calibration.images.device)
    aside, rest = calibration.images[order[:count]], calibration.images[order[count:]]

    def error(tried: Sequence[LayerCalibrator]) -> float:
        trial = replace(
            calibration, snn=calibration.snn.copy(), images=rest, generator=_chance(calibration),
            progress=lambda _, done, total: calibration.progress("trying", done, total),
        )  # fmt: skip
        walk(tried, trial)
        return _output_error(trial, aside)

    return methods if error(methods) < error(proven) else proven


def _chance(calibration: Calibration) -> torch.Generator:
    return torch.Generator().manual_seed(calibration.generator.initial_seed())


def _output_error(calibration: Calibration, images: Tensor) -> float:
    """The sum of squares by which the outputs after all steps miss the ANN's."""
    total = torch.zeros((), dtype=torch.float64, device=images.device)
    parts, team = images.split(_AT_ONCE), calibration.team
    for x in parts[team.own(len(parts))]:
        outputs = read(layerwise(calibration.snn, x, calibration.steps), calibration.readout)[-1]
        total += (outputs - calibration.ann(x)).double().pow(2).sum()
    return float(team.sum(total))
