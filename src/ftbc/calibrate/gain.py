"""The worth of a spike: the slope with which a layer's spike counts stand for its activations.

A neuron resets by theta when it fires; what its spike is worth to others need not be that. With n the number of spikes
in T steps and a the activation, least squares says

    a  ~  g n / T + offset ,     g = T Cov(n, a) / Var n

and g in the place of theta makes the mean spikes follow the activations with the least error up to an offset, which a
refit behind absorbs in its bias (without such a refit a gain does harm). The factor g / theta goes into the weights
that read the spikes; an identity shortcut gets a factor per channel, a synapse of its own. A channel that is silent,
or whose spikes do not rise with its activation, keeps theta, and so do neurons that no weights read.

With many steps theta is nearly what a spike is worth, and the gain brings no more than the noise of its own estimate
(``most_steps``). In a network that is read at any step from f on (``first``) a spike has one worth for all of them,
that of all their counts together, each with an offset of its own:

    g = sum_{t>=f} (f/t)^(5/4) Cov(n_t / t, a) / sum_{t>=f} (f/t)^(5/4) Var(n_t / t)
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ftbc.calibrate.walk import Layer, LayerCalibrator
from ftbc.errors import RecipeError
from ftbc.neuron.functional import integrate_and_fire


@dataclass(frozen=True)
class Gain(LayerCalibrator):
    """What a spike is worth, by least squares.

    rows: from about how many currents of a channel (as `QuantileBias`); most_steps: a network of more steps keeps
    theta, 0 for no such bound; first: the first step f at which the network is to be read, 0 for the last alone.
    """

    rows: int = 65536
    most_steps: int = 0
    first: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first < 0:
            raise RecipeError(f"{self}: first must not be negative")

    def at(self, layer: Layer) -> None:
        """Set the amplitude of one layer's spikes."""
        neuron = layer.neuron
        if neuron is None or not layer.read_by_synapses:
            return
        sample = layer.sample(self.rows)
        theta, v0 = neuron.threshold.unsqueeze(1), neuron.initial.unsqueeze(1).expand_as(sample.a)
        spikes, _ = integrate_and_fire(sample.x, theta, v0, neuron.bias.unsqueeze(2))
        layer.amplitude = gain((spikes != 0).to(sample.a), sample.a, neuron.threshold, self.first)


def gain(spikes: Tensor, a: Tensor, theta: Tensor, first: int = 0) -> Tensor:
    """g ``[C]`` from spikes ``[T, C, P]``, each 0 or 1, and activations a ``[C, P]``; first: see above.

    >>> spikes = torch.tensor([[[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]], [[0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]])
    >>> gain(spikes, torch.tensor([[1.0, 2.5, 4.0], [0.0, 1.0, 2.0]]), torch.tensor([2.0, 2.0]))
    tensor([3., 2.])
    """
    steps = len(spikes)
    first = min(first or steps, steps)
    covariance, variance = torch.zeros_like(theta), torch.zeros_like(theta)
    count = spikes[: first - 1].sum(0)
    for t in range(first, steps + 1):
        count = count + spikes[t - 1]
        rate = count / t
        deviation = rate - rate.mean(1, keepdim=True)
        weight = (first / t) ** 1.25
        covariance += weight * (deviation * a).mean(1)
        variance += weight * deviation.pow(2).mean(1)
    slope = covariance / variance.clamp(min=1e-12)
    return torch.where((slope > 0) & (variance > 1e-9), slope, theta)
