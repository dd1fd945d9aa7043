"""The threshold at which T steps reproduce the activations with the least square error.

    theta = argmin  sum (a - q(a))^2 ,   q(a) = theta/T * clip(round(a T / theta), 0, T)

over a grid of fractions of the maximum. ``rounding="nearest"`` is how a neuron acts that starts half charged
(v[0] = theta/2, or theta/2T at each step); ``"floor"`` is what the released code of SNN Calibration and FTBC
searches with, although its neuron has the half charge too.
Reference: Li et al., ICML 2021 (SNN Calibration), section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ftbc.errors import RecipeError
from ftbc.threshold.activations import Activations, Grain
from ftbc.threshold.base import SiteBySite


@dataclass(frozen=True)
class MeanSquare(SiteBySite):
    """Grid search over ``1.00, 0.99 .. 0.06`` of the maximum; the error is taken from the histogram."""

    rounding: Literal["nearest", "floor"] = "nearest"
    grain: Grain = "channel"

    def __call__(self, activations: Activations, steps: int) -> Tensor:
        """The threshold of each group for ``steps`` steps."""
        a = activations.centres
        fractions = 1 - 0.01 * torch.arange(95, dtype=a.dtype, device=a.device)
        theta = fractions[:, None]
        half = 0.5 if self.rounding == "nearest" else 0.0
        q = theta / steps * torch.floor(a * steps / theta + half).clamp(0, steps)
        # Relative to its maximum every group sees the same grid, so one product gives all errors [G, 95].
        errors = activations.counts @ ((a - q) ** 2).T
        return activations.threshold(fractions[errors.argmin(1)])


@dataclass(frozen=True)
class MeanSquareUpTo(MeanSquare):
    """As `MeanSquare`, but thresholds for ``most`` steps serve more, too: for networks that are read before the end."""

    most: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.most < 1:
            raise RecipeError(f"{self}: most must be at least 1")

    def __call__(self, activations: Activations, steps: int) -> Tensor:
        """The threshold of each group for ``steps`` steps, or for ``most``."""
        return super().__call__(activations, min(steps, self.most))
