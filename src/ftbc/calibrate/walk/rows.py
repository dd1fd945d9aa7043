"""Rows of a regression: a layer's output at chosen positions, and the patches of its input that it comes from.

At a position a convolution or linear layer is a matrix product, ``y = x W + bias`` for each group of channels:

    x: [rows, G, K]    W: [G, K, M]    y: [rows, G, M]

with G groups, K inputs and M outputs in each. A transposed convolution is a convolution of its input spread out with
zeros, by the mirrored kernel.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ftbc.graph.ir import Shape
from ftbc.graph.ops import TransposedConvolution

_MANY = 1024
"""With more images than these, as many rows are taken of each as with these: what they have to tell would be lost."""


def rows_per_image(rows: int, images: int) -> int:
    """How many rows to take of an image: about ``rows`` in all, or for each 1,024 images if there are more.

    >>> rows_per_image(65536, 256), rows_per_image(65536, 1024), rows_per_image(65536, 4096)
    (256, 64, 64)
    """
    return -(-rows // min(images, _MANY))


def channel_dimension(module: nn.Module, shape: Shape) -> int:
    """The dimension of an item in which a module's channels lie: first, but last for a linear layer."""
    return len(shape) - 1 if isinstance(module, nn.Linear) else 0


def channels(shape: Shape, dim: int) -> int:
    """How many channels a value of that shape has along ``dim``; a lone number is one."""
    return shape[dim] if shape else 1


def draw_positions(images: int, shape: Shape, dim: int, rows: int, generator: torch.Generator) -> Tensor:
    """Positions ``[N, k]`` of a value of that shape, k by `rows_per_image`; every position if there are no more.

    They are in random order, so that the first of them are a sample too.
    """
    places = torch.Size(shape).numel() // channels(shape, dim)
    count = rows_per_image(rows, images)
    if count >= places:
        return torch.rand(images, places, generator=generator).argsort(1)
    return torch.randint(places, (images, count), generator=generator)


def at_positions(value: Tensor, dim: int, positions: Tensor) -> Tensor:
    """The channels of a value ``[n, ...]`` at positions ``[n, k]``, as rows ``[n k, C]``; dim: that of the channels."""
    places = value.movedim(1 + dim, -1) if value.ndim > 1 else value.unsqueeze(1)
    places = places.flatten(1, -2) if places.ndim > 2 else places.unsqueeze(1)
    return places[torch.arange(len(value), device=value.device).unsqueeze(1), positions].flatten(0, 1)


def patches(layer: nn.Module, x: Tensor, positions: Tensor) -> Tensor:
    """What a layer reads of its input ``[n, ...]`` for its outputs at positions ``[n, k]``: ``[n k, G, K]``."""
    if isinstance(layer, nn.Linear):
        return at_positions(x, x.ndim - 2, positions).unsqueeze(1)
    if isinstance(layer, TransposedConvolution):
        x = _spread_out(layer, x)
        stride = (1,) * len(layer.kernel_size)
    else:
        mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
        x = F.pad(x, layer._reversed_padding_repeated_twice, mode=mode)  # type: ignore[arg-type]
        stride = layer.stride
    windows = _windows(x, layer.kernel_size, stride, layer.dilation)  # type: ignore[arg-type]
    sizes = windows.shape[1 : windows.ndim - len(layer.kernel_size) - 1]  # type: ignore[arg-type]
    at = torch.unravel_index(positions.to(x.device), sizes)
    chosen = windows[(torch.arange(len(x), device=x.device).unsqueeze(1), *at)]
    # Not by one reshape: where a process has no images, it could not tell the size of a patch.
    return chosen.flatten(0, 1).unflatten(1, (layer.groups, -1)).flatten(2)  # type: ignore[arg-type]


def matrix(layer: nn.Module) -> Tensor:
    """The weights as ``[G, K, M]``, so that outputs without bias are `patches` times it."""
    weight: Tensor = layer.weight  # type: ignore[assignment]
    if isinstance(layer, nn.Linear):
        return weight.t().unsqueeze(0)
    groups: int = layer.groups  # type: ignore[assignment]
    if isinstance(layer, TransposedConvolution):
        by_group = weight.unflatten(0, (groups, -1)).flip(list(range(3, weight.ndim + 1)))
        return by_group.movedim(2, -1).flatten(1, -2)
    return weight.reshape(groups, weight.shape[0] // groups, -1).transpose(1, 2)


def set_matrix(layer: nn.Module, value: Tensor) -> None:
    """Give a layer the weights ``[G, K, M]``."""
    weight: Tensor = layer.weight  # type: ignore[assignment]
    if isinstance(layer, nn.Linear):
        new = value[0].t()
    elif isinstance(layer, TransposedConvolution):
        inner = value.unflatten(1, (weight.shape[0] // layer.groups, *weight.shape[2:]))  # type: ignore[operator]
        new = inner.movedim(-1, 2).flip(list(range(3, weight.ndim + 1))).flatten(0, 1)
    else:
        new = value.transpose(1, 2).reshape(weight.shape)
    weight.data.copy_(new)


def add_to_bias(layer: nn.Module, change: Tensor) -> None:
    """Add a number per output channel, ``[G M]``, to a layer's bias, which it may not yet have."""
    if layer.bias is None:
        layer.bias = nn.Parameter(layer.weight.new_zeros(len(change)), requires_grad=False)  # type: ignore[operator]
    layer.bias.data.add_(change)  # type: ignore[union-attr]


def _windows(x: Tensor, kernel: Shape, stride: Shape, dilation: Shape) -> Tensor:
    """A view of every window: ``[n, outputs..., C, kernel...]``."""
    steps = x.stride()[2:]
    sizes = [
        (size - d * (k - 1) - 1) // s + 1 for size, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)
    ]
    between = [step * s for step, s in zip(steps, stride, strict=True)]
    within = [step * d for step, d in zip(steps, dilation, strict=True)]
    return x.as_strided((len(x), *sizes, x.shape[1], *kernel), (x.stride(0), *between, x.stride(1), *within))


def _spread_out(layer: nn.Module, x: Tensor) -> Tensor:
    """The input of a transposed convolution with zeros between and around, as a convolution of stride 1 reads it."""
    sizes = [(size - 1) * s + 1 for size, s in zip(x.shape[2:], layer.stride, strict=True)]  # type: ignore[arg-type]
    spread = x.new_zeros(*x.shape[:2], *sizes)
    spread[(slice(None), slice(None), *[slice(None, None, s) for s in layer.stride])] = x  # type: ignore[union-attr]
    pads: list[int] = []
    settings = zip(layer.kernel_size, layer.dilation, layer.padding, layer.output_padding, strict=True)  # type: ignore[arg-type]
    for k, d, padding, more in reversed(list(settings)):
        pads += [d * (k - 1) - padding, d * (k - 1) - padding + more]
    return F.pad(spread, pads)
