"""What all kinds of neurons share: thresholds, initial potential, temporal bias and state, all of them buffers."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

import torch
from torch import Tensor

from ftbc.errors import InputError
from ftbc.neuron.functional import mean_over
from ftbc.neuron.one_pass import OnePass
from ftbc.neuron.temporal import Temporal
from ftbc.processes import ALONE, Team

Sends = Literal["spikes", "bursts", "switches", "changes"]
"""What travels through synapses: one spike for a value, one for each threshold in it, one when a value is switched on
or off, or one when it departs from the mean of all values before."""


class Spiking(Temporal):
    """The neurons of one layer, in the place of an activation.

    threshold, initial: ``[1]`` (one for the layer), ``[C]`` (per channel) or ``[C, H, W]`` (per neuron);
    bias: ``[rows, 1]``, ``[rows, C]`` or ``[rows, C, H, W]``, a row for each step; rank: the number of dimensions of
    one item. A kind of neuron names its `STATE`, tensors ``[N, ...]``, of which the membrane ``v`` begins at
    ``initial`` and all others at zero, and says in `_fire` what a charged membrane sends; `LOOP` names the compiled
    form of the same (`one_pass.py`), which takes the numbers of `_settings` besides.
    """

    STATE: ClassVar[tuple[str, ...]] = ("v",)
    LOOP: ClassVar[str | None] = None
    sends: ClassVar[Sends] = "spikes"

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
        for name in self.STATE:
            self.register_buffer(name, None, persistent=False)
        self.t = 0

    @property
    def rows(self) -> int:
        """How many rows the bias has."""
        return self.steps

    @property
    def largest(self) -> Tensor | None:
        """The largest mean output that can be reached, shaped as the threshold; None if there is no bound."""
        return self.threshold

    def set(self, threshold: Tensor, initial: Tensor, bias: Tensor | None = None) -> Self:
        """Give the neurons their constants; without ``bias`` it is zero, one row per step and channel."""
        self.threshold = threshold.clone()
        self.initial = initial.expand_as(threshold).clone()
        self.bias = threshold.new_zeros((self.rows, *threshold.shape)) if bias is None else bias.clone()
        return self

    def spread(self, constant: Tensor) -> Tensor:
        """A constant per layer, channel or neuron, shaped to broadcast over one item."""
        return constant if constant.ndim == self.rank else constant.view(-1, *[1] * (self.rank - 1))

    def bias_by_step(self) -> Tensor:
        """The bias of each of the steps, ``[T, ...]``."""
        return self.bias

    def is_unit(self) -> bool:
        """Whether all thresholds are 1."""
        return bool((self.threshold == 1).all())

    def to_unit(self) -> tuple[Tensor, Tensor]:
        """Divide all by the thresholds; gives what currents must be divided by then, and outputs multiplied with."""
        theta = self.spread(self.threshold)
        self.bias = self._divided(self.bias)
        self.initial = self._divided(self.initial.unsqueeze(0))[0]
        self.threshold = torch.ones_like(self.threshold)
        return theta.unsqueeze(0), theta.unsqueeze(0)

    def _divided(self, constants: Tensor) -> Tensor:
        """Constants / theta, row by row, with an entry per channel unless either of the two has one per neuron."""
        rows = torch.stack([self.spread(row) for row in constants]) / self.spread(self.threshold)
        per_neuron = max(self.threshold.ndim, constants.ndim - 1) == self.rank
        return rows if per_neuron else rows.reshape(len(rows), -1)

    def reset(self) -> None:
        for name in self.STATE:
            setattr(self, name, None)
        self.t = 0

    def select(self, images: Tensor) -> None:
        for name in self.STATE:
            value = getattr(self, name)
            setattr(self, name, None if value is None else value[images])

    def mean_output(self, x: Tensor, team: Team = ALONE) -> Tensor:
        """The mean of what this step's current would bring, shaped as a row of the bias; nothing changes.

        team: the processes that share the batch; x is this one's part of it.
        """
        before, t = {name: getattr(self, name) for name in self.STATE}, self.t
        output = self.forward(x)
        for name, value in before.items():
            setattr(self, name, value)
        self.t = t
        return mean_over(output, self.bias[t], team)

    def mean_of_counts(self, counts: Tensor, places: int, team: Team = ALONE) -> Tensor:
        """The mean output, shaped as a row of the bias, if the spikes of each channel, or neuron, add up to so many.

        places: how many neurons, over all images, each count is of.
        """
        theta = self.threshold if counts.ndim == 1 else self.spread(self.threshold)
        means = theta * team.mean(counts, places).to(theta.dtype)
        return means.mean().reshape(1) if self.bias[0].numel() == 1 else means

    def membrane(self, x: Tensor) -> Tensor:
        """The membrane before this step, for currents of this shape."""
        return self.spread(self.initial).expand_as(x) if self.v is None else self.v

    def forward(self, x: Tensor) -> Tensor:
        return self.run(x.unsqueeze(0))[0]

    def run(self, x: Tensor) -> Tensor:
        self._require(len(x))
        outputs = room_for(x)
        if not len(x):
            return outputs
        like = outputs[0]
        for name in self.STATE[1:]:
            value = getattr(self, name)
            setattr(self, name, torch.zeros_like(like) if value is None else torch.empty_like(like).copy_(value))
        self.v = v = torch.empty_like(like).copy_(self.membrane(like))
        theta = self.spread(self.threshold)
        one_pass = self._in_one_pass(x, theta)
        for current, output in zip(x, outputs, strict=True):
            b = self.spread(self.bias[self.t])
            if one_pass is not None:
                one_pass(current, b, output, *self._settings())
            else:
                v += current
                v += b
                self._fire(v, theta, output)
            self.t += 1
        return outputs

    def _in_one_pass(self, x: Tensor, theta: Tensor) -> OnePass | None:
        """The compiled form of a step, if there is one for currents like these."""
        if self.LOOP is None or not OnePass.usable(x[0], theta, self.bias):
            return None
        return OnePass(self.LOOP, x[0], theta, [getattr(self, name) for name in self.STATE])

    def _settings(self) -> tuple[float, ...]:
        """What the compiled form of the next step takes besides the tensors."""
        return ()

    def _fire(self, v: Tensor, theta: Tensor, output: Tensor) -> None:
        """Write what a charged membrane sends into ``output``, and take it from the membrane; both ``[N, ...]``."""
        raise NotImplementedError

    def _require(self, steps: int) -> None:
        if self.t + steps > self.steps:
            raise InputError(
                f"step {self.t + steps} of a network converted for {self.steps} steps: call reset() before the next "
                "input, or convert with more steps"
            )

    def extra_repr(self) -> str:
        return f"steps={self.steps}, thresholds={tuple(self.threshold.shape)}"


def room_for(x: Tensor) -> Tensor:
    """An empty tensor for outputs, of the shape and memory order of currents ``[T, N, C, ...]``."""
    steps, (images, channels, *positions) = len(x), x.shape[1:]
    if x.ndim == 5 and not x[0].is_contiguous() and x[0].is_contiguous(memory_format=torch.channels_last):
        return x.new_empty((steps, images, *positions, channels)).movedim(-1, 2)
    return x.new_empty(x.shape)
