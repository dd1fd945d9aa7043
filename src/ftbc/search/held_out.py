"""Training images in two parts that share none: a pool to calibrate on, and those that decide what settings are worth.

The test images have no place here: what is chosen on them would be no measurement any more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from ftbc.data import Images
from ftbc.data.balance import draw_balanced
from ftbc.errors import InputError

_SEED = 0


@dataclass(frozen=True)
class HeldOut:
    """pool: of which each calibration draws ``count`` images, and takes their mirror images, too, if ``mirrored``;
    held_out: on which all are measured."""

    pool: Images
    held_out: Images
    count: int
    mirrored: bool = False

    @classmethod
    def of(cls, images: Images, calibration: int, held_out: int, mirrored: bool = False) -> HeldOut:
        """Divide training images; those held out are balanced over the classes, and always the same."""
        if min(calibration, held_out) < 1 or calibration + held_out > len(images):
            raise InputError(
                f"{calibration} images to calibrate on and {held_out} held out are more than the {len(images)} "
                "training images: ask for fewer"
            )
        chosen = draw_balanced(images.labels, held_out, _SEED)
        rest = torch.ones(len(images), dtype=torch.bool)
        rest[chosen] = False
        measured = replace(images.subset(chosen), name=f"{images.name}, held out")
        return cls(images.subset(rest.nonzero().flatten()), measured, calibration, mirrored)

    def draw(self, seed: int) -> Images:
        """The images of one calibration, balanced over the classes."""
        drawn = self.pool.subset(draw_balanced(self.pool.labels, self.count, seed))
        return drawn.with_mirrored() if self.mirrored else drawn
