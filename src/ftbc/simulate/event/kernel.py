"""All steps of one layer for some images, from spikes to spikes: the compiled loop of the event engine.

A layer's work at each step is a table of *jobs*. A job walks over pixels of one source of spikes; for each spike it
adds a row of weights to the membranes that the spike reaches or, for depthwise weights, it collects at each membrane.
After the jobs every neuron fires. The membranes of an image stay in the cache from the first step to the last.
"""

# pyright: reportCallIssue=false
# The operations of `vector` are called without their first argument, which is the compiler's.

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numba
import numpy as np

from ftbc.simulate.event.vector import (
    REVISION,
    Block,
    add_block,
    add_rows,
    add_sums,
    add_where,
    compiled,
    fire,
    put_word,
    registers,
    word_at,
)

KIND, SOURCE, IMAGE, STEP, ROW, COLUMN, ROWS, COLUMNS, WEIGHTS, CHANNEL, TARGET, ACROSS, BITS, TAP = range(14)
"""Columns of the job table; addresses, offsets and strides in bytes.

SOURCE: the first word; IMAGE, STEP, ROW, COLUMN: from there to the next image, step, row and column of the lattice;
ROWS, COLUMNS: its size; WEIGHTS: address; CHANNEL: of one channel's weights (for collecting: from one row of words to
the next); TARGET: the first membrane; ACROSS: from one column's membranes to the next; BITS: the channels that count;
TAP: from one pixel of the source to the next."""

CURRENT, COLLECT_1, COLLECT_9, PAIR, PAIR_SUMS = 0, 1, 2, 3, 4
"""Kinds of job besides `spread`: add a current; collect from 1 or 3 x 3 pixels; spread two neighbouring pixels of up
to 16 channels at once, 3 x 4, event by event or from a table of sums."""


def spread(rows: int, columns: int) -> int:
    """The kind of job that adds to ``rows x columns`` membranes for each spike."""
    return 10 * rows + columns


PAIRED = 16
"""The block whose pixels are taken in pairs."""
SPREADS = ((3, 3), (2, 2), (1, 3), (1, 2), (2, 1), (1, 1))


def fits(block: Block, rows: int, columns: int) -> bool:
    """Whether so many pixels of membranes fit into the registers at once."""
    return rows * Block(block.element, block.channels * columns).vectors <= registers()[1]


@numba.njit(inline="always")
def _spread(element, channels, rows, columns, job, place, target, v_row):  # type: ignore[no-untyped-def]
    """One row of a lattice: each spike of a pixel adds its channel's weights to ``rows x columns`` membranes."""
    column, across, bits = np.uint64(job[COLUMN]), np.uint64(job[ACROSS]), np.uint64(job[BITS])
    weights, channel = np.uint64(job[WEIGHTS]), np.uint64(job[CHANNEL])
    for _ in range(job[COLUMNS]):
        word = word_at(place) & bits
        if word != 0:
            add_rows(element, channels, columns, rows, target, v_row, weights, channel, word)
        target += across
        place += column


@numba.njit(inline="always")
def _spread_pairs(element, channels, by_sums, job, place, target, v_row):  # type: ignore[no-untyped-def]
    """As `_spread`, two neighbouring pixels at once: half as many branches, which few channels spend their time on."""
    column, across, bits, tap = (
        np.uint64(job[COLUMN]),
        np.uint64(job[ACROSS]),
        np.uint64(job[BITS]),
        np.uint64(job[TAP]),
    )
    weights, channel = np.uint64(job[WEIGHTS]), np.uint64(job[CHANNEL])
    for _ in range(job[COLUMNS]):
        word = (word_at(place) & bits) | ((word_at(place + tap) & bits) << np.uint64(16))
        if word != 0:
            if by_sums:
                add_sums(element, channels, 4, 3, target, v_row, weights, channel, word)
            else:
                add_rows(element, channels, 4, 3, target, v_row, weights, channel, word)
        target += across
        place += column


@numba.njit(inline="always")
def _collect(element, channels, rows, columns, job, place, target):  # type: ignore[no-untyped-def]
    """One row of membranes: each gains the weights of the spikes in its own window."""
    column, across, tap = np.uint64(job[COLUMN]), np.uint64(job[ACROSS]), np.uint64(job[TAP])
    weights, row = np.uint64(job[WEIGHTS]), np.uint64(job[CHANNEL])
    for _ in range(job[COLUMNS]):
        add_where(element, channels, columns, rows, target, weights, place, tap, row)
        target += across
        place += column


@numba.njit(inline="always")
def _add_current(element, channels, job, place, target):  # type: ignore[no-untyped-def]
    """One row of membranes gains its currents."""
    column, across = np.uint64(job[COLUMN]), np.uint64(job[ACROSS])
    for _ in range(job[COLUMNS]):
        add_block(element, channels, target, place)
        target += across
        place += column


