"""How what neurons send is written in bits: planes of spikes, each of which counts a number of its own.

A plain neuron sends nothing or 1, a bit. A signed one also sends -1: a plane of bits for spikes that count 1, and one
for those that count -1. A burst of n spikes is n in binary digits, planes that count 1, 2, 4 ...; a change of one of
several sizes has a plane for each size and sign. Synapses are linear, so that each plane acts like a source of plain
spikes whose weights are multiplied by what it counts.

*Changes* (`neuron/differential.py`). With d[t] what is sent and r[t] the mean of the values y[1] .. y[t] that it stands
for,

    y[t] = r[t-1] + d[t] ,     r[t] = r[t-1] + d[t] / t

holds on either side of the weights. So events carry d[t], which is mostly zero, and whoever receives them keeps r.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Coding:
    """worths: what a spike of each plane counts; changes: whether they tell changes, not values.

    >>> SIGNED.worths, bursts(5).worths, changes(2).worths
    ((1.0, -1.0), (1.0, 2.0, 4.0), (1.0, 0.5, -1.0, -0.5))
    """

    worths: tuple[float, ...] = (1.0,)
    changes: bool = False

    @property
    def planes(self) -> int:
        """How many bits a neuron has at each step."""
        return len(self.worths)

    def value(self, planes: Tensor) -> Tensor:
        """What bits ``[planes, ...]`` count together."""
        if self == PLAIN:
            return planes[0]
        return torch.tensordot(planes.new_tensor(self.worths), planes, 1)

    def over_time(self, sent: Tensor) -> Tensor:
        """The values ``[T, ...]`` that stand behind what was sent at each step."""
        if not self.changes:
            return sent
        values, mean = torch.empty_like(sent), torch.zeros_like(sent[0])
        for t, change in enumerate(sent):
            values[t] = mean + change
            mean = mean + change / (t + 1)
        return values


PLAIN = Coding()
SIGNED = Coding((1.0, -1.0))


def bursts(most: int) -> Coding:
    """Up to ``most`` spikes at a step."""
    return Coding(tuple(float(2**digit) for digit in range(most.bit_length())))


def changes(levels: int) -> Coding:
    """Changes of so many sizes, each half of the one before, of either sign."""
    sizes = tuple(0.5**k for k in range(levels))
    return Coding((*sizes, *(-size for size in sizes)), changes=True)
