"""Initial potentials, and what they mean for a neuron with a constant current."""

from __future__ import annotations

import pytest
import torch

from ftbc.initial import Given, Half, SpreadHalf, Zero
from ftbc.neuron import IntegrateFire

STEPS = 8


def _count(initial, current: torch.Tensor) -> torch.Tensor:
    theta = torch.ones(1, dtype=torch.float64)
    v0, bias = initial(theta, STEPS)
    neuron = IntegrateFire(STEPS, 1).set(theta, v0, bias)
    return neuron.run(current.view(1, -1, 1).expand(STEPS, -1, 1)).sum(0).flatten()


def test_values_and_shapes() -> None:
    theta = torch.tensor([2.0, 4.0])
    for initial, v0, total in (
        (Zero(), 0.0, 0.0),
        (Half(), 0.5, 0.0),
        (SpreadHalf(), 0.0, 0.5),
        (Given(0.3), 0.3, 0.0),
    ):
        potential, bias = initial(theta, STEPS)
        assert potential.tolist() == pytest.approx((theta * v0).tolist())
        assert bias.shape == (STEPS, 2)
        assert bias.sum(0).tolist() == pytest.approx((theta * total).tolist())


def test_zero_rounds_down_and_half_rounds_to_nearest() -> None:
    # Away from the ties, which floating point may put on either side.
    a = torch.linspace(0.01, 0.99, 61, dtype=torch.float64)
    assert torch.equal(_count(Zero(), a), torch.floor(a * STEPS))
    assert torch.equal(_count(Half(), a), torch.floor(a * STEPS + 0.5))
    assert torch.equal(_count(SpreadHalf(), a), torch.floor(a * STEPS + 0.5))
