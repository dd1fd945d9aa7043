"""Which round of a regression is taken: the choice written out, and what it does where a fit learns by heart."""

from __future__ import annotations

import torch
from torch import Tensor

from ftbc.calibrate.least_squares import Block, Ridge
from ftbc.calibrate.relaxation import FiringEdges
from ftbc.calibrate.rounds import Rounds, telling

ROWS, INPUTS, OUTPUTS, RIDGE = 60, 7, 5, 0.05
EDGES = FiringEdges(torch.full((1, OUTPUTS), 0.2).double(), torch.full((1, OUTPUTS), 0.2).double(), 1.0)


def _sent(z: Tensor) -> Tensor:
    return (z >= 0.2).to(z.dtype)


def _rounds(noise: float, off: float = 0.3, rounds: int = 3) -> tuple[Rounds, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(ROWS, INPUTS, dtype=torch.float64, generator=generator)
    W = torch.randn(INPUTS, OUTPUTS, dtype=torch.float64, generator=generator)
    y = x @ W + noise * torch.randn(ROWS, OUTPUTS, dtype=torch.float64, generator=generator)
    now = x @ (W + off * torch.randn(INPUTS, OUTPUTS, dtype=torch.float64, generator=generator))
    halves = (slice(0, ROWS // 2), slice(ROWS // 2, ROWS))
    blocks = [
        Block(x[half].unsqueeze(1), torch.ones(ROWS // 2).double(), torch.zeros(ROWS // 2).long(), fold)
        for fold, half in enumerate(halves)
    ]
    found = [(block, now[half].unsqueeze(1), y[half].unsqueeze(1)) for block, half in zip(blocks, halves, strict=True)]
    return Rounds(Ridge(blocks), found, RIDGE, EDGES, rounds), x, now, y


def _by_hand(x: Tensor, now: Tensor, y: Tensor, rounds: int) -> list[tuple[Tensor, Tensor]]:
    """No change, the plain fit, and that of each round, by least squares with further rows for the ridge."""
    centred = x - x.mean(0)
    A = torch.cat([centred, (RIDGE * centred.pow(2).sum(0)).sqrt().diag()])

    def solve(target: Tensor) -> tuple[Tensor, Tensor]:
        r = target - now
        D = torch.linalg.lstsq(A, torch.cat([r - r.mean(0), torch.zeros(INPUTS, OUTPUTS).double()])).solution
        return D, r.mean(0) - x.mean(0) @ D

    D, offset = solve(y)
    found = [(torch.zeros_like(D), torch.zeros_like(offset)), (D, offset)]
    margin = (y - now - x @ D - offset).pow(2).mean(0).sqrt()
    for _ in range(rounds):
        prediction = now + x @ D + offset
        above = torch.maximum(prediction, torch.minimum(y, 0.2 + margin))
        below = torch.minimum(prediction, torch.maximum(y, 0.2 - margin))
        D, offset = solve(torch.where(y > 0.2, above, below))
        found.append((D, offset))
    return found


def test_each_output_takes_the_round_that_tells_most_of_the_other_half() -> None:
    rounds, x, now, y = _rounds(noise=1.0)
    D, offset = telling(_sent, torch.relu, part=0)(rounds)
    halves = (slice(0, ROWS // 2), slice(ROWS // 2, ROWS))
    told = torch.zeros(5, OUTPUTS).double()
    for own, other in (halves, halves[::-1]):
        for number, (change, shift) in enumerate(_by_hand(x[own], now[own], y[own], 3)):
            n = _sent(now[other] + x[other] @ change + shift)
            for m in range(OUTPUTS):
                told[number, m] += torch.corrcoef(torch.stack([n[:, m], y[other, m].relu()]))[0, 1] ** 2
    best = told.argmax(0)
    assert len(best.unique()) > 1, "the outputs differ in what they take"
    solutions = _by_hand(x, now, y, 3)
    for m, number in enumerate(best.tolist()):
        torch.testing.assert_close(D[0, :, m], solutions[number][0][:, m], rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(offset[0, 0, m], solutions[number][1][m], rtol=1e-7, atol=1e-9)


def test_nothing_changes_where_nothing_is_to_be_learnt() -> None:
    """Targets that have nothing to do with the inputs: what a half has learnt of them is no use to the other."""
    rounds, _, now, _ = _rounds(noise=0.0, off=0.0)
    chance = torch.randn(ROWS, OUTPUTS, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    good = now.sign() * 0.5 + 0.2 + 0.3 * chance  # what is sent now tells it already
    found = [(block, have, good[part].unsqueeze(1)) for (block, have, _), part in
             zip(rounds.found, (slice(0, ROWS // 2), slice(ROWS // 2, ROWS)), strict=True)]  # fmt: skip
    best = telling(lambda z: (z >= 0).to(z.dtype), torch.relu, part=0)(Rounds(rounds.fit, found, RIDGE, EDGES, 3))
    kept = int((best[0] == 0).all(1).sum())
    assert kept >= 3


def test_without_a_choice_the_last_round_is_taken() -> None:
    rounds, x, now, y = _rounds(noise=1.0)
    D, offset = rounds.last()
    change, shift = _by_hand(x, now, y, 3)[-1]
    torch.testing.assert_close(D[0], change, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(offset[0, 0], shift, rtol=1e-7, atol=1e-9)


def test_groups_are_chosen_for_apart_from_each_other() -> None:
    """Two groups at once give what each gives alone."""
    alone = [_rounds(noise=1.0), _rounds(noise=0.3, off=0.6)]
    blocks, found = [], []
    for pair in zip(*(rounds.found for rounds, *_ in alone), strict=True):
        first = pair[0][0]
        x, have, y = (torch.cat([each[place] for each in parts], 1) for place, parts in
                      ((0, [(block.x,) for block, _, _ in pair]), (1, pair), (2, pair)))  # fmt: skip
        blocks.append(Block(x, first.weight, first.part, first.fold))
        found.append((blocks[-1], have, y))
    edges = FiringEdges(torch.full((1, 2 * OUTPUTS), 0.2).double(), torch.full((1, 2 * OUTPUTS), 0.2).double(), 1.0)
    D, offset = telling(_sent, torch.relu, part=0)(Rounds(Ridge(blocks), found, RIDGE, edges, 3))
    for group, (rounds, *_) in enumerate(alone):
        change, shift = telling(_sent, torch.relu, part=0)(rounds)
        torch.testing.assert_close(D[group], change[0], rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(offset[:, group], shift[:, 0], rtol=1e-7, atol=1e-9)
