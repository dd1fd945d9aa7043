"""Random crop, mirror and Cutout of a whole batch at once: no Python per image.

What is random is drawn first, for all images, and applied afterwards, perhaps to a part of them: processes that share
out a batch then see what one process alone would see.
Reference: DeVries and Taylor 2017 (Cutout).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


class Shifts(NamedTuple):
    """For each image, ``[N]``: where its crop begins in the padded image, and whether it is mirrored."""

    top: Tensor
    left: Tensor
    mirrored: Tensor


def draw_shifts(count: int, generator: torch.Generator, padding: int = 4, flip: bool = True) -> Shifts:
    """Shifts by up to ``padding`` pixels each way; half of the images are mirrored."""
    top, left = torch.randint(0, 2 * padding + 1, (2, count), generator=generator)
    mirrored = torch.rand(count, generator=generator) < 0.5
    return Shifts(top, left, mirrored if flip else torch.zeros_like(mirrored))


def shift(images: Tensor, shifts: Shifts, padding: int = 4) -> Tensor:
    """Move and mirror images ``[N, C, H, W]`` of any dtype, zeros enter; the result lies channels-last in memory."""
    n, _, height, width = images.shape
    item = torch.arange(n)
    # Whole images are copied, not pixels: both forms of each are made, and one is taken.
    images = torch.cat([images, images.flip(3)]).index_select(0, item + n * shifts.mirrored)
    windows = F.pad(images, (padding,) * 4).unfold(2, height, 1).unfold(3, width, 1)
    left = torch.where(shifts.mirrored, 2 * padding - shifts.left, shifts.left)  # cropped first, then mirrored
    return windows[item, :, shifts.top, left].contiguous(memory_format=torch.channels_last)


def crop_and_mirror(images: Tensor, generator: torch.Generator, padding: int = 4) -> Tensor:
    """Shift each image by up to ``padding`` pixels (zeros enter) and mirror half of them.

    images: ``[N, C, H, W]`` of any dtype; the result has the same shape and dtype.
    """
    return shift(images, draw_shifts(len(images), generator, padding), padding)


def draw_centres(count: int, height: int, width: int, generator: torch.Generator) -> Tensor:
    """A pixel of each image, ``[N, 2]``."""
    row = torch.randint(0, height, (count,), generator=generator)
    return torch.stack([row, torch.randint(0, width, (count,), generator=generator)], 1)


def cut_out(x: Tensor, centres: Tensor, side: int) -> Tensor:
    """Blank a square of ``side`` pixels around a pixel of each image, less where it leaves the image.

    x: normalised inputs ``[N, C, H, W]``, changed in place; zero is the mean colour.
    """
    row, column = (centres[:, axis, None] for axis in (0, 1))
    rows, columns = torch.arange(x.shape[2]), torch.arange(x.shape[3])
    half = side // 2
    in_rows = (rows >= row - half) & (rows < row - half + side)
    in_columns = (columns >= column - half) & (columns < column - half + side)
    return x.masked_fill_((in_rows[:, :, None] & in_columns[:, None, :]).unsqueeze(1).to(x.device), 0.0)
