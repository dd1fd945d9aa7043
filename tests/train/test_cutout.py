"""Cutout of a whole batch against a loop over images, and shifts that are drawn for a whole and applied to parts."""

from __future__ import annotations

import pytest
import torch

from ftbc.train.augment import Shifts, crop_and_mirror, cut_out, draw_centres, draw_shifts, shift


@pytest.mark.parametrize("side", [1, 2, 5, 16, 40])
def test_equals_a_loop(side: int) -> None:
    x = torch.randn(50, 3, 16, 12)
    centres = draw_centres(50, 16, 12, torch.Generator().manual_seed(0))
    wanted = x.clone()
    for image, (row, column) in zip(wanted, centres.tolist(), strict=True):
        top, left = row - side // 2, column - side // 2
        image[:, max(top, 0) : max(top + side, 0), max(left, 0) : max(left + side, 0)] = 0
    assert torch.equal(cut_out(x.clone(), centres, side), wanted) and not torch.equal(wanted, x)


def test_every_pixel_can_be_the_centre() -> None:
    centres = draw_centres(2000, 4, 3, torch.Generator().manual_seed(0))
    assert len(centres.unique(dim=0)) == 12 and centres.amax(0).tolist() == [3, 2]


def test_shifts_of_parts_are_those_of_the_whole() -> None:
    images = torch.randint(0, 256, (10, 3, 8, 8), dtype=torch.uint8)
    whole = crop_and_mirror(images, torch.Generator().manual_seed(4), 2)
    drawn = draw_shifts(10, torch.Generator().manual_seed(4), 2)
    parts = [shift(images[part], Shifts(*(d[part] for d in drawn)), 2) for part in (slice(0, 3), slice(3, 10))]
    assert torch.equal(torch.cat(parts), whole)


def test_without_flip_nothing_is_mirrored_and_shifts_stay() -> None:
    with_flip, without = (draw_shifts(100, torch.Generator().manual_seed(1), 4, flip) for flip in (True, False))
    assert with_flip.mirrored.any() and not without.mirrored.any() and torch.equal(with_flip.top, without.top)
