"""Accuracy of an ordinary network."""

from __future__ import annotations

import torch
from torch import nn

from ftbc.data import Images, Pictures
from ftbc.progress import Progress, silent


@torch.no_grad()
def accuracy(model: nn.Module, images: Images | Pictures, progress: Progress = silent) -> float:
    """Percent of images that a network in eval mode classifies rightly."""
    right = seen = 0
    place = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    for x, y in images:
        right += int((model(x.to(place)).argmax(1).cpu() == y).sum())
        seen += len(y)
        progress("evaluating", seen, len(images))
    return 100 * right / seen
