"""Weighted least squares with a ridge, from sums that are added up block by block of rows.

    minimise over D and the offsets o_p   sum_r w_r | y_r - x_r D - o_p(r) |^2  +  ridge * mean(diag S) |D|^2

Each row belongs to a part p with an offset of its own, which is not penalised; S is the covariance of x within the
parts. In closed form, with a bar for the weighted mean of a part:

    S = sum_r w_r (x - xbar_p)^T (x - xbar_p) ,   D = (S + ridge mean(diag S) I)^-1 sum_r w_r (x - xbar_p)^T y ,
    o_p = ybar_p - xbar_p D

Products of a block are formed in the precision of its rows, sums over blocks in float64.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Block:
    """Rows of inputs x ``[R, G, K]`` with weights ``[R]`` and the numbers of their parts ``[R]``; G: groups of
    channels that are fitted apart from each other."""

    x: Tensor
    weight: Tensor
    part: Tensor


class Ridge:
    """The sums over inputs, and solutions for as many outputs as one likes.

    >>> x = torch.rand(9, 1, 2)
    >>> fit = Ridge([Block(x, torch.ones(9), torch.zeros(9, dtype=torch.int64))], ridge=0.0)
    >>> D, o = fit.solve([3 * x[:, :, :1] + 1])
    >>> D.flatten().tolist(), o.item()  # doctest: +SKIP
    ([3.0, 0.0], 1.0)
    """

    def __init__(self, blocks: list[Block], ridge: float, parts: int = 1) -> None:
        self.blocks = blocks
        _, groups, columns = blocks[0].x.shape
        like = blocks[0].x.new_zeros((), dtype=torch.float64)
        second = like.new_zeros(groups, columns, columns)
        self.total = like.new_zeros(parts)
        self.first = like.new_zeros(parts, groups, columns)
        for block in blocks:
            x = block.x.transpose(0, 1)
            second += (x.transpose(1, 2) @ (x * block.weight.unsqueeze(1))).double()
            self.total.index_add_(0, block.part, block.weight.double())
            self.first += _by_part(block, block.x, parts)
        mean = self.mean(self.first)
        second -= torch.einsum("pgk,pgl->gkl", self.first, mean)
        self.second = (second + second.transpose(1, 2)) / 2
        size = self.second.diagonal(dim1=1, dim2=2).mean(1)
        self.penalty = ridge * torch.where(size > 0, size, torch.ones_like(size))
        self._factor = self._cholesky()

    def solve(self, outputs: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
        """D ``[G, K, M]`` and the offsets ``[parts, G, M]`` for outputs ``[R, G, M]`` of each block; in float64."""
        parts = len(self.total)
        cross = y = self.total.new_zeros(())
        for block, rows in zip(self.blocks, outputs, strict=True):
            weighted = rows.transpose(0, 1) * block.weight.unsqueeze(1)
            cross = cross + (block.x.permute(1, 2, 0) @ weighted).double()
            y = y + _by_part(block, rows, parts)
        ybar = self.mean(y)
        cross = cross - torch.einsum("pgk,pgm->gkm", self.first, ybar)
        D = torch.cholesky_solve(cross, self._factor)
        return D, ybar - torch.einsum("pgk,gkm->pgm", self.mean(self.first), D)

    def mean(self, sums: Tensor) -> Tensor:
        """Weighted means of the parts from weighted sums ``[parts, ...]``; zero where a part has no rows."""
        return sums / self.total.clamp(min=1e-300).view(-1, *[1] * (sums.ndim - 1))

    def _cholesky(self) -> Tensor:
        """The factor of S + penalty; where rounding has made that indefinite, the penalty grows until it is not."""
        unit = torch.eye(self.second.shape[1], dtype=torch.float64, device=self.second.device)
        while True:
            factor, failed = torch.linalg.cholesky_ex(self.second + self.penalty.view(-1, 1, 1) * unit)
            if not bool(failed.any()):
                return factor
            size = self.second.diagonal(dim1=1, dim2=2).mean(1).clamp(min=1e-300)
            self.penalty = torch.where(failed > 0, torch.maximum(10 * self.penalty, 1e-12 * size), self.penalty)


def _by_part(block: Block, rows: Tensor, parts: int) -> Tensor:
    """Weighted sums of rows ``[R, G, M]`` over each part, ``[parts, G, M]``."""
    flat = rows.flatten(1)
    if parts == 1:
        return (block.weight @ flat).double().view(1, *rows.shape[1:])
    members = flat.new_zeros(parts, len(flat))
    members[block.part, torch.arange(len(flat), device=flat.device)] = block.weight
    return (members @ flat).double().view(parts, *rows.shape[1:])
