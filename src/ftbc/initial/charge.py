"""Where the membrane starts. Half a threshold turns the neuron's floor into rounding: no error in the mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ftbc.errors import RecipeError
from ftbc.settings import Piece


def require_charge(found: Any, theta: Tensor, rows: int, rule: object) -> None:
    """Refuse what a rule of the user's own cannot mean: v[0] for each threshold, and b[t] for each step of each."""
    name, wanted = type(rule).__name__, (theta.shape, (rows, *theta.shape))
    said = f"give v[0] of shape {list(wanted[0])} and b of shape {list(wanted[1])}, all finite"
    if not isinstance(found, tuple) or len(found) != 2 or not all(isinstance(part, Tensor) for part in found):
        raise RecipeError(f"{name} gave no pair of tensors: {said}")
    finite = all(bool(torch.isfinite(part).all()) for part in found)
    if not finite or tuple(part.shape for part in found) != wanted:
        given = " and ".join(str(list(part.shape)) for part in found)
        raise RecipeError(f"{name} gave {given}, or numbers that are not finite: {said}")


@dataclass(frozen=True)
class Zero(Piece):
    """``v[0] = 0``: the neuron rounds down."""

    timeless: ClassVar[bool] = True

    def __call__(self, theta: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        """Initial potential, shaped as theta, and bias ``[T, ...]``."""
        return torch.zeros_like(theta), theta.new_zeros((steps, *theta.shape))


@dataclass(frozen=True)
class Half(Piece):
    """``v[0] = theta / 2``. Reference: Bu et al., AAAI 2022 (OPI) and ICLR 2022 (QCFS)."""

    timeless: ClassVar[bool] = True

    def __call__(self, theta: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        """Initial potential, shaped as theta, and bias ``[T, ...]``."""
        return theta / 2, theta.new_zeros((steps, *theta.shape))


@dataclass(frozen=True)
class SpreadHalf(Piece):
    """``v[0] = 0`` and ``theta / 2T`` at each step. Reference: Deng and Gu, ICLR 2021 (RTS); FTBC's released code."""

    def __call__(self, theta: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        """Initial potential, shaped as theta, and bias ``[T, ...]``."""
        return torch.zeros_like(theta), (theta / (2 * steps)).repeat(steps, *[1] * theta.ndim)


@dataclass(frozen=True)
class Given(Piece):
    """``v[0] = fraction * theta`` with a fraction of your own."""

    fraction: float
    timeless: ClassVar[bool] = True

    def __call__(self, theta: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        """Initial potential, shaped as theta, and bias ``[T, ...]``."""
        return theta * self.fraction, theta.new_zeros((steps, *theta.shape))
