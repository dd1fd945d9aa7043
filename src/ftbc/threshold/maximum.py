"""The largest activation seen: nothing is clipped, and small activations need many steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ftbc.threshold.activations import Activations, Grain
from ftbc.threshold.base import SiteBySite


@dataclass(frozen=True)
class Maximum(SiteBySite):
    """``theta = max(a)``. Reference: Diehl et al., IJCNN 2015 (data-based normalisation)."""

    grain: Grain = "channel"
    timeless: ClassVar[bool] = True

    def __call__(self, activations: Activations, steps: int) -> Tensor:
        """The threshold of each group."""
        return activations.threshold(torch.ones_like(activations.maximum))
