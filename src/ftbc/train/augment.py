"""Random crop and mirror of a whole batch at once: no Python per image."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def crop_and_mirror(images: Tensor, generator: torch.Generator, padding: int = 4) -> Tensor:
    """Shift each image by up to ``padding`` pixels (zeros enter) and mirror half of them.

    images: ``[N, C, H, W]`` of any dtype; the result has the same shape and dtype.
    """
    n, _, height, width = images.shape
    padded = F.pad(images, (padding,) * 4)
    top, left = torch.randint(0, 2 * padding + 1, (2, n), generator=generator)
    rows = top[:, None] + torch.arange(height)
    columns = left[:, None] + torch.arange(width)
    mirrored = torch.rand(n, generator=generator) < 0.5
    columns = torch.where(mirrored[:, None], columns.flip(1), columns)
    item = torch.arange(n)[:, None, None]
    return padded[item, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
