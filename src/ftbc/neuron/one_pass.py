"""A step of neurons of any kind in one pass over memory, compiled by numba (the extra ``fast``); equal to the last bit.

The plain form of a kind reads and writes each membrane several times a step. `fused` does better still for neurons of
the usual kind with constants per channel, whose membranes stay in registers over all steps. Without numba everything
works on the plain form.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ftbc.loops import compiled_loops
from ftbc.threads import over_images

_loops = functools.partial(compiled_loops, "ftbc.neuron.compiled_kinds")
_WORTH_A_THREAD = 1 << 20
"""Neurons that are worth a thread of their own."""


class OnePass:
    """Steps of one layer whose memory lies in the order of ``like``, one step's currents ``[N, ...]``.

    rule: the name of a loop of `compiled_kinds`; theta: broadcastable to one item; state: what the loop remembers,
    tensors in the same order as ``like``, written over at each step.
    """

    def __init__(self, rule: str, like: Tensor, theta: Tensor, state: Sequence[Tensor]) -> None:
        self._loop = getattr(_loops(), rule)
        self._item, self._channels_last = like.shape[1:], not like.is_contiguous()
        self._theta = self._for_each_neuron(theta)
        self._state = [self._memory(values) for values in state]

    @staticmethod
    def usable(like: Tensor, *others: Tensor) -> bool:
        """Whether there is a loop for these: some images on the CPU, in an order that it can walk through."""
        alike = all(values.dtype == like.dtype for values in others) and like.dtype in (torch.float32, torch.float64)
        simple = like.device.type == "cpu" and like.numel() > 0 and not like.requires_grad and like.ndim > 1
        return alike and simple and _order(like) is not None and _loops() is not None

    def __call__(self, current: Tensor, b: Tensor, output: Tensor, *numbers: float) -> None:
        """Charge, fire, and write what is sent; b: broadcastable to one item; numbers: what the loop takes besides."""
        x, out, bias = self._memory(current), self._memory(output), self._for_each_neuron(b)

        def share(first: int, last: int) -> None:
            self._loop(x, bias, self._theta, *self._state, out, *numbers, first, last)

        over_images(share, len(x), x.size // _WORTH_A_THREAD)

    def _memory(self, values: Tensor) -> Any:
        """Images as they lie in memory, ``[N, P]``."""
        array = values.numpy()
        return (array.transpose(0, 2, 3, 1) if self._channels_last else array).reshape(len(array), -1)

    def _for_each_neuron(self, constant: Tensor) -> Any:
        """A constant with an entry for each neuron of an item, in the order of its memory, ``[P]``."""
        spread = constant.expand(self._item)
        return (spread.movedim(0, -1) if self._channels_last else spread).contiguous().view(-1).numpy()


def _order(values: Tensor) -> torch.memory_format | None:
    if values.is_contiguous():
        return torch.contiguous_format
    innermost = values.ndim == 4 and values.is_contiguous(memory_format=torch.channels_last)
    return torch.channels_last if innermost else None
