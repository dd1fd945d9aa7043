"""Ridge regression from streamed sums against its formula written out, and its properties."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ftbc.calibrate.least_squares import Block, Ridge


def _rows(count: int, groups: int, columns: int, outputs: int, parts: int = 1) -> tuple[Block, Tensor]:
    x = torch.rand(count, groups, columns, dtype=torch.float64) + 0.3
    y = torch.rand(count, groups, outputs, dtype=torch.float64)
    weight = torch.rand(count, dtype=torch.float64) + 0.1
    part = torch.randint(parts, (count,))
    part[:parts] = torch.arange(parts)
    return Block(x, weight, part), y


def _objective(block: Block, y: Tensor, D: Tensor, offset: Tensor, penalty: Tensor) -> float:
    """The ridge objective with loops over rows and groups."""
    total = 0.0
    for row in range(len(y)):
        for group in range(y.shape[1]):
            error = y[row, group] - block.x[row, group] @ D[group] - offset[block.part[row], group]
            total += float(block.weight[row] * error.pow(2).sum())
    return total + float((penalty.view(-1, 1, 1) * D.pow(2)).sum())


def test_solution_equals_lstsq_of_the_stacked_problem() -> None:
    """One offset column for each part, and rows sqrt(penalty) for the ridge."""
    block, y = _rows(60, 1, 4, 3, parts=2)
    fit = Ridge([block], ridge=0.1, parts=2)
    D, offset = fit.solve([y])
    weight = block.weight.sqrt().unsqueeze(1)
    members = torch.nn.functional.one_hot(block.part, 2).double()
    ridge = torch.cat([fit.penalty.sqrt() * torch.eye(4).double(), torch.zeros(4, 2).double()], 1)
    A = torch.cat([weight * torch.cat([block.x[:, 0], members], 1), ridge])
    right = torch.cat([weight * y[:, 0], torch.zeros(4, 3).double()])
    wanted = torch.linalg.lstsq(A, right).solution
    torch.testing.assert_close(D[0], wanted[:4], rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(offset[:, 0], wanted[4:], rtol=1e-9, atol=1e-12)


def test_the_penalty_is_relative_to_the_mean_variance_within_parts() -> None:
    block, _ = _rows(40, 2, 3, 1, parts=3)
    fit = Ridge([block], ridge=0.25, parts=3)
    for group in range(2):
        total = 0.0
        for part in range(3):
            chosen = block.part == part
            x, w = block.x[chosen, group], block.weight[chosen].unsqueeze(1)
            mean = (w * x).sum(0) / w.sum()
            total += float((w * (x - mean) ** 2).sum())
        assert float(fit.penalty[group]) == pytest.approx(0.25 * total / 3)


@pytest.mark.parametrize("groups", [1, 3])
def test_no_other_solution_has_a_smaller_objective(groups: int) -> None:
    block, y = _rows(30, groups, 4, 2, parts=2)
    fit = Ridge([block], ridge=0.05, parts=2)
    D, offset = fit.solve([y])
    least = _objective(block, y, D, offset, fit.penalty)
    assert least < _objective(block, y, torch.zeros_like(D), torch.zeros_like(offset), fit.penalty)
    for seed in range(6):
        noise = torch.Generator().manual_seed(seed)
        moved = D + 1e-3 * torch.randn(D.shape, generator=noise, dtype=D.dtype)
        shifted = offset + 1e-3 * torch.randn(offset.shape, generator=noise, dtype=D.dtype)
        assert least < _objective(block, y, moved, shifted, fit.penalty)


def test_streamed_equals_whole_and_groups_equal_their_own_fits() -> None:
    block, y = _rows(50, 3, 4, 2, parts=2)
    cuts = [slice(0, 7), slice(7, 30), slice(30, 50)]
    blocks = [Block(block.x[cut], block.weight[cut], block.part[cut]) for cut in cuts]
    whole, streamed = Ridge([block], 0.02, 2), Ridge(blocks, 0.02, 2)
    D, offset = whole.solve([y])
    found = streamed.solve([y[cut] for cut in cuts])
    torch.testing.assert_close(found[0], D)
    torch.testing.assert_close(found[1], offset)
    for group in range(3):
        own = Ridge([Block(block.x[:, group : group + 1], block.weight, block.part)], 0.02, 2)
        d, o = own.solve([y[:, group : group + 1]])
        torch.testing.assert_close(d[0], D[group])
        torch.testing.assert_close(o[:, 0], offset[:, group])


def test_dead_and_repeated_columns_are_no_trouble() -> None:
    """A Gram matrix that is singular, and single precision that may make it indefinite."""
    x = torch.rand(200, 1, 1).expand(200, 1, 8).clone()
    x[:, :, 5:] = 0
    block = Block(x, torch.ones(200), torch.zeros(200, dtype=torch.int64))
    D, offset = Ridge([block], ridge=1e-12).solve([2 * x[:, :, :1] + 1])
    assert bool(torch.isfinite(D).all()) and float(D[0, 5:].abs().max()) == 0
    assert float(D.sum()) == pytest.approx(2, abs=1e-2) and float(offset) == pytest.approx(1, abs=1e-2)
    nothing = Block(torch.zeros(5, 1, 3), torch.ones(5), torch.zeros(5, dtype=torch.int64))
    D, offset = Ridge([nothing], ridge=0.1).solve([torch.ones(5, 1, 2)])
    assert float(D.abs().max()) == 0 and offset.flatten().tolist() == [1, 1]


def test_single_precision_is_added_up_in_double() -> None:
    """Many blocks of spike counts: the sums of their products stay exact."""
    counts = torch.randint(0, 5, (64, 1, 6)).float()
    blocks = [Block(counts, torch.ones(64), torch.zeros(64, dtype=torch.int64))] * 3000
    fit = Ridge(blocks, 1e-6)
    x = counts[:, 0].double()
    assert torch.equal(fit.first[0, 0], 3000 * x.sum(0))
    wanted = 3000 * ((x.t() @ x) - torch.outer(x.sum(0), x.mean(0)))
    torch.testing.assert_close(fit.second[0], wanted, rtol=1e-12, atol=1e-6)
