"""What all activations with a threshold share, and the threshold that training may move but never below zero."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from ftbc.errors import ModelError

LEAST = 1e-6
"""No threshold is smaller: inputs are divided by it."""


class ThresholdActivation(nn.Module, ABC):
    """An activation that saturates at ``threshold``, one number for the layer; ``levels``: how many steps, or None.

    Settings are plain attributes, what is learnt are parameters and buffers: copying, saving and loading just work.
    """

    levels: int | None = None

    @property
    @abstractmethod
    def threshold(self) -> Tensor:
        """The input at which it saturates: a positive tensor without dimensions, which gradients go through."""

    @abstractmethod
    def set_threshold(self, threshold: float) -> None:
        """Begin with another threshold, such as one from statistics of the activations."""

    def extra_repr(self) -> str:
        """What is shown behind the name of the module."""
        steps = "" if self.levels is None else f", levels={self.levels}"
        return f"threshold={float(self.threshold.detach()):g}{steps}"

    def _positive(self, name: str, value: float) -> float:
        if not _is_number(value) or not LEAST <= value < math.inf:
            raise ModelError(f"{type(self).__name__}({name}={value!r}): give a number above 0, such as 1.0")
        return float(value)

    def _whole(self, name: str, value: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ModelError(f"{type(self).__name__}({name}={value!r}): give a whole number, at least 1")
        return value

    def _within(self, name: str, value: float, low: float, high: float) -> float:
        if not _is_number(value) or not low <= value <= high:
            raise ModelError(f"{type(self).__name__}({name}={value!r}): give a number from {low:g} to {high:g}")
        return float(value)


class WithTheta(ThresholdActivation):
    """An activation whose parameter ``theta`` is the threshold itself, not a logarithm or a root of it.

    Gradients, learning rates and weight decay then act on it as in the papers. It stays positive by projection: every
    use reads it through the bound `LEAST`, and a forward in training puts a parameter that a step has thrown below the
    bound back on it, where it feels its gradient again.
    """

    def __init__(self, threshold: float, trainable: bool = True) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.tensor(self._positive("threshold", threshold)), requires_grad=trainable)

    @property
    def threshold(self) -> Tensor:
        return self.theta.clamp(min=LEAST)

    @torch.no_grad()
    def set_threshold(self, threshold: float) -> None:
        self.theta.fill_(self._positive("threshold", threshold))

    def _bound(self) -> Tensor:
        """The threshold for use in forward."""
        if self.training:
            # By .data: autograd must not take it for a change of what an earlier call of this module has saved.
            self.theta.data.clamp_(min=LEAST)
        return self.threshold


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
