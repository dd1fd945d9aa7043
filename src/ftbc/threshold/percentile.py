"""A high percentile of the activations: a few outliers are clipped for finer steps below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ftbc.errors import RecipeError
from ftbc.threshold.activations import Activations, Grain
from ftbc.threshold.base import SiteBySite


@dataclass(frozen=True)
class Percentile(SiteBySite):
    """``theta`` = the given percentile of the positive activations, to a bin of the histogram.

    Reference: Rueckauer et al., Frontiers in Neuroscience 2017 (robust normalisation).
    """

    percent: float = 99.9
    grain: Grain = "channel"
    timeless: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.percent <= 100:
            raise RecipeError(f"Percentile(percent={self.percent}): give a number above 0 and at most 100")

    def __call__(self, activations: Activations, steps: int) -> Tensor:
        """The threshold of each group."""
        counts = activations.counts
        below = counts.cumsum(1)
        wanted = below[:, -1:] * (self.percent / 100)
        at = torch.searchsorted(below, wanted).clamp(max=counts.shape[1] - 1).squeeze(1)
        return activations.threshold((at + 1).double() / counts.shape[1])
