"""Read-out weights: the combination of answers with the least error, and a last layer that fits it."""

from __future__ import annotations

import pytest
import torch

import ftbc
from ftbc.calibrate import QuantileBias, ReadOut
from ftbc.calibrate.read_out import read_out_weights
from ftbc.errors import RecipeError
from ftbc.simulate import layerwise
from ftbc.simulate.readout import read
from tests.calibrate.walk.test_walk import lively, pictures
from tests.networks import NETWORKS


def _errors(steps: int) -> torch.Tensor:
    """Errors of single steps, ``[T, rows]``: dependent, and smaller at later steps."""
    common = torch.randn(1, 500, dtype=torch.float64)
    return (0.3 * common + torch.randn(steps, 500, dtype=torch.float64)) / torch.arange(1, steps + 1).view(-1, 1)


def test_rows_sum_to_one_and_no_other_row_has_a_smaller_error() -> None:
    errors = _errors(5)
    weights = read_out_weights(errors @ errors.t(), even=0.0)
    torch.testing.assert_close(weights.sum(1), torch.ones(5).double())
    for t in range(5):
        assert bool((weights[t, t + 1 :] == 0).all())
        least = float((weights[t] @ errors).pow(2).sum())
        for seed in range(5):
            move = torch.randn(t + 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
            other = weights[t].clone()
            other[: t + 1] += 0.05 * (move - move.mean())
            assert least <= float((other @ errors).pow(2).sum())


def test_equals_least_squares_with_the_constraint_put_in() -> None:
    errors = _errors(4)
    found = read_out_weights(errors @ errors.t(), even=0.0)[-1]
    # r_4 = 1 - r_1 - r_2 - r_3
    A = (errors[:3] - errors[3]).t()
    free = torch.linalg.lstsq(A, -errors[3].unsqueeze(1)).solution.flatten()
    torch.testing.assert_close(found, torch.cat([free, 1 - free.sum().view(1)]), rtol=1e-8, atol=1e-10)


def test_a_penalty_draws_the_weights_to_the_plain_mean() -> None:
    errors = _errors(4)
    products = errors @ errors.t()
    least, even = read_out_weights(products, even=0.0)[-1], torch.full((4,), 0.25, dtype=torch.float64)
    far = [float((read_out_weights(products, penalty)[-1] - even).norm()) for penalty in (0.0, 0.1, 1.0, 10.0, 1e6)]
    assert far == sorted(far, reverse=True) and far[0] == float((least - even).norm()) and far[-1] < 1e-5
    # A penalty is as good as further errors of that size, which no two steps have in common.
    size = products.diagonal().mean().sqrt()
    more = torch.cat([errors, 0.1**0.5 * size * torch.eye(4, dtype=torch.float64)], 1)
    torch.testing.assert_close(read_out_weights(products, 0.1)[-1], read_out_weights(more @ more.t(), 0.0)[-1])


def test_a_network_without_errors_reads_the_mean() -> None:
    torch.testing.assert_close(
        read_out_weights(torch.zeros(3, 3), even=0.1), torch.ones(3, 3).tril() / torch.tensor([[1.0], [2], [3]])
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_in_a_network_it_lowers_the_error_at_every_step(name: str) -> None:
    torch.manual_seed(5)
    network, images = lively(NETWORKS[name]()), pictures(100)
    base = ftbc.convert(network, images, 4, ftbc.Recipe(calibrate=(QuantileBias(),)))
    snn = ftbc.convert(network, images, 4, ftbc.Recipe(calibrate=(QuantileBias(), ReadOut())))
    z = network(images).detach()
    before, after = ((out(images) - z).pow(2).mean((1, 2)) for out in (base, snn))
    assert snn.readout is not None and snn.readout.shape == (4, 4)
    assert float(after[-1]) < 0.95 * float(before[-1])
    single = layerwise(snn.graph, images, 4)
    # The plain mean is one of the combinations that it could have chosen.
    assert bool(
        ((read(single, snn.readout) - z).pow(2).mean((1, 2)) <= (read(single) - z).pow(2).mean((1, 2)) + 1e-9).all()
    )
    stepped = torch.stack([snn.step(images) for _ in range(4)])
    torch.testing.assert_close(stepped, snn(images), rtol=1e-9, atol=1e-12)


def test_wrong_settings_are_refused() -> None:
    for wrong in ({"ridge": -0.1}, {"rounds": 0}, {"rows": 0}, {"even": -0.1}):
        with pytest.raises(RecipeError, match="ReadOut"):
            ReadOut(**wrong)
