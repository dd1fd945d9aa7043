"""Parallel conversion: a neuron sees the currents of all T steps, and then fires as often as they ask for.

    n = clamp( floor( (v[0] + sum_t x[t] + b[t]) / theta ), 0, T ) ,     s[k] = size * [k <= n] ,   k = 1 .. T

Nothing depends on the order in which currents came: there is no unevenness error. With v[0] = theta / 2 and size =
theta the mean of s is the staircase of QCFS with L = T levels, of the mean current; a QCFS network with T = L is
reproduced exactly. Spikes are binary, but on a chip each layer must wait for all T steps of the layer before it. Since
all spikes come first, what is read at t < T is too large for small activations: only the last step is the answer.
``size`` is theta unless `calibrate.DistributionAware` has corrected it.
Reference: Hao et al., ICML 2025 (parallel spiking calculation), in the order of steps of its released code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from ftbc.errors import InputError
from ftbc.graph.spec import register
from ftbc.neuron.kind import Kind
from ftbc.neuron.spiking import Spiking, room_for


@dataclass(frozen=True)
class Parallel(Kind):
    """All steps of a layer at once; binary spikes."""

    steppable: ClassVar[bool] = False

    def __call__(self, steps: int, rank: int) -> Spiking:
        """Neurons to be given thresholds."""
        return ParallelFire(steps, rank)


@register("steps", "rank")
class ParallelFire(Spiking):
    """The neurons of one layer. size: the value of a spike, shaped as the threshold.

    >>> neuron = ParallelFire(steps=4, rank=1).set(torch.ones(1), torch.full((1,), 0.5))
    >>> neuron.run(torch.tensor([-1.0, 0.0, 0.0, 3.2]).view(4, 1, 1)).flatten().tolist()
    [1.0, 1.0, 0.0, 0.0]
    """

    STATE = ()
    size: Tensor

    def __init__(self, steps: int, rank: int) -> None:
        super().__init__(steps, rank)
        self.register_buffer("size", torch.empty(0))

    @property
    def together(self) -> int:
        return self.steps

    @property
    def largest(self) -> Tensor:
        return self.size

    def set(self, threshold: Tensor, initial: Tensor, bias: Tensor | None = None) -> Self:
        self.size = threshold.clone()
        return super().set(threshold, initial, bias)

    def is_unit(self) -> bool:
        return super().is_unit() and bool((self.size == 1).all())

    def to_unit(self) -> tuple[Tensor, Tensor]:
        size = self.spread(self.size).unsqueeze(0)
        self.size = torch.ones_like(self.size)
        return super().to_unit()[0], size

    def select(self, images: Tensor) -> None:
        """There is nothing to select: no state outlasts a run."""

    def run(self, x: Tensor) -> Tensor:
        if self.t:
            raise InputError("neurons that see all steps at once got them in parts: choose the engine 'layerwise'")
        counts = self.counts(x.sum(0), len(x))
        self.t = len(x)
        return self._train(counts, room_for(x))

    def counts(self, total: Tensor, steps: int) -> Tensor:
        """How many spikes are sent in ``steps`` steps, ``[N, ...]``, for the sum of their currents."""
        self._require(steps)
        start = self.spread(self.initial) + self.spread(self.bias[:steps].sum(0))
        return (total + start).div_(self.spread(self.threshold)).floor_().clamp_(0, steps)

    def mean_sent(self, z: Tensor, steps: int | None = None) -> Tensor:
        """What is sent on average over ``steps`` steps, by default all, ``[N, ...]``, for a mean current."""
        steps = self.steps if steps is None else steps
        return self.counts(z * steps, steps).mul_(self.spread(self.size) / steps)

    def sent(self, z: Tensor, steps: int) -> Tensor:
        """What is sent at each of ``steps`` steps, ``[T, N, ...]``, for a mean current; no state is touched."""
        return self._train(self.counts(z * steps, steps), room_for(z.expand(steps, *z.shape)))

    def _train(self, counts: Tensor, spikes: Tensor) -> Tensor:
        """Write so many spikes into the first steps of ``[T, N, ...]``."""
        size = self.spread(self.size)
        for k, spike in enumerate(spikes, 1):
            torch.mul(counts >= k, size, out=spike)
        return spikes
