"""Spike trains as bits: one 64-bit word for each image, step, pixel and 64 channels."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import torch
from torch import Tensor

from ftbc.graph.ir import Shape
from ftbc.simulate.event.paths import plane

Words = np.ndarray
"""``[N, T, rows, columns, words]`` of uint64; bit c % 64 of word c // 64 says whether channel c fired."""


@dataclass(frozen=True)
class Packed:
    """Spikes of value 1 of one layer."""

    words: Words
    shape: Shape

    @classmethod
    def empty(cls, images: int, steps: int, shape: Shape) -> Packed:
        """Room for the spikes of a layer whose items have this shape."""
        channels, rows, columns = plane(shape)
        return cls(np.empty((images, steps, rows, columns, -(-channels // 64)), np.uint64), shape)

    @classmethod
    def of(cls, spikes: Tensor, steps: int) -> Packed:
        """Pack spikes ``[T * N, ...]``, of which each is 0 or 1."""
        shape = tuple(spikes.shape[1:])
        packed = cls.empty(len(spikes) // steps, steps, shape)
        values = spikes.contiguous().view(steps, -1, *plane(shape)).numpy()
        _pack(values, packed.words)
        return packed

    def unpack(self, dtype: torch.dtype) -> Tensor:
        """The spikes as numbers, ``[T * N, ...]``."""
        images, steps = self.words.shape[:2]
        spikes = torch.empty((steps, images, *plane(self.shape)), dtype=dtype)
        _unpack(self.words, spikes.numpy())
        return spikes.view(steps * images, *self.shape)


@numba.njit(nogil=True, cache=True)
def _pack(values, words):  # type: ignore[no-untyped-def]
    steps, images, channels, rows, columns = values.shape
    words[:] = 0
    for t in range(steps):
        for n in range(images):
            for c in range(channels):
                bit = np.uint64(1) << np.uint64(c % 64)
                for y in range(rows):
                    for x in range(columns):
                        if values[t, n, c, y, x] != 0:
                            words[n, t, y, x, c // 64] |= bit


@numba.njit(nogil=True, cache=True)
def _unpack(words, values):  # type: ignore[no-untyped-def]
    steps, images, channels, rows, columns = values.shape
    for t in range(steps):
        for n in range(images):
            for c in range(channels):
                shift = np.uint64(c % 64)
                for y in range(rows):
                    for x in range(columns):
                        values[t, n, c, y, x] = (words[n, t, y, x, c // 64] >> shift) & np.uint64(1)
