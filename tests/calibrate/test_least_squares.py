"""Ridge regression from streamed sums against its formula written out, and its properties."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ftbc.calibrate.least_squares import RIDGES, Block, Ridge, scales


def _rows(count: int, groups: int, columns: int, outputs: int, parts: int = 1) -> tuple[Block, Tensor]:
    x = torch.rand(count, groups, columns, dtype=torch.float64) + 0.3
    y = torch.rand(count, groups, outputs, dtype=torch.float64)
    weight = torch.rand(count, dtype=torch.float64) + 0.1
    part = torch.randint(parts, (count,))
    part[:parts] = torch.arange(parts)
    return Block(x, weight, part), y


def _penalty(fit: Ridge, ridge: float) -> Tensor:
    """What the square of each row of D costs, ``[G, K]``: from the rows themselves, part by part."""
    total = 0.0
    for block in fit.blocks:
        for part in block.part.unique():
            chosen = block.part == part
            x, w = block.x[chosen], block.weight[chosen].view(-1, 1, 1)
            total = total + (w * (x - (w * x).sum(0) / w.sum()) ** 2).sum(0)
    return ridge * total


def _objective(block: Block, y: Tensor, D: Tensor, offset: Tensor, penalty: Tensor) -> float:
    """The ridge objective with loops over rows and groups."""
    total = 0.0
    for row in range(len(y)):
        for group in range(y.shape[1]):
            error = y[row, group] - block.x[row, group] @ D[group] - offset[block.part[row], group]
            total += float(block.weight[row] * error.pow(2).sum())
    return total + float((penalty.unsqueeze(2) * D.pow(2)).sum())


def test_solution_equals_lstsq_of_the_stacked_problem() -> None:
    """One offset column for each part, and rows sqrt(penalty) for the ridge."""
    block, y = _rows(60, 1, 4, 3, parts=2)
    fit = Ridge([block], parts=2)
    D, offset = fit.solve([y], ridge=0.1)
    weight = block.weight.sqrt().unsqueeze(1)
    members = torch.nn.functional.one_hot(block.part, 2).double()
    ridge = torch.cat([_penalty(fit, 0.1)[0].sqrt().diag(), torch.zeros(4, 2).double()], 1)
    A = torch.cat([weight * torch.cat([block.x[:, 0], members], 1), ridge])
    right = torch.cat([weight * y[:, 0], torch.zeros(4, 3).double()])
    wanted = torch.linalg.lstsq(A, right).solution
    torch.testing.assert_close(D[0], wanted[:4], rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(offset[:, 0], wanted[4:], rtol=1e-9, atol=1e-12)


def test_units_of_an_input_do_not_matter() -> None:
    block, y = _rows(40, 2, 3, 2, parts=3)
    scale = torch.tensor([1.0, 5.0, 0.4]).double()
    D, offset = Ridge([block], 3).solve([y], 0.2)
    scaled = Block(block.x * scale, block.weight, block.part)
    found = Ridge([scaled], 3).solve([y], 0.2)
    torch.testing.assert_close(found[0] * scale.unsqueeze(1), D)
    torch.testing.assert_close(found[1], offset)


@pytest.mark.parametrize("groups", [1, 3])
def test_no_other_solution_has_a_smaller_objective(groups: int) -> None:
    block, y = _rows(30, groups, 4, 2, parts=2)
    fit = Ridge([block], parts=2)
    D, offset = fit.solve([y], ridge=0.05)
    penalty = _penalty(fit, 0.05)
    least = _objective(block, y, D, offset, penalty)
    assert least < _objective(block, y, torch.zeros_like(D), torch.zeros_like(offset), penalty)
    for seed in range(6):
        noise = torch.Generator().manual_seed(seed)
        moved = D + 1e-3 * torch.randn(D.shape, generator=noise, dtype=D.dtype)
        shifted = offset + 1e-3 * torch.randn(offset.shape, generator=noise, dtype=D.dtype)
        assert least < _objective(block, y, moved, shifted, penalty)


def test_streamed_equals_whole_and_groups_equal_their_own_fits() -> None:
    block, y = _rows(50, 3, 4, 2, parts=2)
    cuts = [slice(0, 7), slice(7, 30), slice(30, 50)]
    blocks = [Block(block.x[cut], block.weight[cut], block.part[cut], i % 2) for i, cut in enumerate(cuts)]
    whole, streamed = Ridge([block], 2), Ridge(blocks, 2)
    D, offset = whole.solve([y], 0.02)
    found = streamed.solve([y[cut] for cut in cuts], 0.02)
    torch.testing.assert_close(found[0], D)
    torch.testing.assert_close(found[1], offset)
    for group in range(3):
        own = Ridge([Block(block.x[:, group : group + 1], block.weight, block.part)], 2)
        d, o = own.solve([y[:, group : group + 1]], 0.02)
        torch.testing.assert_close(d[0], D[group])
        torch.testing.assert_close(o[:, 0], offset[:, group])


def test_dead_and_repeated_columns_are_no_trouble() -> None:
    """A Gram matrix that is singular, and single precision that may make it indefinite."""
    x = torch.rand(200, 1, 1).expand(200, 1, 8).clone()
    x[:, :, 5:] = 0
    block = Block(x, torch.ones(200), torch.zeros(200, dtype=torch.int64))
    D, offset = Ridge([block]).solve([2 * x[:, :, :1] + 1], ridge=1e-12)
    assert bool(torch.isfinite(D).all()) and float(D[0, 5:].abs().max()) == 0
    assert float(D.sum()) == pytest.approx(2, abs=1e-2) and float(offset) == pytest.approx(1, abs=1e-2)
    nothing = Block(torch.zeros(5, 1, 3), torch.ones(5), torch.zeros(5, dtype=torch.int64))
    D, offset = Ridge([nothing]).solve([torch.ones(5, 1, 2)], ridge=0.1)
    assert float(D.abs().max()) == 0 and offset.flatten().tolist() == [1, 1]


def test_single_precision_is_added_up_in_double() -> None:
    """Many blocks of spike counts: the sums of their products stay exact."""
    counts = torch.randint(0, 5, (64, 1, 6)).float()
    blocks = [Block(counts, torch.ones(64), torch.zeros(64, dtype=torch.int64))] * 3000
    fit, x = Ridge(blocks), counts[:, 0].double()
    assert torch.equal(fit.first[0, 0, 0], 3000 * x.sum(0))
    assert torch.equal(fit.raw[0, 0], 3000 * (x.t() @ x))


def _folds(rows: int, noise: float) -> tuple[list[Block], list[Tensor]]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(2 * rows, 1, 30, generator=generator, dtype=torch.float64)
    y = x @ torch.randn(30, 2, generator=generator, dtype=torch.float64) * 0.2
    y = y + noise * torch.randn(y.shape, generator=generator, dtype=torch.float64)
    parts = torch.zeros(rows, dtype=torch.int64)
    blocks = [Block(half, torch.ones(rows).double(), parts, fold) for fold, half in enumerate(x.split(rows))]
    return blocks, list(y.split(rows))


def test_the_chosen_ridge_has_the_least_error_on_the_other_fold() -> None:
    blocks, y = _folds(40, 1.0)
    fit = Ridge(blocks)
    errors = {}
    for ridge in RIDGES:
        error = 0.0
        for own, other in ((0, 1), (1, 0)):
            D, _ = Ridge([Block(blocks[own].x, blocks[own].weight, blocks[own].part)]).solve([y[own]], ridge)
            left = y[other] - blocks[other].x @ D
            error += float((left - left.mean(0)).pow(2).sum())
        errors[ridge] = error
    assert fit.choose(y) == min(errors, key=lambda ridge: errors[ridge])


def test_few_noisy_rows_ask_for_more_ridge_than_many_clean_ones() -> None:
    few, many = _folds(20, 2.0), _folds(2000, 0.1)
    assert Ridge(few[0]).choose(few[1]) > 100 * Ridge(many[0]).choose(many[1])
    alone = [Block(block.x, block.weight, block.part, 0) for block in few[0]]
    assert Ridge(alone).choose(few[1]) == RIDGES[-1]  # nothing to compare with: as little change as possible


def test_inputs_that_hardly_vary_are_held_back() -> None:
    S = torch.diag(torch.tensor([4.0, 2.0, 1e-9, 0.0])).unsqueeze(0).double()
    assert scales(S)[0].tolist() == pytest.approx([4, 2, 1.5e-3, 1.5e-3], rel=1e-6)
