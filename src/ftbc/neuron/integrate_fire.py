"""The neurons of one layer: integrate-and-fire with soft reset, the kind that all others are measured by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ftbc.graph.spec import register
from ftbc.neuron import fused
from ftbc.neuron.functional import integrate_and_fire, mean_over, spike_counts
from ftbc.neuron.kind import Kind
from ftbc.neuron.one_pass import OnePass
from ftbc.neuron.spiking import Spiking, room_for
from ftbc.processes import ALONE, Team


@dataclass(frozen=True)
class Plain(Kind):
    """Integrate-and-fire with soft reset: binary spikes."""

    timeless: ClassVar[bool] = True

    def __call__(self, steps: int, rank: int) -> Spiking:
        """Neurons to be given thresholds."""
        return IntegrateFire(steps, rank)


@register("steps", "rank")
class IntegrateFire(Spiking):
    """Integrate-and-fire neurons with soft reset and a temporal bias.

    >>> neuron = IntegrateFire(steps=2, rank=1).set(threshold=torch.ones(1), initial=torch.zeros(1))
    >>> current = torch.tensor([[0.6]])
    >>> neuron(current), neuron(current)
    (tensor([[0.]]), tensor([[1.]]))
    """

    def mean_output(self, x: Tensor, team: Team = ALONE) -> Tensor:
        """As that of all kinds; where a channel has one threshold it is a count, which any order of images gives."""
        b, theta = self.bias[self.t], self.threshold
        v = self.membrane(x)
        if theta.ndim > 1 or b.ndim > 1:
            fired = v + x + self.spread(b) >= self.spread(theta)
            return mean_over(self.spread(theta) * fired, b, team)
        if fused.usable(x.unsqueeze(0), theta, b.unsqueeze(0)):
            counts = fused.spike_counts(x, theta, v, b)
        else:
            counts = spike_counts(x, self.spread(theta), v, self.spread(b))
        return self.mean_of_counts(counts, x.numel() // len(counts), team)

    def run(self, x: Tensor) -> Tensor:
        return self._run(x)

    def consume(self, x: Tensor) -> Tensor:
        return self._run(x, overwrite=True)

    def _run(self, x: Tensor, overwrite: bool = False) -> Tensor:
        self._require(len(x))
        steps = len(x)
        rows = self.bias if steps == self.steps else self.bias[self.t : self.t + steps]
        spikes, self.v = over_time(self, x, self.v, rows, overwrite)
        self.t += steps
        return spikes


def over_time(
    neurons: Spiking, x: Tensor, v: Tensor | None, rows: Tensor, overwrite: bool = False
) -> tuple[Tensor, Tensor]:
    """Plain steps of neurons of any kind: spikes ``[T, N, ...]`` and the membrane ``[N, ...]`` that is left.

    x: currents ``[T, N, ...]``; v: the membrane before, None at rest; rows: the biases of these steps; overwrite:
    whether the spikes may take the place of the currents, and the new membrane that of the old one.
    """
    fast = fused.usable(x, neurons.threshold, rows)
    if v is None:
        alike = fast and neurons.initial.ndim == 1
        v = neurons.initial if alike else torch.empty_like(x[0]).copy_(neurons.spread(neurons.initial))
    if fast:
        return fused.integrate_and_fire(x, neurons.threshold, v, rows, overwrite)
    theta, b = neurons.spread(neurons.threshold), torch.stack([neurons.spread(row) for row in rows])
    if len(x) and OnePass.usable(x[0], theta, b):
        return _constants_per_neuron(x, theta, v, b)
    return integrate_and_fire(x, theta, v, b.unsqueeze(1))


def _constants_per_neuron(x: Tensor, theta: Tensor, v: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    spikes = room_for(x)
    left = torch.empty_like(spikes[0]).copy_(v)
    step = OnePass("plain", x[0], theta, [left])
    for current, bias, sent in zip(x, b, spikes, strict=True):
        step(current, bias, sent)
    return spikes, left
