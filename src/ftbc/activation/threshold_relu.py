"""The ReLU that is clipped at a threshold: neurons cannot send more than one spike a step.

    a = clamp(z, 0, theta)        da/dz = [0 < z < theta]        da/dtheta = [z >= theta]

RTS trains with a fixed theta (1 or 2), and some of its networks with an input shifted right by theta / 2T. The shift
makes up for the neuron's rounding down and so belongs to the conversion: `initial.SpreadHalf` adds theta / 2T at each
step, `initial.Half` theta / 2 once.
Reference: Deng and Gu, ICLR 2021 (RTS); TReLU in the supplement of FTBC (Wu et al., ECCV 2024).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ftbc.activation.base import WithTheta
from ftbc.activation.ranges import above, inside


class ThresholdReLU(WithTheta):
    """``clamp(z, 0, theta)``; fixed unless ``trainable``.

    >>> ThresholdReLU(threshold=2.0)(torch.tensor([-1.0, 0.5, 3.0])).tolist()
    [0.0, 0.5, 2.0]
    """

    def __init__(self, threshold: float = 1.0, trainable: bool = False) -> None:
        super().__init__(threshold, trainable)

    def forward(self, z: Tensor) -> Tensor:
        """The clipped input, of any shape."""
        return clip(z, self._bound())


def clip(z: Tensor, theta: Tensor) -> Tensor:
    """``clamp(z, 0, theta)`` with gradients to both."""
    return _Clip.apply(z, theta)  # type: ignore[return-value]


class _Clip(torch.autograd.Function):
    """By hand: torch.clamp with a bound that is a tensor takes ten times as long."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, theta: Tensor) -> Tensor:
        ctx.save_for_backward(z, theta)
        return torch.minimum(z.clamp(min=0), theta)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None]:  # type: ignore[override]
        z, theta = ctx.saved_tensors
        place = z / theta
        to_theta = above(grad, place, 1).sum() if ctx.needs_input_grad[1] else None
        return inside(grad, place, 1), to_theta
