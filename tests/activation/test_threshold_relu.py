"""The clipped ReLU."""

from __future__ import annotations

import pytest
import torch

from ftbc.activation import ThresholdReLU

from .naive import clip, each, gradients, inputs


@pytest.mark.parametrize("theta", [0.25, 1.0, 2.0])
def test_forward(theta: float) -> None:
    z = inputs()
    assert torch.equal(ThresholdReLU(theta).double()(z), each(clip, z, 0.0, theta))


@pytest.mark.parametrize("theta", [0.25, 1.0, 2.0])
def test_gradients(theta: float) -> None:
    module, z, g = ThresholdReLU(theta, trainable=True).double(), inputs(), inputs(seed=1)
    to_z, to_theta = gradients(module, z, module.theta, g)
    assert torch.equal(to_z, g * each(lambda x: float(0 <= x <= theta), z))
    torch.testing.assert_close(to_theta, (g * each(lambda x: float(x > theta), z)).sum(), rtol=1e-12, atol=1e-12)


def test_gradcheck() -> None:
    z = inputs(40).requires_grad_()
    module = ThresholdReLU(1.3, trainable=True).double()
    assert torch.autograd.gradcheck(lambda x, _: module(x), (z, module.theta), eps=1e-7)


def test_a_fixed_threshold_gets_no_gradient_but_is_saved() -> None:
    module = ThresholdReLU(2.0)
    module(torch.ones(3, requires_grad=True)).sum().backward()
    assert module.theta.grad is None and module.state_dict()["theta"] == 2
