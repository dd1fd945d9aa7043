"""Burst spikes: a neuron that is charged several times over sends several spikes in one step.

    s[t] = theta * clamp( floor(v[t] / theta), 0, most ) ,     v[t] <- v[t] - s[t]

What a plain neuron must keep for later steps, one spike a step, leaves at once; ``most = 1`` is the plain neuron. Each
spike of a burst is counted as one.
Reference: Li and Zeng, IJCAI 2022 (burst spikes), whose ``most`` is 2 to 5. Their max-pool by lateral inhibition is
`neuron/max_pool.py`.
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

_MOST = 1000


@dataclass(frozen=True)
class Burst(Kind):
    """Up to ``most`` spikes a step."""

    most: int = 5

    spikes: ClassVar[Spikes] = "multi-level"
    timeless: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.most <= _MOST:
            raise RecipeError(f"Burst(most={self.most}): give a number of spikes from 1 to {_MOST}")

    @property
    def bounded(self) -> bool:
        return self.most == 1

    def __call__(self, steps: int, rank: int) -> Spiking:
        """Neurons to be given thresholds."""
        return BurstFire(steps, rank, self.most)


@register("steps", "rank", "most")
class BurstFire(Spiking):
    """The neurons of one layer.

    >>> neuron = BurstFire(steps=2, rank=1, most=2).set(torch.ones(1), torch.zeros(1))
    >>> neuron.run(torch.tensor([3.5, 0.0]).view(2, 1, 1)).flatten().tolist()
    [2.0, 1.0]
    """

    LOOP = "burst"
    sends: ClassVar[Sends] = "bursts"

    def __init__(self, steps: int, rank: int, most: int) -> None:
        super().__init__(steps, rank)
        self.most = Burst(most).most

    @property
    def largest(self) -> Tensor:
        return self.most * self.threshold

    def _settings(self) -> tuple[float, ...]:
        return (self.most,)

    def _fire(self, v: Tensor, theta: Tensor, output: Tensor) -> None:
        torch.mul((v / theta).floor_().clamp_(0, self.most), theta, out=output)
        v -= output
