"""A path's weights as jobs of the kernel: which pixels to walk over, and where each spike's row of weights goes.

A spike at row y of the source reaches the output rows (y + padding - i) / stride for those i of 0 .. rows - 1 that
divide. So with y = stride * j + q, for each q

    output row = j + a - m ,   a = (q + padding) // stride ,   i = (q + padding) % stride + stride * m ,

a convolution without stride over every ``stride``-th row, and each such lattice is a job. The same for columns. Of a
source that is pooled first, each binary digit of the sums (`packed`) is a source of its own, whose spikes count 1, 2,
4 ... times; and so is each plane of a source whose spikes do not all count the same (`coding`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ftbc.graph.ir import Shape
from ftbc.simulate.cache import second_cache
from ftbc.simulate.event.kernel import COLLECT_1, COLLECT_9, SPREADS, SUMS, fits, spread, spread_sums
from ftbc.simulate.event.packed import Pool, pooled_shape
from ftbc.simulate.event.paths import Path, plane
from ftbc.vectors import Block


@dataclass(frozen=True)
class Lattice:
    """Rows (or columns) ``first, first + step, ...`` of a source, ``count`` of them; the first reaches the outputs
    ``low, low + 1, ...``, each through the weight of that index."""

    first: int
    step: int
    count: int
    low: int
    weights: tuple[int, ...]


def lattices(size: int, stride: int, padding: int, kernel: int) -> list[Lattice]:
    """The lattices of one dimension."""
    found = []
    for q in range(stride):
        a, i = divmod(q + padding, stride)
        weights = tuple(range(i, kernel, stride))[::-1]
        count = len(range(q, size, stride))
        if count and weights:
            found.append(Lattice(q, stride, count, a - len(weights) + 1, weights))
    return found


@dataclass
class Job:
    """A row of the kernel's table, before addresses are known.

    kind: see `kernel`; source: the layer that fires, over which pool its spikes are added up; first: row, column and
    word of that at which the lattice begins; step, count: of its rows and columns; weights: as the operation of
    `vector` wants them, those of `add_sums` before they are `in_stacks`; target: output row and column of the first
    membrane, which may lie in the margin; bits: the channels that have weights; reach: rows and columns of membranes
    for each spike; digits: of the sums that it reads, from that word on; planes: of the source.
    """

    kind: int
    source: tuple[str, Pool]
    first: tuple[int, int, int]
    step: tuple[int, int]
    count: tuple[int, int]
    weights: np.ndarray
    target: tuple[int, int]
    bits: int
    reach: tuple[int, int]
    digits: int = 1
    planes: int = 1

    @property
    def sums(self) -> bool:
        """Whether the weights are a table of sums."""
        return self.kind >= spread_sums(0, 0, 1)


SUMS_ABOVE = {8: 0.04, 4: 0.12}
"""For tables of so many channels at once, the density above which they are faster than one event after another."""


def jobs_of(
    path: Path, source_shape: Shape, output_shape: Shape, block: Block, begin: int, density: float = 0.0
) -> list[Job]:
    """What ``path`` does for the output channels from ``begin`` on, a block of them.

    density: how often a neuron of the source fires at a step.
    """
    shape = pooled_shape(source_shape, path.pool)
    if path.depthwise:
        whole_sums = list(_collect(path, shape, output_shape, block, begin))
    else:
        whole_sums = list((_whole if path.whole else _spread)(path, shape, block, begin))
    words, planes = -(-shape[0] // 64), path.coding.planes
    often = _often(density / planes, path.pool[0] * path.pool[1])
    by_plane = [job for whole in whole_sums for job in _by_plane(whole, words, path.coding.worths)]
    return [job for of_plane in by_plane for job in _by_digit(of_plane, planes * words, often, block)]


def _by_plane(job: Job, words: int, worths: tuple[float, ...]) -> list[Job]:
    """A job for each plane of the source, with weights times what its spikes count."""
    row, column, word = job.first
    return [
        dataclasses.replace(
            job, first=(row, column, word + index * words), weights=job.weights * worth, planes=len(worths)
        )
        for index, worth in enumerate(worths)
    ]


def _by_digit(job: Job, words: int, often: list[float], block: Block) -> list[Job]:
    """A job of sums as it is, or as a job for each of their digits where that is faster, or the only way."""
    collects = job.kind in (COLLECT_1, COLLECT_9)
    found = []
    for digit, density in enumerate(often):
        row, column, word = job.first
        times = dataclasses.replace(job, first=(row, column, word + digit * words), weights=job.weights * 2**digit)
        found.append(times if collects else _by_sums(times, block, density))
    if collects or found[0].kind != job.kind:
        return found
    return [dataclasses.replace(job, digits=len(often))]


def _often(density: float, pixels: int) -> list[float]:
    """How often each binary digit of a sum over so many pixels is 1, if they fire as often as this, and each by itself.

    >>> _often(0.5, 2)
    [0.5, 0.25]
    """
    sums = [math.comb(pixels, k) * density**k * (1 - density) ** (pixels - k) for k in range(pixels + 1)]
    return [sum(p for k, p in enumerate(sums) if k >> digit & 1) for digit in range(pixels.bit_length())]


def _spread(path: Path, shape: Shape, block: Block, begin: int) -> Iterator[Job]:
    weights = _rows(path, block, begin)
    channels, height, width = shape
    down = lattices(height, path.stride[0], path.padding[0], weights.shape[1])
    along = lattices(width, path.stride[1], path.padding[1], weights.shape[2])
    for word in range(-(-channels // 64)):
        rows_of_word = weights[64 * word : 64 * word + 64]
        bits = _used(rows_of_word)
        if not bits:
            continue
        for y in down:
            for x in along:
                taps = np.ascontiguousarray(rows_of_word[:, y.weights][:, :, x.weights])
                yield from _tiled((path.source, path.pool), word, bits, y, x, taps, block)


def _tiled(
    source: tuple[str, Pool], word: int, bits: int, y: Lattice, x: Lattice, taps: np.ndarray, block: Block
) -> Iterator[Job]:
    """One lattice, its targets cut into pieces that fit into the registers."""
    shapes = (shape for shape in SPREADS if shape[0] <= taps.shape[1] and shape[1] <= taps.shape[2])
    rows, columns = next((shape for shape in shapes if fits(block, *shape)), (1, 1))
    for top in range(0, taps.shape[1], rows):
        for left in range(0, taps.shape[2], columns):
            piece = taps[:, top : top + rows, left : left + columns]
            if piece.shape[1:3] != (rows, columns):
                yield from _tiled(source, word, bits, _cut(y, top, rows), _cut(x, left, columns), piece, block)
                continue
            yield Job(
                kind=spread(rows, columns),
                source=source,
                first=(y.first, x.first, word),
                step=(y.step, x.step),
                count=(y.count, x.count),
                weights=np.ascontiguousarray(piece),
                target=(y.low + top, x.low + left),
                bits=bits,
                reach=(rows, columns),
            )


def _cut(lattice: Lattice, begin: int, length: int) -> Lattice:
    weights = lattice.weights[begin : begin + length]
    return Lattice(lattice.first, lattice.step, lattice.count, lattice.low + begin, weights)


def _by_sums(job: Job, block: Block, density: float) -> Job:
    """A job with the sums of every choice of rows in the place of the rows, if it is busy and they fit."""
    for (rows, columns, groups), channels in SUMS.items():
        size = (groups << channels) * rows * columns * block.size
        fit = job.reach == (rows, columns) and len(job.weights) <= groups * channels
        if fit and density > SUMS_ABOVE[channels] and size <= second_cache() // 3:
            weights = np.zeros((groups * channels, *job.weights.shape[1:]))
            weights[: len(job.weights)] = job.weights
            chosen = (np.arange(1 << channels)[:, None] >> np.arange(channels)) & 1
            sums = np.einsum("sf,gfyxc->gsyxc", chosen, weights.reshape(groups, channels, *weights.shape[1:]))
            return dataclasses.replace(job, kind=spread_sums(rows, columns, groups), weights=sums)
    return job


def _whole(path: Path, shape: Shape, block: Block, begin: int) -> Iterator[Job]:
    """Weights of a flattened image: each pixel has its own."""
    channels, height, width = shape
    weights = _rows(path, block, begin)
    for word in range(-(-channels // 64)):
        for y in range(height):
            for x in range(width):
                taps = weights[64 * word : 64 * word + 64, y * width + x : y * width + x + 1]
                bits = _used(taps)
                if bits:
                    row, column = Lattice(y, 1, 1, 0, (0,)), Lattice(x, 1, 1, 0, (0,))
                    yield from _tiled((path.source, path.pool), word, bits, row, column, taps, block)


def _collect(path: Path, shape: Shape, output_shape: Shape, block: Block, begin: int) -> Iterator[Job]:
    """Depthwise weights: each membrane collects from the pixels of its window that lie inside the source."""
    assert path.weight is not None
    _, height, width = shape
    _, rows, columns = plane(output_shape)
    weights = np.zeros((*path.weight.shape[2:], block.channels))
    part = path.weight[begin : begin + block.channels, 0].movedim(0, -1).numpy()
    weights[:, :, : part.shape[-1]] = part
    kernel = (len(weights), len(weights[0]))
    inside = [
        _inside(0, kernel[axis], size, out, path.stride[axis], path.padding[axis])
        for axis, (size, out) in enumerate(((height, rows), (width, columns)))
    ]
    square = kernel == (3, 3) and all(last > first for first, last in inside)
    if square:
        yield _window(path, begin, inside[0], inside[1], (0, 0), weights, COLLECT_9)
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            down = _inside(i, i + 1, height, rows, path.stride[0], path.padding[0])
            along = _inside(j, j + 1, width, columns, path.stride[1], path.padding[1])
            parts = _without(down, along, *inside) if square else [(down, along)]
            for ys, xs in parts:
                if ys[0] < ys[1] and xs[0] < xs[1]:
                    tap = weights[i : i + 1, j : j + 1]
                    yield _window(path, begin, ys, xs, (i, j), tap, COLLECT_1)


Range = tuple[int, int]


def _inside(first: int, last: int, size: int, outputs: int, stride: int, padding: int) -> Range:
    """The outputs whose window entries ``first`` to ``last`` all lie inside the source."""
    low = max(0, -(-(padding - first) // stride))
    high = min(outputs, (size - last + padding) // stride + 1)
    return low, max(low, high)


def _without(down: Range, along: Range, inner_down: Range, inner_along: Range) -> list[tuple[Range, Range]]:
    """A rectangle of outputs less an inner one, as up to four rectangles."""
    top, bottom = (down[0], inner_down[0]), (inner_down[1], down[1])
    left, right = (along[0], inner_along[0]), (inner_along[1], along[1])
    return [(top, along), (bottom, along), (inner_down, left), (inner_down, right)]


def _window(path: Path, begin: int, ys: Range, xs: Range, tap: tuple[int, int], weights: np.ndarray, kind: int) -> Job:
    first = [
        low * stride + t - pad
        for low, stride, t, pad in zip((ys[0], xs[0]), path.stride, tap, path.padding, strict=True)
    ]
    return Job(
        kind=kind,
        source=(path.source, path.pool),
        first=(first[0], first[1], begin // 64),
        step=path.stride,
        count=(ys[1] - ys[0], xs[1] - xs[0]),
        weights=np.ascontiguousarray(weights),
        target=(ys[0], xs[0]),
        bits=-1,
        reach=(1, 1),
    )


def _rows(path: Path, block: Block, begin: int) -> np.ndarray:
    """Weights as rows ``[source channel, rows, columns, block]``."""
    assert path.weight is not None
    part = path.weight[begin : begin + block.channels].permute(1, 2, 3, 0).numpy()
    rows = np.zeros((*part.shape[:3], block.channels))
    rows[..., : part.shape[3]] = part
    return rows


def _used(rows: np.ndarray) -> int:
    """The channels that have weights at all, as bits of a signed word."""
    bits = sum(1 << int(c) for c in np.flatnonzero(rows.reshape(len(rows), -1).any(1)))
    return bits - (1 << 64) if bits >> 63 else bits
