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
behind a search of theta and b[t], which set the edges. Rounds are few: with many the fit learns the images by heart.
With one or two steps it helps some networks and harms others (docs/beyond-ftbc.md has figures): so ``on_trial``.
"""

from __future__ import annotations

from dataclasses import dataclass

from ftbc.calibrate.refit import refit, whole_and_partial
from ftbc.calibrate.relaxation import FiringEdges
from ftbc.calibrate.walk import Layer, LayerCalibrator
from ftbc.errors import RecipeError


@dataclass(frozen=True)
class Sharpen(LayerCalibrator):
    """Ridge regression of each layer's weights to targets that know the neurons behind.

    margin: see above; rounds: how often targets are found anew; ridge, partial, rows: as in `Refit`; most_steps: a
    network of more steps is left as it is, 0 for no such bound; on_trial: try it first on images that are set aside,
    and leave it out where the network is better off without it (`walk/trial.py`).
    """

    margin: float = 1.0
    rounds: int = 4
    ridge: float = 0.0
    partial: float = 0.5
    rows: int = 65536
    most_steps: int = 0
    on_trial: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.margin, self.rounds, self.ridge, self.partial) < 0:
            raise RecipeError(f"{self}: margin, rounds, ridge and partial must not be negative")

    def at(self, layer: Layer) -> None:
        """Refit the synapses of one layer, if neurons alone read what they add up to, channel by channel."""
        if layer.neuron is None or not layer.junction.alone or layer.junction.dim:
            return
        means = whole_and_partial(layer, self.partial)
        refit(layer, means, self.rows, self.ridge, FiringEdges.of(layer.neuron, self.margin), self.rounds)
