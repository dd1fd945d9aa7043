"""Values over time of a batch, kept until nobody needs them: spikes in one bit each or as counts, all else as it is."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

Weights: TypeAlias = Tensor
"""How steps are weighed in a mean: ``[T]``, or ``[T, n]`` with weights of its own for each image; they sum to 1."""

_GATHER = 0x0102040810204080
"""Eight bytes of 0 or 1, read as one number, times this have their bits side by side in the highest byte."""

_SAME = 1e-4


class Dense:
    """Any values ``[T, n, ...]``."""

    def __init__(self, values: Tensor) -> None:
        self._values = values

    def values(self) -> Tensor:
        """All steps, ``[T, n, ...]``."""
        return self._values

    def mean(self, weights: Weights) -> Tensor:
        """The weighted mean over the steps, ``[n, ...]``."""
        return _weighted(list(self._values), weights)

    def bytes(self) -> int:
        """The memory that is taken."""
        return self._values.numel() * self._values.element_size()


class Spikes:
    """Values ``[T, n, ...]`` that are 0 or ``amplitude`` (broadcastable to one item), in one bit each.

    >>> kept = Spikes(torch.tensor([[[0.0, 2.0]], [[2.0, 2.0]]]), torch.tensor(2.0))
    >>> kept.values().tolist(), kept.mean(torch.tensor([0.5, 0.5])).tolist(), kept.bytes()
    ([[[0.0, 2.0]], [[2.0, 2.0]]], [[1.0, 2.0]], 2)
    """

    def __init__(self, values: Tensor, amplitude: Tensor) -> None:
        # In the order of memory: a channels-last value stays one, which is what convolutions are fast on.
        self._last = values.ndim == 5 and values.flatten(0, 1).is_contiguous(memory_format=torch.channels_last)
        fired = (values.movedim(2, -1) if self._last else values) != 0
        self._shape = fired.shape
        flat = fired.flatten(1)
        eights = max(1, -(-flat.shape[1] // 8))  # one process of several may have no images, and nothing has no bytes
        room = torch.zeros(len(flat), 8 * eights, dtype=torch.bool, device=flat.device)
        room[:, : flat.shape[1]] = flat
        self._bits = ((room.view(torch.int64) * _GATHER >> 56) & 255).to(torch.uint8)
        self._amplitude = amplitude.clone()

    def values(self) -> Tensor:
        """All steps, ``[T, n, ...]``."""
        return self._sent(self._bits) * self._amplitude

    def mean(self, weights: Weights) -> Tensor:
        """The weighted mean over the steps, ``[n, ...]``."""
        steps = (self._sent(row.unsqueeze(0))[0] for row in self._bits)
        return _weighted(steps, weights) * self._amplitude

    def bytes(self) -> int:
        """The memory that is taken."""
        return self._bits.numel()

    def _sent(self, bits: Tensor) -> Tensor:
        """Bits as 0.0 and 1.0, ``[T, n, ...]``."""
        # A look-up of eight numbers for each byte: the fastest of several ways, and it runs on every device.
        sent = F.embedding(bits.int(), _table(self._amplitude.dtype, bits.device)).flatten(1)
        sent = sent[:, : self._shape[1:].numel()].view(len(bits), *self._shape[1:])
        return sent.movedim(-1, 2) if self._last else sent


class Counts:
    """Spikes of ``size`` that all come in the first of T = ``steps`` steps: how many, ``[n, ...]``, is all to keep.

    >>> kept = Counts(torch.tensor([[0.0, 2.0, 3.0]]), torch.tensor(0.5), steps=3)
    >>> kept.values()[:, 0].tolist(), kept.mean(torch.full((3,), 1 / 3)).tolist()
    ([[0.0, 0.5, 0.5], [0.0, 0.5, 0.5], [0.0, 0.0, 0.5]], [[0.0, 0.3333333432674408, 0.5]])
    """

    def __init__(self, counts: Tensor, size: Tensor, steps: int) -> None:
        self._counts = counts.to(torch.uint8 if steps < 256 else torch.int32)
        self._size = size.clone()
        self._steps = steps

    def values(self) -> Tensor:
        """All steps, ``[T, n, ...]``."""
        return torch.stack([(self._counts > t) * self._size for t in range(self._steps)])

    def mean(self, weights: Weights) -> Tensor:
        """The weighted mean over the steps, ``[n, ...]``: with n spikes the first n weights count."""
        sums = F.pad(weights.cumsum(0).to(self._size), (0, 0) * (weights.ndim - 1) + (1, 0))
        if weights.ndim == 1:
            return sums[self._counts.int()] * self._size
        flat = self._counts.flatten(1).long()
        return sums.t().gather(1, flat).view_as(self._counts) * self._size

    def bytes(self) -> int:
        """The memory that is taken."""
        return self._counts.numel() * self._counts.element_size()


@functools.cache
def _table(dtype: torch.dtype, device: torch.device) -> Tensor:
    """The eight bits of each byte."""
    return ((torch.arange(256).unsqueeze(1) >> torch.arange(8)) & 1).to(device, dtype)


Kept = Dense | Spikes | Counts


def keep(values: Tensor) -> Kept:
    """Values ``[T, n, C, ...]``: as bits where each channel has but one value beside 0, as they are otherwise."""
    if not len(values[0]):  # one process of several may have no images
        return Dense(values)
    dims = [d for d in range(values.ndim) if d != 2]
    amplitude = values.amax(dims, keepdim=True)[0, 0]
    off = values - (values > amplitude / 2) * amplitude
    if bool((off.abs().amax(dims, keepdim=True)[0, 0] <= _SAME * amplitude).all()):
        return Spikes((values > amplitude / 2) & (amplitude > 0), amplitude)
    return Dense(values)


def _weighted(steps: Iterable[Tensor], weights: Weights) -> Tensor:
    total = None
    for value, weight in zip(steps, weights, strict=True):
        weight = weight.view(-1, *[1] * (value.ndim - 1))
        total = value * weight if total is None else total.addcmul_(value, weight)
    assert total is not None
    return total
