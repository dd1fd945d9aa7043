"""Calibration of offset spikes (COS): neurons that sent one spike too many or too few begin lower or higher.

A layer runs over the first E steps of its currents. What is left of the membrane tells the offset: v[E] < 0 is a spike
too many, v[E] >= theta one too few. So v[0] is moved just so far that the count changes by one:

    v[0] <- v[0] - max(theta, min{u[t] : fired at t} - theta + eps)         if v[E] < 0 and it fired
    v[0] <- v[0] + max(theta, theta + eps - max{v[t] : silent at t})        if v[E] >= theta

with u[t] the membrane before its reset, v[t] after it, and eps a thousandth of theta. The layer then begins anew with
the same currents; the next layer pre-runs over what it sends now. In the j-th of several ``rounds`` only neurons move
whose first run was off by more than j - 1 spikes. If no step was silent, v[0] rises by theta; the released code, by a
thousand of them.

How a network of E + T steps does this: a layer is given the currents c[1] .. c[E], c[1] .. c[T], and sends its
corrected spikes for 1 .. E and again for 1 .. T. It needs the first E currents at once, so that the network cannot go
step by step, and on a chip each layer waits E steps for the one before it.
Reference: Hao, Ding, Bu, Huang, Yu, ICLR 2023 (COS).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ftbc.errors import InputError, RecipeError
from ftbc.graph.spec import register
from ftbc.neuron.integrate_fire import IntegrateFire, over_time
from ftbc.neuron.kind import Kind
from ftbc.neuron.restart import Restarting, joined, require_extra, split
from ftbc.neuron.spiking import Spiking

_EPS = 1e-3


@dataclass(frozen=True)
class Offset(Kind):
    """``extra`` steps first, replayed in each of ``rounds``; without any, plain neurons. Calibrated as plain ones."""

    extra: int = 4
    rounds: int = 1

    steppable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_extra("Offset", self.extra)
        if not 1 <= self.rounds <= max(1, self.extra):  # no neuron is off by more spikes than there were steps
            raise RecipeError(f"Offset(rounds={self.rounds}): give a number from 1 to extra={self.extra}")

    @property
    def extra_steps(self) -> int:
        return self.extra

    def __call__(self, steps: int, rank: int) -> Spiking:
        """Neurons to be given thresholds."""
        return IntegrateFire(steps, rank)

    def settled(self, neurons: Spiking, steps: int) -> Spiking:
        if not self.extra:
            return neurons
        return OffsetFire(self.extra + steps, neurons.rank, self.extra, self.rounds).take(neurons)


@register("steps", "rank", "extra", "rounds")
class OffsetFire(Restarting):
    """The neurons of one layer; where they begin is part of the state.

    >>> neuron = OffsetFire(steps=6, rank=1, extra=3, rounds=1).set(torch.ones(1), torch.zeros(1))
    >>> neuron.run(torch.tensor([1.2, -1.0, 0.3] * 2).view(6, 1, 1)).flatten().tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """

    def __init__(self, steps: int, rank: int, extra: int, rounds: int) -> None:
        super().__init__(steps, rank, extra)
        self.rounds = Offset(extra, rounds).rounds

    @property
    def together(self) -> int:
        return self.extra

    def run(self, x: Tensor) -> Tensor:
        self._require(len(x))
        if self.t < self.extra and (self.t or len(x) < self.extra):
            raise InputError(
                f"neurons that look at {self.extra} steps before they fire were given {self.t + len(x)}: choose the "
                "engine 'layerwise'"
            )
        parts = []
        first, then = split(x, self.extra - self.t)
        if len(first):
            self.v = self.beginning(first)
            parts.append(over_time(self, first, self.v, self.bias[: self.extra])[0])
        if len(then):
            row = max(0, self.t - self.extra)
            spikes, self.v = over_time(self, then, self.membrane(then[0]), self.bias[row : row + len(then)])
            parts.append(spikes)
        self.t += len(x)
        return joined(parts, x)

    def beginning(self, x: Tensor) -> Tensor:
        """Where each neuron begins, ``[N, ...]``, for the currents ``[E, N, ...]`` of the extra steps."""
        theta = self.spread(self.threshold)
        start = self.spread(self.initial).expand_as(x[0])
        left = count = None
        for done in range(self.rounds):
            lowest, highest, v, fired = self._extremes(x, start, theta)
            left, count = (v, fired) if left is None or count is None else (left, count)
            too_many = (left < -done * theta) & (count > done)
            too_few = left >= (done + 1) * theta
            # Where nothing fired in this round there is no spike to lose; where all steps fired, none to gain.
            down = torch.maximum(lowest - theta + _EPS * theta, theta)
            up = torch.where(highest.isfinite(), torch.maximum(theta + _EPS * theta - highest, theta), theta)
            start = torch.where(too_many & lowest.isfinite(), start - down, start)
            start = torch.where(too_few, start + up, start)
        return start

    def _extremes(self, x: Tensor, start: Tensor, theta: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The lowest membrane that fired, the highest that did not, what is left at the end, how many spikes."""
        lowest, highest = torch.full_like(start, torch.inf), torch.full_like(start, -torch.inf)
        v, count = start.clone(), torch.zeros_like(start)
        for current, row in zip(x, self.bias, strict=False):
            v += current
            v += self.spread(row)
            fired = v >= theta
            lowest = torch.where(fired, torch.minimum(lowest, v), lowest)
            highest = torch.where(fired, highest, torch.maximum(highest, v))
            v = v - theta * fired
            count += fired
        return lowest, highest, v, count
