"""Refit of the weights for the neurons as they are: what a neuron cannot tell apart does not matter.

In few steps a neuron says little about its current. With a mean current z over t steps it stays silent below ``low``
and fires at every step above ``high``,

    low_t  = (theta - v0 - b[0] - ... - b[t-1]) / t ,      high_t = (t theta - v0 - b[0] - ... - b[t-1]) / t

(exactly so for constant currents and biases). Beyond these edges every prediction on the same side is as good, but one
near the edge is not safe. So the regression of `refit.py` gets the targets (`relaxation.FiringEdges`)

    y = max( prediction, min(z, high_t + m) )    where z > high_t
    y = min( prediction, max(z, low_t - m) )     where z < low_t ,      y = z  between them
    m = margin times the root mean square of what a plain fit leaves of z

and they are found anew from its predictions, some rounds. At T = 1, where both edges are one, this is a support vector
machine with squared loss: weights that best tell on which side of the neuron's threshold the ANN's value lies. It comes
behind a search of theta and b[t], which set the edges.

*How many rounds* (``choose``). The fit learns its images by heart, at once where rows are few for the weights. So each
channel takes the round, or the weights that it has, with which its spikes tell most of its activation on the other half
of the images (`rounds.py`), spikes being those of a constant current z:

    n = sum_{k=1..T} [ z >= (k theta - v0 - b[0] - ... - b[T-1]) / T ]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ftbc.calibrate.refit import refit, whole_and_partial
from ftbc.calibrate.relaxation import FiringEdges
from ftbc.calibrate.rounds import Rounds, telling
from ftbc.calibrate.walk import Layer, LayerCalibrator
from ftbc.errors import RecipeError
from ftbc.neuron.integrate_fire import IntegrateFire


@dataclass(frozen=True)
class Sharpen(LayerCalibrator):
    """Ridge regression of each layer's weights to targets that know the neurons behind.

    margin, choose: see above; rounds: how often targets are found anew, at most if they are chosen; ridge, partial,
    rows: as in `Refit`; most_steps: a network of more steps is left as it is, 0 for no such bound.
    """

    margin: float = 1.0
    rounds: int = 4
    ridge: float = 0.0
    partial: float = 0.5
    rows: int = 65536
    most_steps: int = 0
    choose: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.margin, self.rounds, self.ridge, self.partial) < 0:
            raise RecipeError(f"{self}: margin, rounds, ridge and partial must not be negative")

    def at(self, layer: Layer) -> None:
        """Refit the synapses of one layer, if neurons alone read what they add up to, channel by channel."""
        if layer.neuron is None or not layer.junction.alone or layer.junction.dim:
            return
        means, edges = whole_and_partial(layer, self.partial), FiringEdges.of(layer.neuron, self.margin)
        pick = telling(_counts(layer.neuron), layer.activation, layer.steps - 1) if self.choose else Rounds.last
        refit(layer, means, self.rows, self.ridge, edges, self.rounds, pick)


def _counts(neuron: IntegrateFire) -> Callable[[Tensor], Tensor]:
    """The spikes in T steps of constant currents z ``[R, G, M]``."""
    T = len(neuron.bias)
    charge = neuron.initial + neuron.bias.sum(0)

    def counts(z: Tensor) -> Tensor:
        n = torch.zeros_like(z)
        for k in range(1, T + 1):
            n += z >= ((k * neuron.threshold - charge) / T).view(z.shape[1:])
        return n

    return counts
