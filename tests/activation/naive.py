"""Equations of the papers for single numbers, and how a module is asked for its output and its gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn


def clip(z: float, low: float, high: float) -> float:
    return min(max(z, low), high)


def qcfs(z: float, theta: float, levels: int) -> float:
    return theta * clip(math.floor(z * levels / theta + 0.5) / levels, 0, 1)


def qcfs_by_z(z: float, theta: float, levels: int) -> float:
    return float(-theta / (2 * levels) < z < theta - theta / (2 * levels))


def qcfs_by_theta(z: float, theta: float, levels: int) -> float:
    if z <= -theta / (2 * levels):
        return 0.0
    if z >= theta - theta / (2 * levels):
        return 1.0
    return (qcfs(z, theta, levels) - z) / theta


def inputs(count: int = 400, low: float = -2.0, high: float = 4.0, seed: int = 0) -> Tensor:
    """Numbers that hit no edge of a staircase, as random ones."""
    generator = torch.Generator().manual_seed(seed)
    return low + (high - low) * torch.rand(count, generator=generator, dtype=torch.float64)


def each(function: Callable[..., float], z: Tensor, *settings: float) -> Tensor:
    return torch.tensor([function(float(value), *settings) for value in z], dtype=torch.float64)


def gradients(module: nn.Module, z: Tensor, of: nn.Parameter, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Of the sum of weighted outputs: to the input ``[N]``, and to a parameter."""
    z = z.clone().requires_grad_()
    of.grad = None
    (module(z) * weights).sum().backward()
    assert z.grad is not None and of.grad is not None
    return z.grad, of.grad
