"""The threshold that the network was trained with: no statistics are needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ftbc.errors import RecipeError
from ftbc.threshold.activations import Activations, Grain
from ftbc.threshold.base import SiteBySite


@dataclass(frozen=True)
class Trained(SiteBySite):
    """``theta`` = the bound of each activation, one for the layer: of those in `activation/`, ReLU6 and clamps.

    Reference: Deng and Gu, ICLR 2021 (RTS); Ding et al., IJCAI 2021 (RNL); Bu et al., ICLR 2022 (QCFS).
    """

    grain: ClassVar[Grain] = "layer"
    trained: ClassVar[bool] = True
    timeless: ClassVar[bool] = True

    def __call__(self, activations: Activations, steps: int) -> Tensor:
        """The threshold of the layer, whatever the number of steps."""
        if activations.upper is None:
            raise RecipeError(
                f"{activations.place} is a plain ReLU, which has no trained threshold: train the network with an "
                "activation of ftbc.activation, or take a recipe with thresholds from data, such as 'mean-square'"
            )
        return activations.maximum.new_full(activations.shape, activations.upper)
