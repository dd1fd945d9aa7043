"""Where a tensor lies in memory: two names of one tensor, and two views that share a part of it."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Place(NamedTuple):
    """The cells of a storage that a tensor covers; equal places hold the same tensor."""

    storage: int
    cells: int
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]

    @classmethod
    def of(cls, tensor: Tensor) -> Place:
        """The place of a tensor, which is only meaningful while the tensor lives."""
        storage = tensor.untyped_storage()
        cells = storage.nbytes() // tensor.element_size()
        return cls(storage.data_ptr(), cells, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())

    def overlaps(self, other: Place) -> bool:
        """Whether writing here changes what is read there."""
        if self.storage != other.storage:
            return False
        written = torch.zeros(max(self.cells, other.cells), dtype=torch.bool)
        written.as_strided(self.size, self.stride, self.offset).fill_(True)
        return bool(written.as_strided(other.size, other.stride, other.offset).any())
