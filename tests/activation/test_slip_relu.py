"""SlipReLU: two terms, their shifts, and the activations at its two ends."""

from __future__ import annotations

import math

import pytest
import torch

from ftbc.activation import QCFS, SlipReLU, ThresholdReLU

from .naive import clip, each, gradients, inputs

SHIFTS = [(0.0, 0.5), (0.25, 0.5), (-0.5, 0.0), (0.5, 1.0)]


def slip(z: float, theta: float, n: int, c: float, d1: float, d2: float) -> float:
    first = clip(z / theta + d1 / n, 0, 1)
    second = clip(math.floor(n * z / theta + d2) / n, 0, 1)
    return theta * (c * first + (1 - c) * second)


def slip_by_z(z: float, theta: float, n: int, c: float, d1: float, d2: float) -> float:
    first = -d1 / n <= z / theta <= 1 - d1 / n
    second = -d2 / n < z / theta < 1 - d2 / n
    return c * first + (1 - c) * second


def slip_by_theta(z: float, theta: float, n: int, c: float, d1: float, d2: float) -> float:
    step = slip(z, theta, n, 0.0, d1, d2)
    first, second = 0.0, 0.0
    if z / theta + d1 / n >= 0:
        first = d1 / n if z / theta + d1 / n <= 1 else 1.0
    if z / theta > -d2 / n:
        second = (step - z) / theta if z / theta < 1 - d2 / n else 1.0
    return c * first + (1 - c) * second


@pytest.mark.parametrize("shifts", SHIFTS)
@pytest.mark.parametrize("slope", [0.0, 0.3, 1.0])
def test_forward_and_gradients(slope: float, shifts: tuple[float, float]) -> None:
    module, z, g = SlipReLU(4, slope, 1.3, *shifts).double(), inputs(), inputs(seed=1)
    settings = (float(module.theta.detach()), 4, slope, *shifts)
    torch.testing.assert_close(module(z).detach(), each(slip, z, *settings), rtol=1e-12, atol=1e-12)
    to_z, to_theta = gradients(module, z, module.theta, g)
    torch.testing.assert_close(to_z, g * each(slip_by_z, z, *settings), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(to_theta, (g * each(slip_by_theta, z, *settings)).sum(), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("slope", "same"), [(0.0, QCFS(4, 1.3)), (1.0, ThresholdReLU(1.3, trainable=True))], ids=["0", "1"]
)
def test_ends(slope: float, same: torch.nn.Module) -> None:
    module, same, z, g = SlipReLU(4, slope, 1.3).double(), same.double(), inputs(), inputs(seed=1)
    assert torch.equal(module(z), same(z))
    for found, wanted in zip(gradients(module, z, module.theta, g), gradients(same, z, same.theta, g), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


def test_gradcheck_where_it_is_smooth() -> None:
    module = SlipReLU(4, 1.0, 1.3, clip_shift=0.25).double()
    z = inputs(40).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, _: module(x), (z, module.theta), eps=1e-7)
