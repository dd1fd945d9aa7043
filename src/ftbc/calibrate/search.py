"""Search of theta and b[t] for spikes that tell most of the activation, by correlation.

Layers behind a neuron are linear, and they are refitted: whatever affine map of its spike count stands for its
activation best, they can apply. So a neuron is as good as its count n_t after t steps explains the activation a:

    e(n) = Var a - Cov(n, a)^2 / Var n          (what no affine map of n explains; n that falls with a explains nothing)
    J = e(n_T) + early/(T-1) sum_{t<T} e(n_t)

The second term keeps early spikes useful for layers that act before all steps are over. A network that is to be read at
any step from f on (``first``) needs counts that are good at each of them, the more so the fewer they are:

    J = sum_{t>=f} (f/t)^3 e(n_t)  +  early sum_{t<f} e(n_t)

The mean of the spikes need not match: a refit behind absorbs it in its bias, and what changes with t is absorbed by the
b[t] of the neurons behind. So neurons that no weights read - those of a network that ends in a ReLU, or in the mean of
one - are not searched for, and keep the biases that they have; nor are, in a network that is read at any step, the last
neurons, behind which there is one bias for all t.

J is minimised for each channel by coordinate descent, on a sample of currents: for steps h that halve, b[t] +- h theta;
b[t] +- h theta with b[t+1] -+ h theta (a spike a step earlier or later); theta (1 +- 0.6 h) with b as it is and with b
scaled alike; all b +- h theta / 2. A move is kept where J falls, so that J never rises.

With many steps counts tell nearly all of the activation as they are: there J still falls, and the network is no better
for it, or worse (``most_steps``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ftbc.calibrate import descent
from ftbc.calibrate.walk import Layer, LayerCalibrator
from ftbc.errors import RecipeError

STEPS = (1.0, 0.5, 0.25, 0.12, 0.06)


@dataclass(frozen=True)
class CorrelationSearch(LayerCalibrator):
    """Thresholds and temporal biases that make spike counts explain activations.

    early: weight of the counts before the last step; first: the first step f at which the network is to be read, 0 for
    the last alone; rows: from about how many currents of a channel (as `QuantileBias`); most_steps: a network of more
    steps keeps what it has, 0 for no such bound.
    """

    early: float = 0.5
    first: int = 0
    rows: int = 65536
    most_steps: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.early, self.first) < 0:
            raise RecipeError(f"{self}: early and first must not be negative")

    def at(self, layer: Layer) -> None:
        """Search for the neurons of one layer."""
        neuron = layer.neuron
        if neuron is None or not (layer.read_by_neurons if self.first else layer.read_by_synapses):
            return
        sample = layer.sample(self.rows)
        theta, bias = neuron.threshold, neuron.bias.clone()
        bias[0] += neuron.initial
        descend = descent.compiled if descent.usable(sample.x) else descend_plainly
        # Channels have nothing to do with each other: each process searches for its own.
        team = layer.calibration.team
        own = team.own(len(theta))
        x, a = sample.x[:, own].contiguous(), sample.a[own].contiguous()
        theta, bias = descend(x, a, theta[own], bias[:, own], self.weights(layer.steps))
        theta, bias = team.rows(theta), team.rows(bias.t().contiguous()).t().contiguous()
        bias[0] -= neuron.initial
        neuron.threshold, neuron.bias = theta, bias

    def weights(self, steps: int) -> Tensor:
        """How much the counts after each step matter, ``[T]``."""
        if not self.first:
            return torch.tensor([self.early / max(steps - 1, 1)] * (steps - 1) + [1.0], dtype=torch.float64)
        t, first = torch.arange(1, steps + 1, dtype=torch.float64), min(self.first, steps)
        return torch.where(t < first, self.early, (first / t) ** 3)


def descend_plainly(x: Tensor, a: Tensor, theta: Tensor, b: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Coordinate descent of J: theta ``[C]`` and b ``[T, C]`` (the initial potential is part of b[0]).

    x: ``[T, C, P]``; a: ``[C, P]``; weights: ``[T]``.
    """

    def j(theta: Tensor, b: Tensor) -> Tensor:
        return weights.to(x) @ unexplained(x, a, theta, b)

    least = j(theta, b)
    for size in STEPS:
        for move in moves(len(x), size):
            new_theta, new_b = move.apply(theta, b)
            found = j(new_theta, new_b)
            better = found < least
            least = torch.where(better, found, least)
            theta, b = torch.where(better, new_theta, theta), torch.where(better, new_b, b)
    return theta, b


@dataclass(frozen=True)
class Move:
    """A change of b by ``shift`` ``[T]`` times theta and of theta by ``stretch``; ``alike``: b is stretched too."""

    shift: tuple[float, ...]
    stretch: float = 1.0
    alike: bool = False

    def apply(self, theta: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """The changed theta ``[C]`` and b ``[T, C]``."""
        moved = b + torch.tensor(self.shift, dtype=b.dtype, device=b.device).unsqueeze(1) * theta
        return theta * self.stretch, moved * self.stretch if self.alike else moved


def moves(steps: int, size: float) -> Iterator[Move]:
    """All moves of one size, in the order in which they are tried."""
    still = (0.0,) * steps

    def at(t: int, *values: float) -> tuple[float, ...]:
        return (*still[:t], *values, *still[t + len(values) :])

    for t in range(steps):
        for sign in (size, -size):
            yield Move(at(t, sign))
        for sign in (size, -size) if t + 1 < steps else ():
            yield Move(at(t, sign, -sign))
    for stretch in (1 + 0.6 * size, 1 - 0.6 * size):
        yield Move(still, stretch)
        yield Move(still, stretch, alike=True)
    for sign in (size / 2, -size / 2):
        yield Move((sign,) * steps)


def unexplained(x: Tensor, a: Tensor, theta: Tensor, b: Tensor) -> Tensor:
    """e(n_t) / Var a, ``[T, C]``; 0 for a channel whose activation does not vary."""
    a = a - a.mean(1, keepdim=True)
    variance = a.pow(2).mean(1)
    threshold, found = theta.unsqueeze(1), []
    v, n = torch.zeros_like(a), torch.zeros_like(a)
    for t in range(len(x)):
        v = v.add_(x[t]).add_(b[t].unsqueeze(1))
        fired = v >= threshold
        v.addcmul_(fired.to(v.dtype), threshold, value=-1)
        n += fired
        covariance = (n * a).mean(1).clamp_(min=0)
        spread = n.pow(2).mean(1) - n.mean(1).pow(2)
        explained = torch.where(spread > 1e-12, covariance.pow(2) / spread.clamp(min=1e-12), 0 * spread)
        found.append(torch.where(variance > 1e-30, 1 - explained / variance.clamp(min=1e-30), 0 * variance))
    return torch.stack(found)
