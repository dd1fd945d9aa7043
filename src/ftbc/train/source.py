"""Where training gets its batches from: images in memory, or pictures in files.

A batch is asked for as a whole, by positions in the set, and given in part: what is random is drawn for the whole of it
from one generator, so that processes which share out a batch see what one alone would see.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ftbc.data import Images, Normalise, Pictures
from ftbc.train.augment import Shifts, cut_out, draw_centres, draw_shifts, shift
from ftbc.train.auto_augment import auto_augment, require_kornia
from ftbc.train.settings import TrainSettings

_SHARE = (0.08, 1.0)
_ASPECT = (3 / 4, 4 / 3)


class Source(Protocol):
    """Labelled images to train on."""

    labels: Tensor

    def __len__(self) -> int:
        """The number of images."""
        ...

    def batch(self, chosen: Tensor, part: slice, generator: torch.Generator) -> Tensor:
        """Inputs float32 ``[N, C, H, W]``, channels-last in memory: those images of a batch that are in ``part``."""
        ...

    def examples(self, count: int) -> Tensor:
        """Inputs of some images as they are, spread over the set."""
        ...


def source_of(images: Images | Pictures, settings: TrainSettings) -> Source:
    """The source of what ``ftbc.data`` gives, varied as the settings say."""
    if settings.auto_augment != "none":
        require_kornia()
    return InMemory(images, settings) if isinstance(images, Images) else InFiles(images, settings)


@dataclass
class InMemory:
    """Images in memory, shifted and mirrored."""

    images: Images
    settings: TrainSettings

    @property
    def labels(self) -> Tensor:
        return self.images.labels

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, chosen: Tensor, part: slice, generator: torch.Generator) -> Tensor:
        own = self.settings
        shifts = draw_shifts(len(chosen), generator, own.padding, own.flip)
        pixels = shift(
            self.images.images.index_select(0, chosen[part]), Shifts(*(drawn[part] for drawn in shifts)), own.padding
        )
        return _finished(pixels, self.images.normalise, own, len(chosen), part, generator)

    def examples(self, count: int) -> Tensor:
        return self.images.normalise(self.images.images[_spread(len(self), count)])


@dataclass
class InFiles:
    """Pictures in files, of which a random part is resized and perhaps mirrored, as is usual for ImageNet.

    A part has 8 to 100 % of the area and sides of 3 : 4 to 4 : 3. Reference: Szegedy et al. 2015.
    """

    pictures: Pictures
    settings: TrainSettings

    @property
    def labels(self) -> Tensor:
        return self.pictures.labels

    def __len__(self) -> int:
        return len(self.pictures)

    def batch(self, chosen: Tensor, part: slice, generator: torch.Generator) -> Tensor:
        drawn = torch.rand(len(chosen), 5, generator=generator)
        share = _SHARE[0] + (_SHARE[1] - _SHARE[0]) * drawn[:, 0]
        low, high = (math.log(aspect) for aspect in _ASPECT)
        aspect = torch.exp(low + (high - low) * drawn[:, 1])
        parts = torch.stack([share, aspect, drawn[:, 2], drawn[:, 3]], 1)
        pixels = self.pictures.crops(chosen[part], parts[part])
        mirrored = (drawn[part, 4] < 0.5) & self.settings.flip
        pixels = torch.where(mirrored[:, None, None, None], pixels.flip(3), pixels)
        return _finished(pixels, self.pictures.normalise, self.settings, len(chosen), part, generator)

    def examples(self, count: int) -> Tensor:
        return self.pictures.normalise(self.pictures.centres(_spread(len(self), count)))


def _finished(
    pixels: Tensor, normalise: Normalise, own: TrainSettings, count: int, part: slice, generator: torch.Generator
) -> Tensor:
    """AutoAugment, normalisation and Cutout, which are alike for all sources."""
    if own.auto_augment != "none":
        seed = int(torch.randint(0, 2**31, (1,), generator=generator))
        pixels = auto_augment(pixels, own.auto_augment, seed + (part.start or 0))
    x = normalise.in_its_order(pixels).contiguous(memory_format=torch.channels_last)
    if own.cutout:
        x = cut_out(x, draw_centres(count, *x.shape[2:], generator)[part], own.cutout)
    return x


def _spread(total: int, count: int) -> Tensor:
    """``count`` positions, evenly spread: files stand in the order of their classes."""
    return torch.linspace(0, total - 1, min(count, total)).long()
