"""Rounds of a regression whose targets give way to its predictions, and how many of them to take.

A plain fit comes first; in each round targets are relaxed (`relaxation.py`) where the last prediction is as good, and
the system is solved again with the same factor. Every round fits the calibration images better, and at some point only
them. What is behind tells which round to take: `telling` takes for each output the one with which the other half of the
images is told best.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from ftbc.calibrate.least_squares import BOTH, Block, Folds, Ridge, predicted
from ftbc.calibrate.relaxation import Relaxation

Found: TypeAlias = tuple[Block, Tensor, Tensor]
"""Inputs of a regression, what its outputs are now, and what they should be, the latter two ``[R, G, M]``."""

Solution: TypeAlias = tuple[Tensor, Tensor]
"""A change of weights ``[G, K, M]``, and offsets ``[parts, G, M]``."""


@dataclass(frozen=True)
class Rounds:
    """A regression and its relaxation; ridge: its penalty; rounds: how often targets are found anew."""

    fit: Ridge
    found: list[Found]
    ridge: float
    relaxation: Relaxation | None
    rounds: int

    def solutions(self, folds: Folds = BOTH) -> Iterator[Solution]:
        """The plain fit, then that of each round; folds: the halves of the images that are fitted."""
        own = [(block, have, y) for block, have, y in self.found if block.fold in folds]
        relaxation = self.relaxation
        D, offset = self.fit.solve((y - have for _, have, y in own), self.ridge, folds)
        yield D, offset
        if relaxation is None:
            return
        slack = relaxation.margin * self._error(own, D, offset) if relaxation.margin else D.new_zeros(())
        for _ in range(self.rounds):
            targets = (relaxation(y, predicted(b, have, D, offset), b.part, slack.to(y)) - have for b, have, y in own)
            D, offset = self.fit.solve(targets, self.ridge, folds)
            yield D, offset

    def last(self) -> Solution:
        """The solution after all rounds."""
        return deque(self.solutions(), maxlen=1)[0]

    def _error(self, found: list[Found], D: Tensor, offset: Tensor) -> Tensor:
        """The root mean square of what a fit leaves of each output, ``[G, M]``."""
        squares = D.new_zeros(D.shape[0] * D.shape[2])
        weights = D.new_zeros(())
        for block, have, y in found:
            squares += block.weight @ (y - predicted(block, have, D, offset)).square_().flatten(1)
            weights += block.weight.sum()
        team = self.fit.team
        return (team.sum(squares) / team.sum(weights).clamp(min=1e-300)).sqrt().view(D.shape[0], D.shape[2])


Pick: TypeAlias = Callable[[Rounds], Solution]
"""Takes one of the solutions."""


def telling(sent: Callable[[Tensor], Tensor], wanted: Callable[[Tensor], Tensor], part: int) -> Pick:
    """For each output the round that tells most on images that it was not fitted to, or no change at all.

    sent: what neurons make of a prediction ``[R, G, M]``; wanted: what that is to tell, from the target; part: that of
    the rows that count. Each half of the images is told by the fit to the other, as far as an affine map of what is
    sent can tell it: the squared correlation, summed over both halves.
    """

    def pick(rounds: Rounds) -> Solution:
        tried = _with_none(list(rounds.solutions()))
        told = sum(_told(rounds, fold, sent, wanted, part) for fold in BOTH)
        best = torch.as_tensor(told).argmax(0)  # the first where several are equal: the least change
        D, offset = (torch.stack(values) for values in zip(*tried, strict=True))
        groups, outputs = torch.meshgrid(*map(torch.arange, best.shape), indexing="ij")
        groups, outputs = groups.to(best.device), outputs.to(best.device)
        return D[best, groups, :, outputs].transpose(1, 2), offset[best, :, groups, outputs].movedim(2, 0)

    return pick


def _with_none(solutions: list[Solution]) -> list[Solution]:
    """Before all others: no change."""
    D, offset = solutions[0]
    return [(torch.zeros_like(D), torch.zeros_like(offset)), *solutions]


def _told(
    rounds: Rounds, fold: int, sent: Callable[[Tensor], Tensor], wanted: Callable[[Tensor], Tensor], part: int
) -> Tensor:
    """Squared correlations on one half of the images, with each solution for the other, ``[rounds + 2, G, M]``."""
    rows = [(block, have, y) for block, have, y in rounds.found if block.fold == fold]
    found = []
    for D, offset in _with_none(list(rounds.solutions((1 - fold,)))):
        sums = D.new_zeros(5, D.shape[0], D.shape[2])  # of n, a, n^2, a^2 and n a
        count = D.new_zeros(())
        for block, have, y in rows:
            here = block.part == part
            n, a = sent(predicted(block, have, D, offset))[here].double(), wanted(y)[here].double()
            sums += torch.stack([values.sum(0) for values in (n, a, n * n, a * a, n * a)])
            count += len(n)
        n, a, nn, aa, na = rounds.fit.team.sum(sums) / rounds.fit.team.sum(count).clamp(min=1)
        covariance, spread = (na - n * a).clamp(min=0), (nn - n * n) * (aa - a * a)
        found.append(torch.where(spread > 1e-24, covariance.pow(2) / spread.clamp(min=1e-24), 0 * spread))
    return torch.stack(found)
