"""Threshold balancing on the spiking network itself, as RMP and TSC do it.

Layer by layer, from the first to the last, with the layers before already balanced:

    theta <- factor * max over images, steps and neurons of the current  W s[t] + bias

The current of a single step is larger than the mean current, for spikes come all or none; a factor below 1 makes up for
part of it. Spikes carry theta here and 1 in the papers; the thresholds agree all the same, because the currents behind
a layer scale with the size of its spikes. Theta is at most the bound of a bounded activation. The initial potential and
b[t] keep their share of the threshold. One pass of the network over the images (`in_order.py`).
Reference: Han, Srinivasan, Roy, CVPR 2020 (RMP-SNN), after Sengupta et al., Frontiers in Neuroscience 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ftbc.calibrate.base import Calibration
from ftbc.calibrate.in_order import in_order
from ftbc.errors import RecipeError
from ftbc.settings import Piece


@dataclass(frozen=True)
class ThresholdBalance(Piece):
    """Thresholds by the rule above, from ``batch`` images, shared by what the recipe's thresholds are shared by."""

    factor: float = 0.8
    batch: int = 128
    moves_thresholds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.factor > 0 or self.batch < 1:
            raise RecipeError(f"{self}: factor must be positive, batch at least 1")

    def __call__(self, calibration: Calibration) -> None:
        """Balance the thresholds of every spiking layer in place; a layer without positive currents keeps its own."""
        x = calibration.part(next(calibration.draw(self.batch)))
        total = len(calibration.plain_neurons("ThresholdBalance"))
        for done, site in enumerate(in_order(calibration.snn, x, calibration.steps), 1):
            neuron = site.neuron
            theta = neuron.threshold
            seen = torch.stack([_largest(current, theta) for current in site.currents()]).amax(0)
            largest = calibration.team.largest(seen)
            bound = calibration.ann[site.node.name].module.upper
            balanced = torch.where(largest > 0, self.factor * largest, theta)
            neuron.threshold = balanced if bound is None else balanced.clamp(max=bound)
            scale = neuron.threshold / theta
            neuron.initial, neuron.bias = neuron.initial * scale, neuron.bias * scale
            calibration.progress("balancing thresholds", done, total)


def _largest(currents: Tensor, like: Tensor) -> Tensor:
    """The largest of currents ``[T, N, ...]`` for each entry of ``like``, ``[1]``, ``[C]`` or ``[C, H, W]``."""
    if not currents.numel():  # another process has all images
        return torch.full_like(like, -torch.inf)
    if like.numel() == 1:
        return currents.amax().reshape(like.shape)
    if like.ndim == currents.ndim - 2:
        return currents.amax((0, 1))
    return currents.amax([d for d in range(currents.ndim) if d != 2])
