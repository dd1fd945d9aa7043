"""The answer of the network: weights of the steps, and of the last layer, by least squares.

*Weights of the steps.* After t steps there are t answers y_1 .. y_t, the later ones better than the first: membranes
have settled. The combination with weights r that sum to 1 (so that the bias counts once) and comes nearest to the ANN's
outputs z is

    minimise  mean | z - sum_s r_s y_s |^2 = r^T G r ,   G_us = mean (y_u - z) (y_s - z)
    =>        r = G^-1 1 / (1^T G^-1 1)

the combination of several noisy answers with the least noise. A row r for each t makes the network's read-out matrix
(`simulate/readout.py`). G is known from few images, on which the network was fitted, too: a multiple of the identity
added to it draws the weights to the plain mean (``even``).

*Weights of the last layer.* It is refitted (`refit.py`) to the mean of its inputs with the weights r in the place of
1/T. Weights of the steps and of the layer are found in turn. For a network that is read at any step (``anytime``) it
is fitted to the answers after t < T steps as well, each doubling of t alike, with weight sqrt(t/T), and to all with one
bias: errors fall faster than that, so that the first answers matter most, but with equal weights they alone would.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ftbc.calibrate.base import Calibration
from ftbc.calibrate.refit import Mean, octaves, refit
from ftbc.calibrate.walk import Layer, LayerCalibrator
from ftbc.calibrate.walk.rows import at_positions
from ftbc.errors import RecipeError


@dataclass(frozen=True)
class ReadOut(LayerCalibrator):
    """Read-out weights over time, and a refit of the last layer for them.

    ridge: penalty of the refit, as in `Refit`; rounds: how often the two are found in turn; anytime: whether answers
    before the last step count, too; rows: about how many rows; even: penalty that draws the weights of the steps to
    the plain mean, relative to the mean square error of a step.
    """

    ridge: float = 0.0
    rounds: int = 2
    anytime: bool = False
    rows: int = 131072
    even: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.ridge, self.even) < 0 or self.rounds < 1:
            raise RecipeError(f"{self}: ridge and even must not be negative, rounds at least 1")

    def require(self, calibration: Calibration) -> None:
        """Neurons of any kind that send one step after another."""
        calibration.stepped_neurons("ReadOut")

    def at(self, layer: Layer) -> None:
        """Only at the last layer: set its weights and the network's read-out."""
        if not layer.last:
            return
        T = layer.steps
        weights = read_out_weights(self._products(layer), self.even)
        for _ in range(self.rounds if layer.junction.synapses else 0):

            def means(images: int, rows: Tensor = weights) -> list[Mean]:
                part = torch.full((images,), T - 1)
                found = [Mean(rows[-1].unsqueeze(1).expand(T, images), torch.ones(images), part)]
                if self.anytime and T > 1:
                    length = octaves(T, images, layer.calibration.generator)
                    found.append(Mean(rows[length - 1].t(), (length / T).sqrt(), part))
                return found

            refit(layer, means, self.rows, self.ridge)
            weights = read_out_weights(self._products(layer), self.even)
        layer.calibration.readout = weights.to(layer.calibration.images)

    def _products(self, layer: Layer) -> Tensor:
        """Products of the errors of single steps, summed over images and outputs, ``[T, T]``."""
        output, targets = layer.calibration.snn.output, layer.targets
        ann_output = layer.calibration.ann.output
        products = torch.zeros(layer.steps, layer.steps, dtype=torch.float64)
        for part, start in enumerate(layer.flow.starts()):
            images = len(layer.flow.parts[part])
            positions = targets.positions(ann_output)[start : start + images].repeat(layer.steps, 1)
            value = layer.flow.over_time(output, part).flatten(0, 1)
            y = at_positions(value, targets.dim(ann_output), positions).unflatten(0, (layer.steps, -1))
            error = (y - targets.rows(ann_output, part)).flatten(1)
            products += (error @ error.t()).double().cpu()
        return layer.calibration.team.sum(products)


def read_out_weights(products: Tensor, even: float) -> Tensor:
    """The read-out matrix ``[T, T]`` from the products G ``[T, T]`` of the errors of single steps.

    >>> read_out_weights(torch.diag(torch.tensor([3.0, 1.0])), even=0.0)
    tensor([[1.0000, 0.0000],
            [0.2500, 0.7500]])
    """
    T = len(products)
    rows = products.new_zeros(T, T)
    for t in range(1, T + 1):
        block = products[:t, :t]
        size = block.diagonal().mean()
        penalty = even * size + (size == 0)
        r = torch.linalg.solve(block + penalty * torch.eye(t, dtype=block.dtype), torch.ones(t, dtype=block.dtype))
        rows[t - 1, :t] = r / r.sum()
    return rows
