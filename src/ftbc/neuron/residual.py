"""Silence by residual potential (SRP): neurons that owe after a few extra steps are silent in those that count.

Where the ANN's activation is zero and early input was positive, a neuron has spent spikes that it should not have. Its
membrane tells: what is left of v after E steps is negative. So

    run E steps,    awake = [ v[E] > margin * theta ],    begin anew with v = v[0],    s[t] <- s[t] * awake

for each image and neuron. All layers take the extra steps together, so that the network can go step by step, and an
answer after t steps has cost E + t. The proof asks for v[E] <= 0; ``margin``, a thousandth of theta as in the released
code, makes up for rounding.
Reference: Hao, Bu, Ding, Huang, Yu, AAAI 2023 (SRP).
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ftbc.errors import RecipeError
from ftbc.graph.spec import register
from ftbc.neuron.integrate_fire import IntegrateFire, over_time
from ftbc.neuron.kind import Kind
from ftbc.neuron.restart import Restarting, joined, require_extra, split
from ftbc.neuron.spiking import Spiking


@dataclass(frozen=True)
class Residual(Kind):
    """``extra`` steps first; without any, the plain neuron. Calibrated as plain neurons."""

    extra: int = 4
    margin: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        require_extra("Residual", self.extra)
        if not 0 <= self.margin < 1:
            raise RecipeError(f"Residual(margin={self.margin}): give a part of the threshold, from 0 to below 1")

    @property
    def extra_steps(self) -> int:
        return self.extra

    def __call__(self, steps: int, rank: int) -> Spiking:
        """Neurons to be given thresholds."""
        return IntegrateFire(steps, rank)

    def settled(self, neurons: Spiking, steps: int) -> Spiking:
        if not self.extra:
            return neurons
        return ResidualFire(self.extra + steps, neurons.rank, self.extra, self.margin).take(neurons)


@register("steps", "rank", "extra", "margin")
class ResidualFire(Restarting):
    """The neurons of one layer; which of them are awake is part of the state.

    >>> import torch
    >>> neuron = ResidualFire(steps=4, rank=1, extra=2, margin=1e-3).set(torch.ones(1), torch.zeros(1))
    >>> neuron.run(torch.tensor([1.0, -1.0, 1.0, 1.0]).view(4, 1, 1)).flatten().tolist()
    [1.0, 0.0, 0.0, 0.0]
    """

    STATE = ("v", "awake")
    awake: Tensor | None

    def __init__(self, steps: int, rank: int, extra: int, margin: float) -> None:
        super().__init__(steps, rank, extra)
        self.margin = Residual(extra, margin).margin

    def run(self, x: Tensor) -> Tensor:
        self._require(len(x))
        first, then = split(x, self.extra - self.t)
        parts = []
        if len(first):
            parts.append(self._plain(first, self.t))
            if self.t == self.extra:
                assert self.v is not None
                self.awake = self.v > self.margin * self.spread(self.threshold)
                self.v = None
        if len(then):
            assert self.awake is not None
            parts.append(self._plain(then, self.t - self.extra) * self.awake)
        return joined(parts, x)

    def _plain(self, x: Tensor, row: int) -> Tensor:
        spikes, self.v = over_time(self, x, self.membrane(x[0]), self.bias[row : row + len(x)])
        self.t += len(x)
        return spikes
