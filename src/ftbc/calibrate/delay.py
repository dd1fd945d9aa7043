"""Delayed read-out: outputs count only once spikes have come through all layers.

A neuron with the mean current E[a] first fires after (theta - v[0]) / E[a] steps, so that the first spikes reach the
output about

    t0 = sum over layers of min over neurons of (theta - v[0]) / E[a]

steps late. After t steps the answer is the mean output of the steps from t0 on, but of no fewer than the last
``least``, where there are so many. The steps before are simulated like all others: T counts them.
Reference: Bu, Li, Yu, CVPR 2025 (Inference-scale ANN-SNN conversion), with one threshold a channel in each minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ftbc.calibrate.base import Calibration
from ftbc.calibrate.in_order import activations
from ftbc.errors import RecipeError
from ftbc.neuron.functional import mean_over
from ftbc.neuron.spiking import Spiking
from ftbc.settings import Piece


@dataclass(frozen=True)
class DelayedReadout(Piece):
    """Count from t0 on, at least the last ``least`` steps; E[a] is taken from ``batch`` images."""

    least: int = 4
    batch: int = 128
    timeless: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.least, self.batch) < 1:
            raise RecipeError(f"{self}: least and batch must be at least 1")

    def __call__(self, calibration: Calibration) -> None:
        """Set the read-out."""
        if calibration.readout is not None:
            raise RecipeError("DelayedReadout: another piece of the recipe weighs the steps already; take one of them")
        x = calibration.part(next(calibration.draw(self.batch)))
        weights = delayed(calibration.steps, int(self.delay(calibration, x)), self.least)
        calibration.readout = weights.to(x)

    def delay(self, calibration: Calibration, x: Tensor) -> float:
        """t0 on these images, and those of the other processes."""
        total = 0.0
        sites = calibration.stepped_neurons("DelayedReadout")
        for node, a in zip(sites, activations(calibration.ann, x), strict=True):
            neuron = node.module
            assert isinstance(neuron, Spiking)
            missing = (neuron.spread(neuron.threshold) - neuron.spread(neuron.initial)).clamp(min=0)
            mean = mean_over(a, a.new_empty(a.shape[1:]), calibration.team)
            waits = (missing / mean).masked_fill(mean <= 0, torch.inf).min()
            total += float(waits) if bool(torch.isfinite(waits)) else 0.0  # a silent layer holds nothing back
        return total


def delayed(steps: int, start: int, least: int) -> Tensor:
    """The read-out ``[T, T]``: row t is the mean of the steps from ``start`` to t, or of the last ``least`` up to t.

    >>> delayed(3, start=2, least=2)
    tensor([[1.0000, 0.0000, 0.0000],
            [0.5000, 0.5000, 0.0000],
            [0.0000, 0.5000, 0.5000]], dtype=torch.float64)
    """
    t = torch.arange(steps)
    first = (t + 1 - least).clamp(min=0).clamp(max=start)
    counted = (t[None, :] >= first[:, None]) & (t[None, :] <= t[:, None])
    return counted.double() / counted.sum(1, keepdim=True)
