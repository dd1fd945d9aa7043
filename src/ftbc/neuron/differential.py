"""Differential coding: a spike tells how the value departs from the mean of all values before.

Spikes travel as changes d[t]; who receives them keeps the running mean r[t] and so reads the values y[t]:

    y[t] = r[t-1] + d[t] ,      r[t] = r[t-1] + d[t] / t = mean of y[1] .. y[t]                              (1)

because t r[t] = (t-1) r[t-1] + y[t]. Everything between two neurons is linear, so that it does not matter on which
side of the weights (1) is done. Here the neuron itself gives y[t]: engines, pools and readout need not know of it, and
`measure/events.py` counts the changes, which are what costs. A neuron that has nothing new to say sends nothing.

    u[t] = v[t-1] + x[t] + b[t] - r[t-1]
    d[t] = sign(u) theta / 2^k  with the smallest k < levels for which |u| >= 3/4 theta / 2^k
           and, if negative, (t-1) r[t-1] + r[t-1] >= theta / 2^k:  the sum of all y stays >= 0, as that of a ReLU's
    v[t] = u[t] - d[t]

3/4 is the middle between two sizes. The first mean, r[0], is zero, and so y[1] = d[1]; later values may grow beyond
theta.
Reference: Huang et al., ICML 2025 (DCGS), the multi-threshold neuron of its released code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ftbc.errors import RecipeError
from ftbc.graph.spec import register
from ftbc.neuron.kind import Kind, Spikes
from ftbc.neuron.spiking import Sends, Spiking

_MOST_LEVELS = 16
"""Half as much at each level: after so many, single precision has few digits left."""
SLACK = 1 - 1e-5
"""What may be taken back is often just what was sent: rounding must not decide."""


@dataclass(frozen=True)
class Differential(Kind):
    """Signed changes of ``levels`` sizes, theta and its halves."""

    levels: int = 4

    spikes: ClassVar[Spikes] = "multi-level"
    timeless: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.levels <= _MOST_LEVELS:
            raise RecipeError(f"Differential(levels={self.levels}): give a number from 1 to {_MOST_LEVELS}")

    @property
    def bounded(self) -> bool:
        return False

    def __call__(self, steps: int, rank: int) -> Spiking:
        """Neurons to be given thresholds."""
        return DifferentialFire(steps, rank, self.levels)


@register("steps", "rank", "levels")
class DifferentialFire(Spiking):
    """The neurons of one layer; the sum of their outputs is part of the state.

    >>> neuron = DifferentialFire(steps=3, rank=1, levels=2).set(torch.ones(1), torch.zeros(1))
    >>> neuron.run(torch.full((3, 1, 1), 0.5)).flatten().tolist()  # one spike of 1/2, then none
    [0.5, 0.5, 0.5]
    """

    STATE = ("v", "total")
    LOOP = "differential"
    sends: ClassVar[Sends] = "changes"
    total: Tensor | None

    def __init__(self, steps: int, rank: int, levels: int) -> None:
        super().__init__(steps, rank)
        self.levels = Differential(levels).levels

    @property
    def largest(self) -> None:
        return None

    def _settings(self) -> tuple[float, ...]:
        return self.levels, SLACK, self.t

    def _fire(self, v: Tensor, theta: Tensor, output: Tensor) -> None:
        total = self.total
        assert total is not None
        mean = total / max(self.t, 1)
        v -= mean
        change = nearest_level(v, total + mean, theta, self.levels)
        v -= change
        torch.add(mean, change, out=output)
        total += output


def nearest_level(u: Tensor, total: Tensor, theta: Tensor, levels: int) -> Tensor:
    """The change d for what is to be told, u; total: what may at most be taken back."""
    largest = torch.minimum(u.abs() / 0.75, torch.where(u > 0, torch.inf, total / SLACK))
    size = torch.zeros_like(u)
    for k in reversed(range(levels)):
        level = theta / 2**k
        size = torch.where(largest >= level, level, size)
    return size.copysign_(u)
