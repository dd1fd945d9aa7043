"""Spike trains as bits: one 64-bit word for each image, step, pixel, plane (`coding`) and 64 channels.

The sum of a channel's spikes over a pool is a number of several binary digits. All first digits make a word, all second
digits the next: words of spikes again, that count 1, 2, 4 ... times.
"""

# pyright: reportCallIssue=false
# The operations of `vector` are called without their first argument, which is the compiler's.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

from ftbc.graph.ir import Shape
from ftbc.simulate.event.coding import PLAIN, Coding
from ftbc.simulate.event.paths import plane
from ftbc.simulate.event.vector import REVISION, put_spikes, word_at
from ftbc.threads import over_images
from ftbc.vectors import Block, compiled

_WORTH_A_THREAD = 1 << 18
"""Spikes that are worth a thread of their own."""

Words = np.ndarray
"""``[N, T, rows, columns, planes * words]`` of uint64; bit c % 64 of word c // 64 says whether channel c fired, first
of all in the first plane, then in the next."""


Pool = tuple[int, int]
"""Rows and columns of the windows that a pool adds up; they touch and do not overlap."""


def digits(pool: Pool) -> int:
    """How many binary digits the number of spikes in a window has.

    >>> digits((1, 1)), digits((2, 2))
    (1, 3)
    """
    return (pool[0] * pool[1]).bit_length()


def pooled_shape(shape: Shape, pool: Pool) -> Shape:
    """Channels, rows and columns that a pool leaves."""
    channels, rows, columns = plane(shape)
    return channels, rows // pool[0], columns // pool[1]


