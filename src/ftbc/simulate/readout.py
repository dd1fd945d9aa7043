"""What is read from the outputs of single steps: their mean so far, or another weighting of them.

A readout is a matrix ``[T, E + T]`` of weights: row t tells how the outputs of the first E + t + 1 steps make up the
answer after t + 1 steps that count. The first E steps, which some methods need to settle, count for nothing. None is
the usual readout, the plain mean of the steps so far, which needs no memory of the single steps.
"""

from __future__ import annotations

import torch
from torch import Tensor


def extra_steps(weights: Tensor | None) -> int:
    """How many steps a network takes before those that count."""
    return 0 if weights is None else weights.shape[1] - weights.shape[0]


def running_mean(steps: int, extra: int = 0, like: Tensor | None = None) -> Tensor:
    """The plain mean of the steps that count, written out as weights.

    >>> running_mean(2, extra=1)
    tensor([[0.0000, 1.0000, 0.0000],
            [0.0000, 0.5000, 0.5000]])
    """
    room = torch.empty(0) if like is None else like
    counted = room.new_ones(steps, steps).tril()
    return torch.cat([room.new_zeros(steps, extra), counted / counted.sum(1, keepdim=True)], 1)


def with_extra(weights: Tensor | None, steps: int, extra: int, like: Tensor) -> Tensor | None:
    """The same readout of ``steps`` steps behind ``extra`` more that count for nothing."""
    if not extra:
        return weights
    if weights is None:
        return running_mean(steps, extra, like)
    own = weights[:steps, : steps + extra_steps(weights)]
    return torch.cat([own.new_zeros(steps, extra), own], 1)


def read(outputs: Tensor, weights: Tensor | None = None) -> Tensor:
    """The answer after each step that counts, ``[T, N, ...]``, from the outputs of all steps, ``[E + T, N, ...]``."""
    if weights is None:
        counts = torch.arange(1, len(outputs) + 1, dtype=outputs.dtype, device=outputs.device)
        return outputs.cumsum(0) / counts.view(-1, *[1] * (outputs.ndim - 1))
    steps = len(outputs) - extra_steps(weights)
    return torch.tensordot(weights[:steps, : len(outputs)], outputs, 1)


class Reader:
    """`read`, one step at a time."""

    def __init__(self, weights: Tensor | None = None) -> None:
        self.weights = weights
        self.taken = -extra_steps(weights)
        self._total: Tensor | None = None
        self._outputs: list[Tensor] = []

    def add(self, output: Tensor) -> Tensor | None:
        """Take the next step's output ``[N, ...]``; the answer so far, or None before the steps that count."""
        self.taken += 1
        if self.weights is None:
            total = output if self._total is None else self._total + output
            self._total = total
            return total / self.taken
        self._outputs.append(output)
        if self.taken < 1:
            return None
        row = self.weights[self.taken - 1, : len(self._outputs)]
        return torch.tensordot(row, torch.stack(self._outputs), 1)

    def select(self, images: Tensor) -> None:
        """Go on with these images alone, given by their indices."""
        self._total = None if self._total is None else self._total[images]
        self._outputs = [output[images] for output in self._outputs]
