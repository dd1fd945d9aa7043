"""Neurons that run twice: a few extra steps first, from which each image's neurons learn how to begin the others.

Steps 1 .. E come first and count for nothing, then all begins anew with step 1 of T, the biases too. What pools add up
begins anew with the neurons.
"""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn

from ftbc.errors import RecipeError
from ftbc.graph.spec import register
from ftbc.neuron.max_pool import SpikingMaxPool
from ftbc.neuron.spiking import Spiking, room_for


class Restarting(Spiking):
    """Neurons for ``extra`` steps that do not count and ``steps - extra`` that do.

    bias: a row for each step since the last beginning.
    """

    def __init__(self, steps: int, rank: int, extra: int) -> None:
        super().__init__(steps, rank)
        self.extra = extra

    @property
    def rows(self) -> int:
        return max(self.extra, self.steps - self.extra)

    def bias_by_step(self) -> Tensor:
        return torch.cat([self.bias[: self.extra], self.bias[: self.steps - self.extra]])

    def take(self, neurons: Spiking) -> Self:
        """Take the constants of calibrated neurons over."""
        self.threshold, self.initial, self.bias = neurons.threshold, neurons.initial, neurons.bias
        return self


@register("pool", "extra")
class RestartingMaxPool(SpikingMaxPool):
    """`SpikingMaxPool` that forgets what it added up once ``extra`` steps are over."""

    def __init__(self, pool: nn.Module | dict, extra: int) -> None:
        super().__init__(pool)
        self.extra = extra
        self.t = 0

    def reset(self) -> None:
        super().reset()
        self.t = 0

    def run(self, x: Tensor) -> Tensor:
        first, then = split(x, self.extra - self.t)
        parts = [super().run(first)] if len(first) else []
        self.t += len(first)
        if self.t == self.extra:
            super().reset()
        parts += [super().run(then)] if len(then) else []
        self.t += len(then)
        return torch.cat(parts)


def split(x: Tensor, before: int) -> tuple[Tensor, Tensor]:
    """The steps before the new beginning, and those after it."""
    before = max(0, min(before, len(x)))
    return x[:before], x[before:]


def joined(parts: list[Tensor], like: Tensor) -> Tensor:
    """Outputs before and after the new beginning in one tensor, in the memory order of the currents."""
    if len(parts) == 1:
        return parts[0]
    whole, start = room_for(like), 0
    for part in parts:
        whole[start : start + len(part)] = part
        start += len(part)
    return whole


def require_extra(name: str, extra: int) -> None:
    """Refuse a negative number of extra steps."""
    if extra < 0:
        raise RecipeError(f"{name}(extra={extra}): give a number of steps, from 0 on")
