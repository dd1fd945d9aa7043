"""Crop and mirror, against a loop over the images."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from ftbc.train.augment import crop_and_mirror


def one_by_one(images: Tensor, generator: torch.Generator, padding: int) -> Tensor:
    """The same draws, applied to each image on its own."""
    n, _, height, width = images.shape
    tops, lefts = torch.randint(0, 2 * padding + 1, (2, n), generator=generator)
    mirrored = torch.rand(n, generator=generator) < 0.5
    results = []
    for image, top, left, mirror in zip(images, tops.tolist(), lefts.tolist(), mirrored.tolist(), strict=True):
        cut = F.pad(image, (padding,) * 4)[:, top : top + height, left : left + width]
        results.append(cut.flip(2) if mirror else cut)
    return torch.stack(results)


@pytest.mark.parametrize("padding", [0, 1, 4])
@pytest.mark.parametrize("shape", [(40, 3, 8, 8), (5, 1, 6, 11), (1, 3, 4, 4)])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_equals_a_loop(shape: tuple[int, ...], padding: int, dtype: torch.dtype) -> None:
    images = torch.randint(1, 256, shape).to(dtype)
    found = crop_and_mirror(images, torch.Generator().manual_seed(3), padding)
    assert found.dtype == dtype
    assert torch.equal(found, one_by_one(images, torch.Generator().manual_seed(3), padding))


def test_every_shift_and_both_directions_occur() -> None:
    images = torch.arange(1, 17).view(1, 1, 4, 4).repeat(2000, 1, 1, 1)
    found = crop_and_mirror(images, torch.Generator().manual_seed(0), padding=1)
    assert len(found.unique(dim=0)) == 3 * 3 * 2


def test_the_same_seed_gives_the_same_and_leaves_the_images() -> None:
    images = torch.randint(0, 256, (9, 3, 8, 8), dtype=torch.uint8)
    kept = images.clone()
    first, second, other = (crop_and_mirror(images, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, second) and not torch.equal(first, other) and torch.equal(images, kept)
