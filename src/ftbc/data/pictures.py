"""An image folder too large for memory: files are decoded when they are asked for, several at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ftbc.data.decode import open_rgb, pillow, pixels_of
from ftbc.data.imagenet import list_image_folder, read_centre
from ftbc.data.images import NORMALISATIONS, Normalise

_RESIZE = 8 / 7
"""How much larger than its crop a picture is made before the centre is cut out: 256 for 224."""


@dataclass(frozen=True, eq=False)
class Pictures:
    """Files and labels int64 ``[N]`` of an image folder; iterating gives normalised batches of centre crops in order.

    side: of the crops. Decoding runs in as many threads as torch uses: Pillow lets go of the interpreter's lock.
    """

    files: tuple[Path, ...]
    labels: Tensor
    side: int
    name: str
    normalise: Normalise = NORMALISATIONS["imagenet"]
    batch: int = 100

    @classmethod
    def of(cls, folder: str | Path, split: str, side: int = 224) -> Pictures:
        """The pictures of ``folder/SPLIT/CLASS/``; classes are numbered as `read_image_folder` does."""
        folder = Path(folder).expanduser()
        files, labels = list_image_folder(folder, split)
        return cls(tuple(files), labels, side, f"{folder.name} {split}")

    def __len__(self) -> int:
        """Give the number of pictures."""
        return len(self.files)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield ``(normalised float32 [B, 3, side, side], labels [B])``."""
        for chosen in torch.arange(len(self)).split(self.batch):
            yield self.normalise(self.centres(chosen)), self.labels[chosen]

    def centres(self, chosen: Tensor) -> Tensor:
        """Centre crops of these pictures: uint8 ``[N, 3, side, side]``."""
        resize = int(self.side * _RESIZE)
        return _together(lambda index: read_centre(self.files[index], resize, self.side), chosen.tolist())

    def crops(self, chosen: Tensor, parts: Tensor) -> Tensor:
        """A part of each of these pictures, resized: uint8 ``[N, 3, side, side]``.

        parts: ``[N, 4]``: the part's share of the area, its width over its height, and where it lies between left and
        right, top and bottom, from 0 to 1. What would be wider or higher than the picture is cut to it.
        """
        return _together(self._crop, list(zip(chosen.tolist(), parts.tolist(), strict=True)))

    def _crop(self, which: tuple[int, list[float]]) -> Tensor:
        index, (share, aspect, across, down) = which
        image = open_rgb(self.files[index], f"'{self.files[index]}'")
        area = share * image.width * image.height
        width, height = min(math.sqrt(area * aspect), image.width), min(math.sqrt(area / aspect), image.height)
        left, top = across * (image.width - width), down * (image.height - height)
        box = (left, top, left + width, top + height)
        return pixels_of(image.resize((self.side, self.side), pillow().Resampling.BILINEAR, box=box))


def _together(read: Callable[..., Tensor], items: list) -> Tensor:
    """Pictures read in threads, stacked; channels of a pixel stay side by side in memory."""
    with ThreadPoolExecutor(max(1, torch.get_num_threads())) as pool:
        rows = [picture.permute(1, 2, 0) for picture in pool.map(read, items)]
    return torch.stack(rows).permute(0, 3, 1, 2)
