"""Max-pooling of spike trains that is exact for every number of steps."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ftbc.graph.spec import describe, rebuild, register
from ftbc.neuron.temporal import Temporal


@register("pool")
class SpikingMaxPool(Temporal):
    """Send how much the maximum of the accumulated inputs has grown: ``y[t] = max(c[t]) - max(c[t-1])``.

    With c[t] the sum of the inputs so far, the outputs up to t sum to max(c[t]): the average output is the
    maximum of the average inputs at each t. Where the inputs of a window are spikes of one size, the maximum of
    their counts grows by at most one, so the output is again a train of single spikes of that size.
    Reference: lateral inhibition pooling, Li and Zeng, IJCAI 2022.
    """

    def __init__(self, pool: nn.Module | dict) -> None:
        super().__init__()
        self._pool = rebuild(pool, {}) if isinstance(pool, dict) else pool
        self.register_buffer("total", None, persistent=False)
        self.register_buffer("sent", None, persistent=False)

    @property
    def pool(self) -> dict:
        """The pooling window as data, for saving."""
        return describe(self._pool)

    def reset(self) -> None:
        self.total = self.sent = None

    def select(self, images: Tensor) -> None:
        if self.total is not None and self.sent is not None:
            self.total, self.sent = self.total[images], self.sent[images]

    def forward(self, x: Tensor) -> Tensor:
        return self.run(x.unsqueeze(0))[0]

    def run(self, x: Tensor) -> Tensor:
        # One addition after another, not cumsum: the sums must round as they do step by step.
        totals = [x[0] if self.total is None else self.total + x[0]]
        for current in x[1:]:
            totals.append(totals[-1] + current)
        largest = self._pool(torch.cat(totals)).unflatten(0, x.shape[:2])
        before = torch.zeros_like(largest[0]) if self.sent is None else self.sent
        self.total, self.sent = totals[-1], largest[-1]
        return largest - torch.cat([before.unsqueeze(0), largest[:-1]])

    def mean_sent(self, z: Tensor) -> Tensor:
        """What is sent on average from rest, ``[N, ...]``, for a mean input: its maximum. No state is touched."""
        return self._pool(z)
