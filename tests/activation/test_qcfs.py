"""The staircase of QCFS: its equation, and the gradients that the paper defines for it."""

from __future__ import annotations

import pytest
import torch

from ftbc.activation import QCFS

from .naive import each, gradients, inputs, qcfs, qcfs_by_theta, qcfs_by_z

SETTINGS = [(1, 1.0), (2, 0.7), (4, 1.3), (16, 3.0)]


@pytest.mark.parametrize(("levels", "theta"), SETTINGS)
def test_forward(levels: int, theta: float) -> None:
    z = inputs()
    found = QCFS(levels, theta).double()(z)
    wanted = each(qcfs, z, float(torch.tensor(theta)), levels)  # the parameter begins in single precision
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    assert len(found.detach().unique()) == levels + 1


@pytest.mark.parametrize(("levels", "theta"), SETTINGS)
def test_clamping_first_is_the_same(levels: int, theta: float) -> None:
    z, module = inputs(), QCFS(levels, theta).double()
    own = module.threshold.detach()
    released = torch.floor(torch.clamp(z / own, 0, 1) * levels + 0.5) / levels * own
    torch.testing.assert_close(module(z).detach(), released, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("levels", "theta"), SETTINGS)
def test_gradients(levels: int, theta: float) -> None:
    module, z, g = QCFS(levels, theta).double(), inputs(), inputs(seed=1)
    own = float(module.theta.detach())
    to_z, to_theta = gradients(module, z, module.theta, g)
    assert torch.equal(to_z, g * each(qcfs_by_z, z, own, levels))
    torch.testing.assert_close(to_theta, (g * each(qcfs_by_theta, z, own, levels)).sum(), rtol=1e-11, atol=1e-11)


def test_the_range_of_the_gradient_ends_where_the_paper_says() -> None:
    module = QCFS(levels=2, threshold=1.0).double()
    edges = torch.tensor([-0.26, -0.24, 0.74, 0.76, 1.1], dtype=torch.float64)
    to_z, _ = gradients(module, edges, module.theta, torch.ones(5, dtype=torch.float64))
    assert to_z.tolist() == [0, 1, 1, 0, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("levels", [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 31])
def test_the_ends_of_the_range_belong_to_its_outside(levels: int, dtype: torch.dtype) -> None:
    """At z = -theta/2L and z = theta - theta/2L themselves, which these numbers hit exactly; and one number before."""
    module = QCFS(levels, float(levels)).to(dtype)
    top = torch.tensor(levels - 0.5, dtype=dtype)
    within = torch.nextafter(top, torch.zeros_like(top))
    for z, by_z, by_theta in ((torch.tensor(-0.5, dtype=dtype), 0, 0), (top, 0, 1)):
        assert gradients(module, z[None], module.theta, torch.ones(1, dtype=dtype)) == (by_z, by_theta)
    if within + 0.5 < levels:  # else it rounds to the end
        by_z, by_theta = gradients(module, within[None], module.theta, torch.ones(1, dtype=dtype))
        assert by_z == 1 and abs(float(by_theta) + 0.5 / levels) < 1e-5


def test_gradcheck_where_it_is_smooth() -> None:
    above = inputs(20, low=1.5, high=4.0).requires_grad_()
    below = inputs(20, low=-4.0, high=-0.5).requires_grad_()
    module = QCFS(4, 1.3).double()
    assert torch.autograd.gradcheck(lambda x, y, _: module(torch.cat([x, y])), (above, below, module.theta), eps=1e-7)


def test_only_the_gradients_that_are_needed() -> None:
    module = QCFS(4)
    module.theta.requires_grad_(False)
    z = torch.linspace(-1, 9, 50).requires_grad_()
    module(z).sum().backward()
    assert module.theta.grad is None and 0 < z.grad.sum() < 50
    module.theta.requires_grad_(True)
    module(z.detach()).sum().backward()
    assert module.theta.grad is not None


def test_any_shape_and_precision() -> None:
    module = QCFS(4, 1.0)
    z = torch.randn(2, 3, 4, 5)
    out = module(z)
    assert out.shape == z.shape and out.dtype == torch.float32
    last = z.to(memory_format=torch.channels_last)
    assert module(last).is_contiguous(memory_format=torch.channels_last) and torch.equal(module(last), out)
