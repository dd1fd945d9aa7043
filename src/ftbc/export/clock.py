"""How a layer of any size reads one pixel of the input at each of its own: the geometry of clock channels."""

from __future__ import annotations

import torch
from torch import Tensor

from ftbc.errors import UnsupportedError
from ftbc.graph.ir import Node, Shape
from ftbc.graph.spec import register
from ftbc.neuron import Temporal


def reach(node: Node, space: Shape, wanted: Shape) -> tuple[list[int], list[int]]:
    """The smallest kernel, and the strides, with which a convolution makes ``wanted`` pixels of those of ``space``.

    In each direction 1 + (n - k) // s must be the wanted number. The kernel is square, if it can be.
    """
    for kernel in range(1, min(space) + 1):
        strides = [_stride(n, m, kernel) for n, m in zip(space, wanted, strict=True)]
        if None not in strides:
            return [kernel] * len(space), strides  # type: ignore[return-value]
    if any(m > n for n, m in zip(space, wanted, strict=True)):
        raise UnsupportedError(
            f"{node.place} has more pixels, {list(wanted)}, than the image, {list(space)}: NIR's clock channels cannot "
            "reach it; write ONNX"
        )
    return [n - m + 1 for n, m in zip(space, wanted, strict=True)], [1] * len(space)


def _stride(length: int, wanted: int, kernel: int) -> int | None:
    """The stride with which a kernel finds so many places in one direction, if there is one.

    >>> _stride(32, 16, 1), _stride(32, 1, 1), _stride(32, 30, 1), _stride(32, 30, 3), _stride(3, 4, 1)
    (2, 32, None, 1, None)
    """
    left = length - kernel
    stride = left // wanted + 1  # the smallest that makes no more than the wanted number
    return stride if left >= 0 and 1 + left // stride == wanted else None


@register("steps")
class Clock(Temporal):
    """Adds clock channels behind those of its input: at step t the t-th of them is all ones, the others are zero.

    >>> Clock(2).run(torch.full((2, 1, 1), 7.0)).tolist()
    [[[7.0, 1.0, 0.0]], [[7.0, 0.0, 1.0]]]
    """

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps, self.t = steps, 0

    def reset(self) -> None:
        self.t = 0

    def select(self, images: Tensor) -> None:
        """Nothing differs between images."""

    def forward(self, x: Tensor) -> Tensor:
        return self.run(x.unsqueeze(0))[0]

    def run(self, x: Tensor) -> Tensor:
        hands = ticks(self.steps, x.shape[1], tuple(x.shape[3:]), x)[self.t : self.t + len(x)]
        self.t += len(x)
        return torch.cat([x, hands], 2)


def ticks(steps: int, images: int, space: Shape, like: Tensor) -> Tensor:
    """The clock channels over time, ``[T, N, T, ...]``: channel t is all ones at step t, and zero else.

    >>> ticks(2, 1, (), torch.zeros(1))
    tensor([[[1., 0.]],
    <BLANKLINE>
            [[0., 1.]]])
    """
    hands = torch.eye(steps, dtype=like.dtype, device=like.device).view(steps, 1, steps, *[1] * len(space))
    return hands.expand(steps, images, steps, *space)