@dataclass(frozen=True)
class Packed:
    """Spikes of one layer; coding: what they count."""

    words: Words
    shape: Shape
    coding: Coding = PLAIN

    @classmethod
    def empty(cls, images: int, steps: int, shape: Shape, coding: Coding = PLAIN) -> Packed:
        """Room for the spikes of a layer whose items have this shape."""
        channels, rows, columns = plane(shape)
        words = coding.planes * -(-channels // 64)
        return cls(np.empty((images, steps, rows, columns, words), np.uint64), shape, coding)

    @staticmethod
    def size(steps: int, shape: Shape, coding: Coding = PLAIN) -> int:
        """Bytes of the spikes of one image."""
        channels, rows, columns = plane(shape)
        return 8 * steps * rows * columns * coding.planes * -(-channels // 64)

    @classmethod
    def of(cls, spikes: Tensor, steps: int) -> Packed:
        """Pack spikes ``[T * N, ...]``, of which each is 0 or 1."""
        shape = tuple(spikes.shape[1:])
        packed = cls.empty(len(spikes) // steps, steps, shape)
        values = spikes.contiguous().view(steps, -1, *plane(shape)).numpy()
        _pack(values, packed.words)
        return packed

    def pooled(self, pool: Pool) -> Packed:
        """Sums over windows of this size, as digits: ``[N, T, rows, columns, digits * words]``, the lowest first."""
        if pool == (1, 1):
            return self
        images, steps, _, _, words = self.words.shape
        shape = pooled_shape(self.shape, pool)
        sums = np.zeros((images, steps, *plane(shape)[1:], digits(pool) * words), np.uint64)

        def share(first: int, last: int) -> None:
            _add_up(self.words[first:last], sums[first:last], *pool)

        over_images(share, images, self.words.size // _WORTH_A_THREAD)
        return Packed(sums, shape, self.coding)

    def totals(self, dtype: torch.dtype) -> Tensor:
        """The sum of each channel over all pixels, ``[T * N, channels]``."""
        images, steps, rows, columns, words = self.words.shape
        sums = self.pooled((rows, columns)).words.reshape(
            images, steps, -1, self.coding.planes, words // self.coding.planes
        )
        found = torch.empty((self.coding.planes, steps, images, plane(self.shape)[0]), dtype=dtype)
        for index, numbers in enumerate(found):
            _read_digits(np.ascontiguousarray(sums[:, :, :, index]), numbers.numpy())
        return self.coding.over_time(self.coding.value(found)).flatten(0, 1)

    def weigh(self, weights: np.ndarray) -> Tensor:
        """What the spikes of each step weigh, over all images and places, ``[T, K]``; weights: see `places`."""
        sums = np.zeros((self.words.shape[1], weights.shape[-1]))
        _weigh(self.words, weights, sums)
        return torch.from_numpy(sums)

    def places(self, weights: Tensor) -> np.ndarray:
        """Weights ``[K, ...]`` of a value's places in the order of the words, for each bit: ``[.., words, 64, K]``."""
        channels, rows, columns = plane(self.shape)
        words = -(-channels // 64)
        found = np.zeros((rows, columns, self.coding.planes, words * 64, len(weights)))
        by_pixel = weights.reshape(-1, channels, rows, columns).permute(2, 3, 1, 0)
        found[..., :channels, :] = by_pixel.unsqueeze(2).numpy()
        return found.reshape(rows, columns, -1, 64, len(weights))

    def unpack(self, dtype: torch.dtype) -> Tensor:
        """The values behind the spikes, ``[T * N, ...]``; in memory the channels of a pixel lie side by side."""
        images, steps, rows, columns, words = self.words.shape
        channels, planes = plane(self.shape)[0], self.coding.planes
        block = 16 if channels <= 16 else 32 if channels <= 32 else 64
        spikes = torch.empty((steps, images, rows, columns, words * block), dtype=dtype)
        kernel = _unpack(str(dtype).removeprefix("torch."), block)

        def share(first: int, last: int) -> None:
            kernel(self.words, spikes.numpy(), rows * columns * words, first, last)

        over_images(share, images, spikes.numel() // _WORTH_A_THREAD)
        by_plane = spikes.unflatten(-1, (planes, -1))[..., :channels].movedim(-2, 0)
        found = self.coding.over_time(self.coding.value(by_plane)).flatten(0, 1)
        return found.permute(0, 3, 1, 2).reshape(steps * images, *self.shape)


@compiled
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


@compiled
def _ones(word):  # type: ignore[no-untyped-def]
    """How many bits are set; in this form the compiler knows it as one instruction."""
    count = 0
    while word != 0:
        word &= word - np.uint64(1)
        count += 1
    return count


@compiled
def _weigh(words, weights, sums):  # type: ignore[no-untyped-def]
    images, steps, rows, columns, count = words.shape
    for n in range(images):
        for t in range(steps):
            for y in range(rows):
                for x in range(columns):
                    for w in range(count):
                        left = words[n, t, y, x, w]
                        while left != 0:
                            others = left & (left - np.uint64(1))
                            bit = _ones((left ^ others) - np.uint64(1))
                            for k in range(sums.shape[1]):
                                sums[t, k] += weights[y, x, w, bit, k]
                            left = others


@compiled
def _add_up(words, sums, down, along):  # type: ignore[no-untyped-def]
    images, steps, rows, columns, _ = sums.shape
    count = words.shape[4]
    for n in range(images):
        for t in range(steps):
            for y in range(rows):
                for i in range(y * down, y * down + down):
                    for j in range(along):
                        for x in range(columns):
                            for w in range(count):
                                # As by hand, 64 channels at once: what both have is carried to the next digit.
                                carried = words[n, t, i, x * along + j, w]
                                digit = w
                                while carried != 0:
                                    so_far = sums[n, t, y, x, digit]
                                    sums[n, t, y, x, digit] = so_far ^ carried
                                    carried &= so_far
                                    digit += count


@compiled
def _read_digits(digits, numbers):  # type: ignore[no-untyped-def]
    """Numbers ``[T, N, channels]`` from their binary digits ``[N, T, digits, words]``."""
    steps, images, channels = numbers.shape
    for n in range(images):
        for t in range(steps):
            for c in range(channels):
                number = np.uint64(0)
                for d in range(digits.shape[2]):
                    number |= ((digits[n, t, d, c // 64] >> np.uint64(c % 64)) & np.uint64(1)) << np.uint64(d)
                numbers[t, n, c] = number


@cache
def _unpack(element: str, block: int) -> Callable[..., None]:
    size, revision = Block(element, block).size, REVISION

    @compiled
    def unpack(words, spikes, count, first, last):  # type: ignore[no-untyped-def]
        _ = revision
        steps, images = spikes.shape[:2]
        read, written = np.uint64(words.ctypes.data), np.uint64(spikes.ctypes.data)
        for n in range(first, last):
            for t in range(steps):
                source = read + np.uint64(8 * count * (n * steps + t))
                target = written + np.uint64(size * count * (t * images + n))
                for _ in range(count):
                    put_spikes(element, block, target, word_at(source))
                    source += np.uint64(8)
                    target += np.uint64(size)

    return unpack
