"""Quantisation clip-floor-shift: the staircase that an integrate-and-fire neuron climbs in L steps.

    a = theta / L * clamp( floor(z L / theta + 1/2), 0, L )

    da/dz     = [ -theta/2L < z < theta - theta/2L ]                    as if floor(x) had the derivative 1
    da/dtheta = (a - z) / theta in that range, 0 below it, 1 above it

A neuron with threshold theta that starts at theta / 2 and gets the current z at each step has sent exactly a after
T = L steps (`neuron/functional.py`); for other T the expected error is zero, as long as z is uniform within a step.
To clamp z before the floor, as released code and the FTBC paper do, gives the same a. The gradients are those of the
QCFS paper; autograd through the released code has another range, 0 <= z <= theta.
Reference: Bu et al., ICLR 2022 (QCFS).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ftbc.activation.base import WithTheta
from ftbc.activation.ranges import above, inside


class QCFS(WithTheta):
    """``levels`` steps up to a trainable threshold. The paper takes 4 for CIFAR, 8 or 16 for ImageNet.

    >>> QCFS(levels=4, threshold=2.0)(torch.tensor([-1.0, 0.2, 0.3, 0.8, 3.0])).tolist()
    [0.0, 0.0, 0.5, 1.0, 2.0]
    """

    def __init__(self, levels: int = 4, threshold: float = 8.0) -> None:
        super().__init__(threshold)
        self.levels: int = self._whole("levels", levels)

    def forward(self, z: Tensor) -> Tensor:
        """The quantised input, of any shape."""
        return staircase(z, self._bound(), self.levels)


def staircase(z: Tensor, theta: Tensor, levels: int, shift: float | Tensor = 0.5) -> Tensor:
    """``theta / L * clamp(floor(z L / theta + shift), 0, L)`` with the gradients above, ``shift`` in place of 1/2.

    A theta without gradient, and the shift, may differ from channel to channel.
    """
    return _Staircase.apply(z, theta, levels, shift)  # type: ignore[return-value]


class _Staircase(torch.autograd.Function):
    """By hand: keeps the input alone for the backward pass, where autograd would keep five tensors of its size."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, theta: Tensor, levels: int, shift: float | Tensor) -> Tensor:
        ctx.save_for_backward(z, theta)
        ctx.levels, ctx.shift = levels, shift
        return (z * (levels / theta)).add_(shift).floor_().clamp_(0, levels).mul_(theta / levels)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:  # type: ignore[override]
        z, theta = ctx.saved_tensors
        place = (z * (ctx.levels / theta)).add_(ctx.shift)
        to_z = inside(grad, place, ctx.levels)
        if not ctx.needs_input_grad[1]:
            return to_z, None, None, None
        saturated = above(grad, place, ctx.levels).sum()
        # In units of theta / L, a - z is floor(place) - (place - shift): the shift less the fraction of the place.
        rounded = ctx.shift * to_z.sum() - place.frac_().mul_(to_z).sum()
        return to_z, rounded / ctx.levels + saturated, None, None
