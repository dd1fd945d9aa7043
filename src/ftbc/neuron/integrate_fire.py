"""The neurons of one layer: thresholds, initial potential, temporal bias and membrane, all of them buffers."""

from __future__ import annotations

import torch
from torch import Tensor

from ftbc.errors import InputError
from ftbc.graph.spec import register
from ftbc.neuron import fused
from ftbc.neuron.functional import integrate_and_fire, mean_over, spike_counts
from ftbc.neuron.temporal import Temporal


@register("steps", "rank")
class IntegrateFire(Temporal):
    """Integrate-and-fire neurons with soft reset and a temporal bias.

    threshold, initial: ``[1]`` (one for the layer), ``[C]`` (per channel) or ``[C, H, W]`` (per neuron);
    bias: ``[T, 1]``, ``[T, C]`` or ``[T, C, H, W]``; rank: the number of dimensions of one item.

    >>> neuron = IntegrateFire(steps=2, rank=1).set(threshold=torch.ones(1), initial=torch.zeros(1))
    >>> current = torch.tensor([[0.6]])
    >>> neuron(current), neuron(current)
    (tensor([[0.]]), tensor([[1.]]))
    """

    threshold: Tensor
    initial: Tensor
    bias: Tensor
    v: Tensor | None

    def __init__(self, steps: int, rank: int) -> None:
        super().__init__()
        self.steps = steps
        self.rank = rank
        for name in ("threshold", "initial", "bias"):
            self.register_buffer(name, torch.empty(0))
        self.register_buffer("v", None, persistent=False)
        self.t = 0

    def set(self, threshold: Tensor, initial: Tensor, bias: Tensor | None = None) -> IntegrateFire:
        """Give the neurons their constants; without ``bias`` it is zero, one row per step and channel."""
        self.threshold = threshold.clone()
        self.initial = initial.expand_as(threshold).clone()
        self.bias = threshold.new_zeros((self.steps, *threshold.shape)) if bias is None else bias.clone()
        return self

    def spread(self, constant: Tensor) -> Tensor:
        """A constant per layer, channel or neuron, shaped to broadcast over one item."""
        return constant if constant.ndim == self.rank else constant.view(-1, *[1] * (self.rank - 1))

    def reset(self) -> None:
        self.v = None
        self.t = 0

    def select(self, images: Tensor) -> None:
        self.v = None if self.v is None else self.v[images]

    def mean_output(self, x: Tensor) -> Tensor:
        """The mean of the spikes that this step's current would bring, shaped as a row of the bias; nothing changes."""
        b, theta = self.bias[self.t], self.threshold
        v = self.membrane(x)
        if theta.ndim > 1 or b.ndim > 1:
            fired = v + x + self.spread(b) >= self.spread(theta)
            return mean_over(self.spread(theta) * fired, b)
        if fused.usable(x.unsqueeze(0), theta, b.unsqueeze(0)):
            counts = fused.spike_counts(x, theta, v, b)
        else:
            counts = spike_counts(x, self.spread(theta), v, self.spread(b))
        means = theta * (counts.double() / (x.numel() // len(counts))).to(x.dtype)
        return means.mean().reshape(1) if b.numel() == 1 else means

    def membrane(self, x: Tensor) -> Tensor:
        """The membrane before this step, for currents of this shape."""
        return self.spread(self.initial).expand_as(x) if self.v is None else self.v

    def forward(self, x: Tensor) -> Tensor:
        return self.run(x.unsqueeze(0))[0]

    def run(self, x: Tensor) -> Tensor:
        self._require(len(x))
        v = self.membrane(x[0])
        rows = self.bias[self.t : self.t + len(x)]
        if fused.usable(x, self.threshold, rows):
            s, self.v = fused.integrate_and_fire(x, self.threshold, v, rows)
        else:
            b = torch.stack([self.spread(row) for row in rows]).unsqueeze(1)
            s, self.v = integrate_and_fire(x, self.spread(self.threshold), v, b)
        self.t += len(x)
        return s

    def _require(self, steps: int) -> None:
        if self.t + steps > self.steps:
            raise InputError(
                f"step {self.t + steps} of a network converted for {self.steps} steps: call reset() before the next "
                "input, or convert with more steps"
            )

    def extra_repr(self) -> str:
        return f"steps={self.steps}, thresholds={tuple(self.threshold.shape)}"
