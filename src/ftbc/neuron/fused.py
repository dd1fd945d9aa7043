"""`integrate_and_fire` in one pass over memory, compiled by numba (the extra ``fast``); equal to the last bit.

The plain form reads and writes each membrane five times a step. Without numba everything works on the plain form.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from ftbc.loops import compiled_loops
from ftbc.threads import over_images

_kernels = functools.partial(compiled_loops, "ftbc.neuron.compiled")
_WORTH_A_THREAD = 1 << 21
"""Neuron-steps that are worth a thread of their own: torch's, still awake after a convolution, are in its way."""


def usable(x: Tensor, theta: Tensor, b: Tensor) -> bool:
    """Whether the compiled form can take these: some images on the CPU, with constants per layer or channel."""
    simple = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64) and theta.ndim == 1 and b.ndim == 2
    alike = x.dtype == theta.dtype == b.dtype  # it reads memory as numbers of one type
    return simple and alike and x.numel() > 0 and not x.requires_grad and _kernels() is not None


def integrate_and_fire(
    x: Tensor, theta: Tensor, v: Tensor, b: Tensor, overwrite: bool = False
) -> tuple[Tensor, Tensor]:
    """Spikes ``[T, N, C, ...]`` and the membrane that is left, in the memory format of the currents.

    x: currents ``[T, N, C, ...]``; theta: ``[1]`` or ``[C]``; v: the membrane before, ``[N, C, ...]``, or what it
    begins at, ``[1]`` or ``[C]``; b: ``[T, 1]`` or ``[T, C]``; overwrite: whether the spikes may take the place of the
    currents, and the new membrane the old one's.
    """
    kernels = _kernels()
    assert kernels is not None
    steps, images, channels, *pixels = x.shape
    channels_last = len(pixels) == 2 and _lies_channels_last(x)
    repeats = steps > 1 and x.stride(0) == 0  # one current for all steps, an expanded view
    if overwrite and not repeats and (channels_last or x.is_contiguous()):
        spikes = x
    else:
        spikes = (
            x.new_empty((steps, images, *pixels, channels)).movedim(-1, 2) if channels_last else x.new_empty(x.shape)
        )
        if not repeats:
            spikes.copy_(x)
    begins = v.ndim == 1  # the loop spreads it over the pixels: torch would take as long as the loop does
    if begins:
        left, initial = torch.empty_like(spikes[0]), v
    else:
        same = overwrite and v.dtype == spikes.dtype and v.stride() == spikes.stride()[1:]
        left, initial = v if same else torch.empty_like(spikes[0]).copy_(v), theta

    if channels_last:
        kernel, inner = kernels.integrate_and_fire_channels_last, (-1,)
    else:
        kernel, inner = kernels.integrate_and_fire, (channels, -1)

    # The arrays that the loop works on show the memory as it lies: numpy is quicker at this than torch.
    def memory(values: Tensor, *outer: int) -> Any:
        array = values.numpy()
        axes = range(array.ndim - 3)
        inwards = array.transpose(*axes, -2, -1, -3) if channels_last else array
        return inwards.reshape(*outer, *inner)

    currents, membranes = memory(spikes, steps, images), memory(left, images)
    current = memory(x[0], images) if repeats else None
    theta, initial, b = (_for_each(channels, constant) for constant in (theta, initial, b))
    constants = theta.numpy(), membranes, b.numpy(), initial.numpy(), begins

    def share(first: int, last: int) -> None:
        kernel(currents, current, *constants, first, last)

    over_images(share, images, spikes.numel() // _WORTH_A_THREAD)
    return spikes, left


def _lies_channels_last(x: Tensor) -> bool:
    """Whether images ``[T, N, C, H, W]`` have their channels innermost; a constant current is an expanded view."""
    _, images, channels, rows, columns = x.shape
    image = rows * columns * channels
    usual = (0 if x.stride(0) == 0 else images * image, image, 1, columns * channels, channels)
    # Along a dimension of size 1 nobody steps: whatever its stride is.
    return channels > 1 and all(
        size == 1 or stride == wanted for size, stride, wanted in zip(x.shape, x.stride(), usual, strict=True)
    )


def _for_each(channels: int, constant: Tensor) -> Tensor:
    """A constant per layer or channel, ``[..., 1]`` or ``[..., C]``, with an entry for each channel."""
    spread = constant if constant.shape[-1] == channels else constant.expand(*constant.shape[:-1], channels)
    return spread.contiguous()


def spike_counts(x: Tensor, theta: Tensor, v: Tensor, b: Tensor) -> Tensor:
    """How many spikes a step brings, ``[C]``: x, v ``[N, C, ...]``; theta, b: ``[1]`` or ``[C]``."""
    images, channels = x.shape[:2]
    channels_last = x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last)
    if channels_last:
        kernel, inner = _kernels().spike_counts_channels_last, (-1,)
        x, v = x.movedim(1, -1), v.movedim(1, -1)
    else:
        kernel, inner = _kernels().spike_counts, (channels, -1)
    currents, membranes = x.reshape(images, *inner).numpy(), v.reshape(images, *inner).numpy()
    thresholds, biases = theta.expand(channels).contiguous().numpy(), b.expand(channels).contiguous().numpy()
    counts: list[Tensor] = []

    def share(first: int, last: int) -> None:
        own = torch.zeros(channels, dtype=torch.int64)
        kernel(currents, thresholds, membranes, biases, own.numpy(), first, last)
        counts.append(own)

    over_images(share, images, x.numel() // _WORTH_A_THREAD)
    return torch.stack(counts).sum(0)
