"""How a layer of any size reads one pixel of the input at each of its own: the geometry of clock channels."""

from __future__ import annotations

import torch
from torch import Tensor

from ftbc.errors import UnsupportedError
from ftbc.graph.ir import Node, Shape


def reach(node: Node, space: Shape, wanted: Shape) -> tuple[list[int], list[int]]:
    """The smallest kernel, and the stride, with which a convolution makes ``wanted`` pixels of those of ``space``.

    In each direction 1 + (n - k) // s must be the wanted number m: s lies between (n - k) / m and (n - k) / (m - 1).
    """
    found = [_one(n, m) for n, m in zip(space, wanted, strict=True)]
    if None in found:
        raise UnsupportedError(
            f"{node.place} has more pixels, {list(wanted)}, than the image, {list(space)}: clock channels cannot reach "
            "it; write bias='mean', or ONNX"
        )
    kernels, strides = zip(*found, strict=True)  # type: ignore[arg-type]
    return list(kernels), list(strides)


def _one(length: int, wanted: int) -> tuple[int, int] | None:
    """Kernel and stride in one direction.

    >>> _one(32, 16), _one(32, 1), _one(32, 30), _one(7, 3), _one(3, 4)
    ((1, 2), (1, 32), (3, 1), (1, 3), None)
    """
    for kernel in range(1, length + 1):
        left = length - kernel
        stride = left // wanted + 1  # the smallest that makes no more than the wanted number
        if 1 + left // stride == wanted:
            return kernel, stride
    return None


def ticks(steps: int, images: int, space: Shape, like: Tensor) -> Tensor:
    """The clock channels over time, ``[T, N, T, ...]``: channel t is all ones at step t, and zero else.

    >>> ticks(2, 1, (), torch.zeros(1))
    tensor([[[1., 0.]],
    <BLANKLINE>
            [[0., 1.]]])
    """
    hands = torch.eye(steps, dtype=like.dtype, device=like.device).view(steps, 1, steps, *[1] * len(space))
    return hands.expand(steps, images, steps, *space)
