"""Average the weights of two stages of training, which often generalises better than either.

Reference: Izmailov et al., UAI 2018 (stochastic weight averaging). BatchNorm statistics belong to neither stage's
weights any more, and are measured anew on training images.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ftbc.train.augment import crop_and_mirror

_BATCH, _BATCHES = 256, 100


@torch.no_grad()
def average_weights(
    model: nn.Module, other: nn.Module, images: Tensor, normalise: Callable[[Tensor], Tensor]
) -> nn.Module:
    """Move ``model`` half-way to ``other``, in place, and measure its BatchNorm statistics on the first images.

    images: uint8 ``[N, C, H, W]``; normalise: uint8 batch -> float batch.
    """
    for own, theirs in zip(model.parameters(), other.parameters(), strict=True):
        own.lerp_(theirs, 0.5)
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d)]
    kept = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean over all batches
    model.train()
    generator = torch.Generator().manual_seed(0)
    for batch in images[: _BATCH * _BATCHES].split(_BATCH):
        model(normalise(crop_and_mirror(batch, generator)))
    for norm, momentum in zip(norms, kept, strict=True):
        norm.momentum = momentum
    return model.eval()
