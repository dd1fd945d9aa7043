"""`integrate_and_fire` in one pass over memory, compiled by numba (the extra ``fast``); equal to the last bit.

The plain form reads and writes each membrane five times a step. Without numba everything works on the plain form.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor

from ftbc.threads import over_images

_WORTH_A_THREAD = 1 << 18
"""Neuron-steps below which handing work to another thread costs more than it saves."""


def usable(x: Tensor, theta: Tensor, b: Tensor) -> bool:
    """Whether the compiled form can take these: on the CPU, with constants per layer or channel."""
    simple = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64) and theta.ndim == 1 and b.ndim == 2
    return simple and not x.requires_grad and _kernel() is not None


def integrate_and_fire(x: Tensor, theta: Tensor, v: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Spikes ``[T, N, C, ...]`` and the membrane that is left.

    x: currents ``[T, N, C, ...]``; theta: ``[1]`` or ``[C]``; v: the membrane before, ``[N, C, ...]``; b: ``[T, 1]``
    or ``[T, C]``.
    """
    kernel = _kernel()
    assert kernel is not None
    steps, images, channels = x.shape[:3]
    rows = x[:1] if x.stride(0) == 0 else x  # a constant current is an expanded view: read it once
    v = v.contiguous().clone()
    spikes = torch.empty(x.shape, dtype=x.dtype)
    currents = rows.reshape(len(rows), images, channels, -1).numpy()
    membranes = v.view(images, channels, -1).numpy()
    sent = spikes.view(steps, images, channels, -1).numpy()
    thresholds, biases = theta.expand(channels).contiguous().numpy(), b.expand(steps, channels).contiguous().numpy()

    def share(first: int, last: int) -> None:
        kernel(currents, thresholds, membranes, biases, sent, first, last)

    over_images(share, images, spikes.numel() // _WORTH_A_THREAD)
    return spikes, v


@functools.cache
def _kernel() -> Callable[..., None] | None:
    try:
        from ftbc.neuron import compiled
    except (ImportError, RuntimeError):  # not installed, or no folder in which it could keep what it compiles
        return None
    return compiled.integrate_and_fire
