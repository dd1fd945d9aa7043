"""Labelled images in memory: kept as bytes, normalised batch by batch when a network asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Literal

import torch
from torch import Tensor

from ftbc.errors import InputError

Split = Literal["train", "test"]


@dataclass(frozen=True)
class Normalise:
    """Pixels 0..255 to network inputs: ``(x / 255 - mean) / std`` per channel.

    Takes uint8 or floating ``[N, C, H, W]``, gives contiguous float32 of the same shape.

    >>> Normalise((0.5,), (0.5,))(torch.full((1, 1, 1, 1), 255, dtype=torch.uint8)).item()
    1.0
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse what cannot be a mean and a deviation a channel."""
        if not self.mean or len(self.mean) != len(self.std):
            raise InputError(f"Normalise has {len(self.mean)} means and {len(self.std)} stds: give one each a channel")
        if not all(isfinite(value) for value in self.mean + self.std) or min(self.std) <= 0:
            raise InputError(f"Normalise has mean {self.mean}, std {self.std}: use finite values, std above 0")

    def __call__(self, x: Tensor) -> Tensor:
        """Normalise a batch; shapes and dtypes as above."""
        return self.in_its_order(x).contiguous()

    def in_its_order(self, x: Tensor) -> Tensor:
        """The same numbers in the memory order of ``x``: a channels-last batch stays one, without another copy."""
        if x.ndim != 4 or x.shape[1] != len(self.mean):
            raise InputError(f"Normalise got shape {list(x.shape)}: it takes [N, {len(self.mean)}, H, W]")
        if x.dtype != torch.uint8 and not x.is_floating_point():
            raise InputError(f"Normalise got {x.dtype}: it takes uint8, or floating point from 0 to 255")
        mean, std = (torch.tensor(values, device=x.device) for values in (self.mean, self.std))
        if x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous():
            # Row by row of pixels: loops over three channels each would be slow.
            width, rows = x.shape[3], x.permute(0, 2, 3, 1).flatten(2)
            y = (rows.to(torch.float32) / 255).sub_(mean.repeat(width)).div_(std.repeat(width))
            return y.unflatten(2, (width, -1)).permute(0, 3, 1, 2)
        return (x.to(torch.float32) / 255).sub_(mean[:, None, None]).div_(std[:, None, None])


NORMALISATIONS = {
    "cifar10": Normalise((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    "cifar100": Normalise((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
    "imagenet": Normalise((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "symmetric": Normalise((0.5,) * 3, (0.5,) * 3),
    "unit": Normalise((0.0,) * 3, (1.0,) * 3),
}


@dataclass(frozen=True, eq=False, repr=False)
class Images:
    """Images uint8 ``[N, C, H, W]`` and labels int64 ``[N]``; iterating gives normalised batches in order.

    >>> pixels, labels = torch.zeros(5, 3, 8, 8, dtype=torch.uint8), torch.arange(5)
    >>> images = Images(pixels, labels, NORMALISATIONS["unit"], "black", batch=2)
    >>> [tuple(x.shape) for x, _ in images]
    [(2, 3, 8, 8), (2, 3, 8, 8), (1, 3, 8, 8)]
    """

    images: Tensor
    labels: Tensor
    normalise: Normalise
    name: str
    batch: int = 100

    def __post_init__(self) -> None:
        """Refuse tensors that do not fit together."""
        images, labels, channels = self.images, self.labels, len(self.normalise.mean)
        if images.dtype != torch.uint8 or images.ndim != 4:
            raise InputError(f"'{self.name}': images are {_kind(images)}: they must be uint8 [N, C, H, W]")
        if labels.dtype != torch.int64 or labels.ndim != 1:
            raise InputError(f"'{self.name}': labels are {_kind(labels)}: they must be int64 [N]")
        if len(images) != len(labels):
            raise InputError(f"'{self.name}': {len(images)} images but {len(labels)} labels: give one label an image")
        if not images.numel():
            raise InputError(
                f"'{self.name}': images are {_kind(images)}, which holds no pixels: give one image or more"
            )
        if images.shape[1] != channels:
            raise InputError(
                f"'{self.name}': images have {images.shape[1]} channels but the normalisation {channels}: "
                "pass a Normalise with one mean and one std a channel"
            )
        if int(labels.min()) < 0:
            raise InputError(f"'{self.name}': label {int(labels.min())} is negative: number the classes from 0")
        if self.batch < 1:
            raise InputError(f"'{self.name}': batch is {self.batch}: it must be 1 or more")

    def __len__(self) -> int:
        """Give the number of images (not of batches)."""
        return len(self.images)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield ``(normalised float32 [B, C, H, W], labels [B])`` with B at most ``batch``."""
        for images, labels in zip(self.images.split(self.batch), self.labels.split(self.batch), strict=True):
            yield self.normalise(images), labels

    def __repr__(self) -> str:
        """Say what is held, without the pixels."""
        return f"Images('{self.name}', {len(self)} of {list(self.images.shape[1:])}, batch={self.batch})"

    def tensor(self) -> Tensor:
        """Give all images at once, normalised: float32 ``[N, C, H, W]``."""
        return self.normalise(self.images)

    def take(self, n: int) -> Images:
        """Keep the first ``n`` images."""
        if not 1 <= n <= len(self):
            raise InputError(f"'{self.name}' holds {len(self)} images: cannot take {n}, ask for 1 to {len(self)}")
        return replace(self, images=self.images[:n], labels=self.labels[:n])

    def subset(self, indices: Sequence[int] | Tensor) -> Images:
        """Keep the images at ``indices``, in that order."""
        chosen = torch.as_tensor(indices)
        if chosen.ndim != 1 or not len(chosen) or chosen.dtype not in (torch.int32, torch.int64):
            raise InputError(f"'{self.name}': indices are {_kind(chosen)}: give a list of at least one whole number")
        if int(chosen.min()) < 0 or int(chosen.max()) >= len(self):
            raise InputError(f"'{self.name}': an index is outside 0..{len(self) - 1}: give only positions that exist")
        return replace(self, images=self.images[chosen], labels=self.labels[chosen])

    def with_mirrored(self) -> Images:
        """Put behind each image its mirror image, left for right: twice as many, of which neighbours belong together.

        >>> pixels = torch.tensor([1, 2], dtype=torch.uint8).view(1, 1, 1, 2)
        >>> Images(pixels, torch.tensor([3]), Normalise((0.0,), (1.0,)), "a").with_mirrored().images.flatten().tolist()
        [1, 2, 2, 1]
        """
        both = torch.stack([self.images, self.images.flip(3)], 1).flatten(0, 1)
        return replace(self, images=both, labels=self.labels.repeat_interleave(2))

    def with_normalise(self, normalise: Normalise) -> Images:
        """Give the same images under another normalisation."""
        return replace(self, normalise=normalise)

    def with_batch(self, n: int) -> Images:
        """Give the same images in batches of ``n``."""
        return replace(self, batch=n)


def _kind(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
