"""Weighted least squares with a ridge, from sums that are added up block by block of rows.

    minimise over D and the offsets o_p   sum_r w_r | y_r - x_r D - o_p(r) |^2  +  ridge sum_k S_kk |D_k|^2

Each row belongs to a part p with an offset of its own, which is not penalised; S is the covariance of x within the
parts, so that the penalty does not depend on the units of an input. In closed form, with a bar for the weighted mean of
a part:

    S = sum_r w_r (x - xbar_p)^T (x - xbar_p) ,   C = sum_r w_r (x - xbar_p)^T y ,
    D = (S + ridge diag S)^-1 C ,   o_p = ybar_p - xbar_p D

Products of a block are formed in the precision of its rows, sums over blocks in float64.

*Which ridge.* Rows come in two folds (two halves of the images). D from one fold leaves on the other, up to a constant,
the error  tr(D^T S D) - 2 tr(D^T C)  with S and C of that other fold: no further look at the rows. The ridge with the
least sum of both errors is the one that generalises best.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ftbc.processes import ALONE, Team

RIDGES = (1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class Block:
    """Rows of inputs x ``[R, G, K]`` with weights ``[R]`` and the numbers of their parts ``[R]``; G: groups of
    channels that are fitted apart from each other; fold: which half of the images they come from, 0 or 1."""

    x: Tensor
    weight: Tensor
    part: Tensor
    fold: int = 0


class Ridge:
    """The sums over inputs of all blocks, and solutions for as many outputs as one likes.

    team: the processes whose blocks these are a part of; all of them get the same solutions.

    >>> x = torch.rand(9, 1, 2)
    >>> fit = Ridge([Block(x, torch.ones(9), torch.zeros(9, dtype=torch.int64))])
    >>> D, o = fit.solve([3 * x[:, :, :1] + 1], ridge=1e-9)
    >>> D.flatten().round(decimals=3).abs().tolist(), round(o.item(), 3)
    ([3.0, 0.0], 1.0)
    """

    def __init__(self, blocks: Sequence[Block], parts: int = 1, team: Team = ALONE) -> None:
        self.blocks, self.team = blocks, team
        _, groups, columns = blocks[0].x.shape
        like = torch.zeros((), dtype=torch.float64, device=blocks[0].x.device)
        self.total = like.new_zeros(2, parts)
        self.first = like.new_zeros(2, parts, groups, columns)
        second = like.new_zeros(2, groups, columns, columns)
        for block in blocks:
            x = block.x.transpose(0, 1)
            second[block.fold] += (x.transpose(1, 2) @ (x * block.weight.unsqueeze(1))).double()
            self.total[block.fold].index_add_(0, block.part, block.weight.double())
            self.first[block.fold] += _by_part(block, block.x, parts)
        self.total, self.first, self.raw = team.sum(self.total), team.sum(self.first), team.sum(second)
        self._factors: dict[float, Tensor] = {}

    def solve(self, outputs: Iterable[Tensor], ridge: float) -> tuple[Tensor, Tensor]:
        """D ``[G, K, M]`` and the offsets ``[parts, G, M]`` for outputs ``[R, G, M]`` of each block; in float64."""
        raw, y = (sums.sum(0) for sums in self._cross(outputs))
        total, first = self.total.sum(0), self.first.sum(0)
        if ridge not in self._factors:
            self._factors[ridge] = factorised(_centred(self.raw.sum(0), first, first, total), ridge)
        D = torch.cholesky_solve(_centred(raw, first, y, total), self._factors[ridge])
        return D, _mean(y, total) - torch.einsum("pgk,gkm->pgm", _mean(first, total), D)

    def choose(self, outputs: Iterable[Tensor], ridges: Sequence[float] = RIDGES) -> float:
        """The ridge with which the solution of each fold fits the other best; the last where a fold has no rows."""
        if not bool((self.total.sum(1) > 0).all()):
            return ridges[-1]
        raw, y = self._cross(outputs)
        S = [_centred(self.raw[f], self.first[f], self.first[f], self.total[f]) for f in (0, 1)]
        C = [_centred(raw[f], self.first[f], y[f], self.total[f]) for f in (0, 1)]
        errors = []
        for ridge in ridges:
            error = 0.0
            for fold, other in ((0, 1), (1, 0)):
                D = torch.cholesky_solve(C[fold], factorised(S[fold], ridge))
                error += float((D * (S[other] @ D - 2 * C[other])).sum())
            errors.append(error)
        return ridges[errors.index(min(errors))]

    def _cross(self, outputs: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
        """Sums of x^T y ``[2, G, K, M]`` and of y in each part ``[2, parts, G, M]`` for both folds."""
        raw, y = [self.total.new_zeros(())] * 2, [self.total.new_zeros(())] * 2
        for block, rows in zip(self.blocks, outputs, strict=True):
            weighted = rows.transpose(0, 1) * block.weight.unsqueeze(1)
            raw[block.fold] = raw[block.fold] + (block.x.permute(1, 2, 0) @ weighted).double()
            y[block.fold] = y[block.fold] + _by_part(block, rows, self.total.shape[1])
        like, means = max(raw, key=torch.numel), max(y, key=torch.numel)
        both = torch.stack([r.expand_as(like) for r in raw]), torch.stack([m.expand_as(means) for m in y])
        return self.team.sum(both[0]), self.team.sum(both[1])


def factorised(S: Tensor, ridge: float) -> Tensor:
    """The Cholesky factor of S + ridge diag S; where rounding has made that indefinite, with a larger ridge."""
    penalty = ridge * scales(S)
    while True:
        factor, failed = torch.linalg.cholesky_ex(S + torch.diag_embed(penalty))
        if not bool(failed.any()):
            return factor
        penalty = torch.where(failed.unsqueeze(1) > 0, torch.maximum(10 * penalty, 1e-12 * scales(S)), penalty)


def scales(S: Tensor) -> Tensor:
    """The diagonal of S ``[G, K]``, but for inputs that hardly vary a thousandth of its mean."""
    own = S.diagonal(dim1=1, dim2=2)
    mean = own.mean(1, keepdim=True)
    return torch.maximum(own, 1e-3 * torch.where(mean > 0, mean, torch.ones_like(mean)))


def _centred(raw: Tensor, first: Tensor, y: Tensor, total: Tensor) -> Tensor:
    """Sums of products less those of the means of the parts."""
    return raw - torch.einsum("pgk,pgm->gkm", first, _mean(y, total))


def _mean(sums: Tensor, total: Tensor) -> Tensor:
    """Weighted means of the parts from weighted sums ``[parts, ...]``; zero where a part has no rows."""
    return sums / total.clamp(min=1e-300).view(-1, *[1] * (sums.ndim - 1))


def _by_part(block: Block, rows: Tensor, parts: int) -> Tensor:
    """Weighted sums of rows ``[R, G, M]`` over each part, ``[parts, G, M]``."""
    flat = rows.flatten(1)
    if parts == 1:
        return (block.weight @ flat).double().view(1, *rows.shape[1:])
    members = flat.new_zeros(parts, len(flat))
    members[block.part, torch.arange(len(flat), device=flat.device)] = block.weight
    return (members @ flat).double().view(parts, *rows.shape[1:])
