"""Draw a random subset in which every class is as frequent as the others."""

from __future__ import annotations

import torch
from torch import Tensor

from ftbc.errors import InputError


def draw_balanced(labels: Tensor, count: int, seed: int) -> Tensor:
    """Draw ``count`` positions of ``labels`` so that class sizes differ by at most one while classes last.

    labels: int64 ``[N]``; result: int64 ``[count]``, distinct, in drawing order. Classes take turns, so the
    first n positions are themselves a balanced draw for every n.

    >>> sorted(torch.tensor([7, 7, 7, 8, 9])[draw_balanced(torch.tensor([7, 7, 7, 8, 9]), 3, seed=0)].tolist())
    [7, 8, 9]
    """
    if not 1 <= count <= len(labels):
        raise InputError(f"cannot draw {count} of {len(labels)} images: ask for 1 to {len(labels)}")
    shuffled = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    by_class = labels[shuffled].argsort(stable=True)
    sizes = torch.bincount(labels)
    first = torch.repeat_interleave(sizes.cumsum(0) - sizes, sizes)
    turn = torch.empty_like(shuffled)
    turn[by_class] = torch.arange(len(labels)) - first
    return shuffled[turn.argsort(stable=True)[:count]]
