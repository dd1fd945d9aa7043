"""Rates from a trained share of a running maximum."""

from __future__ import annotations

import math

import torch

from ftbc.activation import RateNorm

from .naive import clip, each, gradients, inputs


def _module(maximum: float = 2.0, q: float = 0.4) -> RateNorm:
    module = RateNorm(maximum).double().eval()
    torch.nn.init.constant_(module.share, q)
    return module


def _theta(maximum: float, q: float) -> float:
    return maximum / (1 + math.exp(-q))


def test_forward() -> None:
    z = inputs()
    wanted = each(lambda x: clip(x / _theta(2.0, 0.4), 0, 1), z)
    torch.testing.assert_close(_module()(z).detach(), wanted, rtol=1e-12, atol=1e-12)


def test_gradients() -> None:
    module, z, g = _module(), inputs(), inputs(seed=1)
    theta, p = _theta(2.0, 0.4), _theta(1.0, 0.4)
    to_z, to_q = gradients(module, z, module.share, g)
    inside = each(lambda x: float(0 <= x <= theta), z)
    torch.testing.assert_close(to_z, g * inside / theta, rtol=1e-12, atol=1e-12)
    to_p = (g * inside * -z / (p * theta)).sum()
    torch.testing.assert_close(to_q, to_p * p * (1 - p), rtol=1e-11, atol=1e-11)


def test_gradcheck() -> None:
    module, z = _module(), inputs(40).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, _: module(x), (z, module.share), eps=1e-7)


def test_the_maximum_follows_batches_in_training_alone() -> None:
    module = RateNorm(maximum=1.0, momentum=0.1).double()
    module(torch.tensor([3.0, -7.0]).double())
    torch.testing.assert_close(module.maximum, torch.tensor(0.9 * 1 + 0.1 * 3).double(), rtol=1e-6, atol=0)
    module(torch.tensor([-7.0]).double())  # nothing active: the largest activation is 0
    torch.testing.assert_close(module.maximum, torch.tensor(0.9 * 1.2).double(), rtol=1e-6, atol=0)
    kept = module.maximum.clone()
    module.eval()(torch.tensor([100.0]).double())
    assert torch.equal(module.maximum, kept) and not module.maximum.requires_grad


def test_the_maximum_is_a_constant_for_gradients() -> None:
    module = RateNorm(maximum=1.0, momentum=0.5)
    z = torch.tensor([0.5, 1.0], requires_grad=True)
    module(z).sum().backward()
    theta = float(module.threshold.detach())
    torch.testing.assert_close(z.grad, torch.tensor([1 / theta, 0.0]))


def test_a_given_threshold_is_met_whatever_the_share() -> None:
    module = _module(q=-1.0)
    module.set_threshold(3.5)
    torch.testing.assert_close(module.threshold.detach(), torch.tensor(3.5).double(), rtol=1e-6, atol=0)
