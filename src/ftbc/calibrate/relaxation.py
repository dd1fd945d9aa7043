"""Targets of a regression that ask for no more than what matters.

What lies behind a regression may not see every difference of its outputs: an activation is flat below 0, a neuron that
is far below its threshold is silent however far. There any prediction on the same side is as good, and the target may
give way to it. Finding targets for given predictions, and predictions for given targets, in turn, lowers in each round

    min over allowed targets of   sum (target - prediction)^2 + penalty

because each of the two steps does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ftbc.graph.ops import Activation, Staircase
from ftbc.neuron.integrate_fire import IntegrateFire


class Relaxation(Protocol):
    """A rule for targets; margin: how far beyond an edge they are to lie, relative to what a plain fit leaves."""

    @property
    def margin(self) -> float: ...

    def __call__(self, z: Tensor, prediction: Tensor, part: Tensor, slack: Tensor) -> Tensor:
        """Targets in the place of z ``[R, G, M]``; part: t - 1 for rows of means over t steps ``[R]``; slack: the
        margin in the units of z, ``[G, M]``."""
        ...


@dataclass(frozen=True)
class FlatEnds:
    """Where an activation is flat the target is the prediction, but between z and the edge, to be careful.

    low, high: below which input the activation gives 0, and above which it gives no more; None where it has no such
    end.
    """

    low: float | None
    high: float | None = None
    margin: float = 0.0

    @staticmethod
    def of(activation: Activation | None) -> FlatEnds | None:
        """Those of an activation.

        >>> FlatEnds.of(Activation(6.0)), FlatEnds.of(Staircase(2.0, levels=4))
        (FlatEnds(low=0.0, high=6.0, margin=0.0), FlatEnds(low=0.25, high=1.75, margin=0.0))
        """
        if activation is None:
            return None
        if isinstance(activation, Staircase) and not activation.slope:
            step = activation.upper / activation.levels  # type: ignore[operator]
            return FlatEnds(step * (1 - activation.step_shift), activation.upper - step * activation.step_shift)  # type: ignore[operator]
        return FlatEnds(0.0, activation.upper)

    def __call__(self, z: Tensor, prediction: Tensor, part: Tensor, slack: Tensor) -> Tensor:
        target = z
        if self.low is not None:
            target = torch.where(z < self.low, torch.maximum(prediction, z).clamp(max=self.low), target)
        if self.high is not None:
            target = torch.where(z > self.high, torch.minimum(prediction, z).clamp(min=self.high), target)
        return target


@dataclass(frozen=True)
class FiringEdges:
    """Beyond the currents at which neurons are silent or always fire the target is the prediction, if that lies as far
    beyond them as z does, or by the margin: what is near the edge is not safe.

    low, high: mean currents over t steps, ``[T, C]``, below which neurons are silent and above which they always fire.
    """

    low: Tensor
    high: Tensor
    margin: float

    @staticmethod
    def of(neuron: IntegrateFire, margin: float) -> FiringEdges:
        """Those of neurons with a threshold, an initial potential and biases per channel."""
        t = torch.arange(1, len(neuron.bias) + 1, device=neuron.bias.device).unsqueeze(1)
        charge = neuron.initial + neuron.bias.cumsum(0)
        return FiringEdges((neuron.threshold - charge) / t, (t * neuron.threshold - charge) / t, margin)

    def __call__(self, z: Tensor, prediction: Tensor, part: Tensor, slack: Tensor) -> Tensor:
        low, high = (edge.view(-1, *z.shape[1:])[part] for edge in (self.low, self.high))
        above = torch.maximum(prediction, torch.minimum(z, high + slack))
        below = torch.minimum(prediction, torch.maximum(z, low - slack))
        return torch.where(z > high, above, torch.where(z < low, below, z))
