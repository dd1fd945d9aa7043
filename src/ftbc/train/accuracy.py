"""Accuracy of an ordinary network."""

from __future__ import annotations

import torch
from torch import nn

from ftbc.calibrate.base import Progress, silent
from ftbc.data import Images


@torch.no_grad()
def accuracy(model: nn.Module, images: Images, progress: Progress = silent) -> float:
    """Percent of images that a network in eval mode classifies rightly."""
    right = seen = 0
    for x, y in images:
        right += int((model(x).argmax(1) == y).sum())
        seen += len(y)
        progress("evaluating", seen, len(images))
    return 100 * right / seen