@numba.njit(inline="always")
def _fire(element, channels, threshold, width, membrane, bias, peak, sent, out_pixel, size):  # type: ignore[no-untyped-def]
    """One row of neurons, as many pixels at once as one word has bits for; ``bias`` and ``peak`` fill a word, too."""
    together = 64 // channels
    mask = np.uint64(-1) >> np.uint64(64 - channels)
    x = 0
    while x + together <= width:
        word = fire(element, 64, threshold, membrane, bias, peak)
        for _ in range(together):
            put_word(sent, word & mask)
            word >>= np.uint64(channels % 64)
            sent += out_pixel
        membrane += size * np.uint64(together)
        x += together
    while x < width:
        put_word(sent, fire(element, channels, threshold, membrane, bias, peak))
        membrane += size
        sent += out_pixel
        x += 1


@cache
def layer_kernel(element: str, channels: int) -> Callable[..., None]:
    """The loop for layers whose channels come in blocks of ``channels``; compiled at its first call, kept on disk."""
    block = Block(element, channels)
    size, revision = block.size, REVISION
    fits_33, fits_22, fits_13, fits_12, fits_21 = (fits(block, *shape) for shape in SPREADS[:-1])
    fits_pair = channels == PAIRED and fits(block, 3, 4)

    # Closed over are numbers and text alone: only then does numba find the compiled code again.
    @compiled
    def run(jobs, shape, v, start, bias, peak, out, steps, first, last):  # type: ignore[no-untyped-def]
        """Images ``first`` to ``last``.

        shape: rows and columns of the output, bytes of a row of membranes, bytes from the first membrane to the first
        that is read, bytes of a pixel of the output, the threshold (1 or, for int16, the scale); v: membranes, with
        margins that nobody reads; start: ``[channels]``; bias: ``[T, 64]`` and peak: ``[64]``, repeated to fill a
        word; out: address of the first word, bytes of an image, of a step.
        """
        _ = revision
        height, width, v_row, out_pixel = shape[0], shape[1], np.uint64(shape[2]), np.uint64(shape[4])
        threshold = shape[5]
        v_at, pixel = np.uint64(v.ctypes.data), np.uint64(size)
        inner = v_at + np.uint64(shape[3])
        start_at, bias_at, peak_at = (
            np.uint64(start.ctypes.data), np.uint64(bias.ctypes.data), np.uint64(peak.ctypes.data)
        )  # fmt: skip
        for n in range(first, last):
            v[:] = 0
            for y in range(height):
                for x in range(width):
                    add_block(element, channels, inner + np.uint64(y) * v_row + np.uint64(x) * pixel, start_at)
            for t in range(steps):
                for j in range(len(jobs)):
                    job = jobs[j]
                    kind = job[KIND]
                    place = np.uint64(job[SOURCE] + n * job[IMAGE] + t * job[STEP])
                    target = v_at + np.uint64(job[TARGET])
                    for _ in range(job[ROWS]):
                        if fits_pair and kind == PAIR:
                            _spread_pairs(element, channels, False, job, place, target, v_row)
                        elif fits_pair and kind == PAIR_SUMS:
                            _spread_pairs(element, channels, True, job, place, target, v_row)
                        elif fits_33 and kind == 33:
                            _spread(element, channels, 3, 3, job, place, target, v_row)
                        elif fits_22 and kind == 22:
                            _spread(element, channels, 2, 2, job, place, target, v_row)
                        elif fits_13 and kind == 13:
                            _spread(element, channels, 1, 3, job, place, target, v_row)
                        elif fits_12 and kind == 12:
                            _spread(element, channels, 1, 2, job, place, target, v_row)
                        elif fits_21 and kind == 21:
                            _spread(element, channels, 2, 1, job, place, target, v_row)
                        elif kind == 11:
                            _spread(element, channels, 1, 1, job, place, target, v_row)
                        elif kind == COLLECT_9:
                            _collect(element, channels, 3, 3, job, place, target)
                        elif kind == COLLECT_1:
                            _collect(element, channels, 1, 1, job, place, target)
                        else:
                            _add_current(element, channels, job, place, target)
                        target += v_row
                        place += np.uint64(job[ROW])
                b = bias_at + np.uint64(t * (64 // channels) * size)
                sent = np.uint64(out[0] + n * out[1] + t * out[2])
                membrane = inner
                for _ in range(height):
                    _fire(element, channels, threshold, width, membrane, b, peak_at, sent, out_pixel, pixel)
                    membrane += v_row
                    sent += np.uint64(width) * out_pixel

    return run
