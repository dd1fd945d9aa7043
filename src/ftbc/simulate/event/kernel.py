"""All steps of one layer for some images, from spikes to spikes: the compiled loop of the event engine.

A layer's work at each step is a table of *jobs*. A job walks over pixels of one source of spikes; for each spike it
adds a row of weights to the membranes that the spike reaches or, for depthwise weights, it collects at each membrane.
After the jobs every neuron fires. The membranes of an image stay in the cache from the first step to the last.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np

from ftbc.simulate.event.vector import Block, add_block, add_rows, add_where, fire, put_word, registers, word_at

KIND, SOURCE, IMAGE, STEP, ROW, COLUMN, ROWS, COLUMNS, WEIGHTS, CHANNEL, TARGET, ACROSS, BITS, TAP = range(14)
"""Columns of the job table; addresses, offsets and strides in bytes.

SOURCE: the first word; IMAGE, STEP, ROW, COLUMN: from there to the next image, step, row and column of the lattice;
ROWS, COLUMNS: its size; WEIGHTS: address; CHANNEL: of one channel's weights (for collecting: from one row of words to
the next); TARGET: the first membrane; ACROSS: from one column's membranes to the next; BITS: the channels that count;
TAP: from one pixel of the source to the next."""

CURRENT, COLLECT_1, COLLECT_9, PAIR = 0, 1, 2, 3
"""Kinds of job besides `spread`: add a current; collect from 1 or 3 x 3 pixels; spread two neighbouring pixels of up
to 16 channels at once, 3 x 4."""


def spread(rows: int, columns: int) -> int:
    """The kind of job that adds to ``rows x columns`` membranes for each spike."""
    return 10 * rows + columns


SPREADS = ((3, 3), (2, 2), (1, 3), (1, 2), (2, 1), (1, 1))


def fits(block: Block, rows: int, columns: int) -> bool:
    """Whether so many pixels of membranes fit into the registers at once."""
    return rows * Block(block.element, block.channels * columns).vectors <= registers()[1]


@numba.njit(inline="always")
def _spread(  # noqa: PLR0913
    element, channels, columns, rows, target, v_row, weights, channel, place, column, count, across, bits
):  # type: ignore[no-untyped-def]
    for _ in range(count):
        word = word_at(place) & bits
        if word != 0:
            add_rows(element, channels, columns, rows, target, v_row, weights, channel, word)
        target += across
        place += column


@cache
def layer_kernel(element: str, channels: int, threshold: int) -> Callable[..., None]:
    """The loop for layers whose channels come in blocks of ``channels``; compiled at its first call, kept on disk."""
    block = Block(element, channels)
    size = block.size
    fits_33, fits_22, fits_13, fits_12, fits_21, _ = (fits(block, *spread) for spread in SPREADS)
    fits_pair = channels == 16 and fits(block, 3, 4)

    # Closed over are numbers and text alone: only then does numba find the compiled code again.
    @numba.njit(nogil=True, cache=True)
    def run(jobs, shape, v, start, bias, peak, out, steps, first, last):  # type: ignore[no-untyped-def]  # noqa: PLR0912
        """Images ``first`` to ``last``.

        shape: rows and columns of the output, bytes of a row of membranes, bytes from the first membrane to the first
        that is read, bytes of a pixel of the output; v: membranes, with margins that nobody reads; start:
        ``[channels]``; bias: ``[T, channels]``; out: address of the first word, bytes of an image, of a step.
        """
        height, width, out_pixel = shape[0], shape[1], np.uint64(shape[4])
        v_row = np.uint64(shape[2])
        v_at = np.uint64(v.ctypes.data)
        inner = v_at + np.uint64(shape[3])
        start_at, bias_at, peak_at = np.uint64(start.ctypes.data), np.uint64(bias.ctypes.data), np.uint64(peak.ctypes.data)
        block_size = np.uint64(size)
        for n in range(first, last):
            v[:] = 0
            for y in range(height):
                for x in range(width):
                    add_block(element, channels, inner + np.uint64(y) * v_row + np.uint64(x) * block_size, start_at)
            for t in range(steps):
                for j in range(len(jobs)):
                    job = jobs[j]
                    kind, count = job[KIND], job[COLUMNS]
                    place = np.uint64(job[SOURCE] + n * job[IMAGE] + t * job[STEP])
                    row, column, across = np.uint64(job[ROW]), np.uint64(job[COLUMN]), np.uint64(job[ACROSS])
                    weights, channel, bits = np.uint64(job[WEIGHTS]), np.uint64(job[CHANNEL]), np.uint64(job[BITS])
                    tap = np.uint64(job[TAP])
                    target = v_at + np.uint64(job[TARGET])
                    for _ in range(job[ROWS]):
                        if kind == 33:
                            if fits_33:
                                _spread(element, channels, 3, 3, target, v_row, weights, channel, place, column, count, across, bits)
                        elif kind == 13:
                            if fits_13:
                                _spread(element, channels, 3, 1, target, v_row, weights, channel, place, column, count, across, bits)
                        elif kind == 12:
                            if fits_12:
                                _spread(element, channels, 2, 1, target, v_row, weights, channel, place, column, count, across, bits)
                        elif kind == 22:
                            if fits_22:
                                _spread(element, channels, 2, 2, target, v_row, weights, channel, place, column, count, across, bits)
                        elif kind == 21:
                            if fits_21:
                                _spread(element, channels, 1, 2, target, v_row, weights, channel, place, column, count, across, bits)
                        elif kind == 11:
                            _spread(element, channels, 1, 1, target, v_row, weights, channel, place, column, count, across, bits)
                        elif kind == PAIR:
                            if fits_pair:
                                left, pair = target, place
                                for _ in range(count):
                                    word = (word_at(pair) & bits) | ((word_at(pair + tap) & bits) << np.uint64(16))
                                    if word != 0:
                                        add_rows(element, channels, 4, 3, left, v_row, weights, channel, word)
                                    left += across
                                    pair += column
                        else:
                            left, pair = target, place
                            for _ in range(count):
                                if kind == CURRENT:
                                    add_block(element, channels, left, pair)
                                elif kind == COLLECT_1:
                                    add_where(element, channels, 1, 1, left, weights, pair, tap, channel)
                                else:
                                    add_where(element, channels, 3, 3, left, weights, pair, tap, channel)
                                left += across
                                pair += column
                        target += v_row
                        place += row
                b = bias_at + np.uint64(t) * block_size
                sent = np.uint64(out[0] + n * out[1] + t * out[2])
                for y in range(height):
                    place = inner + np.uint64(y) * v_row
                    for _ in range(width):
                        put_word(sent, fire(element, channels, threshold, place, b, peak_at))
                        place += block_size
                        sent += out_pixel

    return run
