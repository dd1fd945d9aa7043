"""All steps of one layer for some images, from spikes to spikes: the compiled loop of the event engine.

A layer's work at each step is a table of *jobs*. A job walks over pixels of one source of spikes; for each spike it
adds a row of weights to the membranes that the spike reaches or, for depthwise weights, it collects at each membrane.
After the jobs every neuron gains the current that torch computed for it, if any, and its bias, and fires. The
membranes of an image stay in the cache from the first step to the last.
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
    add_counted_rows,
    add_rows,
    add_sums,
    add_where,
    copy_block,
    count_reached,
    fire,
    word_at,
)
from ftbc.vectors import Block, compiled, registers

KIND, SOURCE, IMAGE, STEP, ROW, COLUMN, ROWS, COLUMNS, WEIGHTS, CHANNEL, TARGET, BITS, TAP, DIGITS, DIGIT = range(15)
"""Columns of the job table; addresses, offsets and strides in bytes.

SOURCE: the first word; IMAGE, STEP, ROW, COLUMN: from there to the next image, step, row and column of the lattice;
ROWS, COLUMNS: its size; WEIGHTS: address; CHANNEL: of one channel's weights (for collecting: from one row of words to
the next); TARGET: the first membrane; BITS: the channels that count; TAP: from one pixel of the source to the next;
DIGITS: of the number that says how often a channel counts; DIGIT: from the word of one digit to that of the next."""

COLLECT_1, COLLECT_9 = 1, 2
"""Kinds of job besides `spread` and `spread_sums`: collect from 1 or 3 x 3 pixels."""


def spread(rows: int, columns: int) -> int:
    """The kind of job that adds to ``rows x columns`` membranes for each spike."""
    return 10 * rows + columns


def spread_sums(rows: int, columns: int, groups: int) -> int:
    """The kind of job that does so from a table of the sums over ``groups`` of channels."""
    return 100 * groups + spread(rows, columns)


SPREADS = ((3, 3), (2, 3), (2, 2), (1, 3), (1, 2), (2, 1), (1, 1))
SUMS = {
    (3, 3, 2): 8, (2, 2, 2): 8, (1, 2, 2): 8, (2, 1, 2): 8, (1, 1, 2): 8, (3, 3, 4): 8, (1, 1, 8): 4, (1, 1, 16): 4,
}  # fmt: skip
"""Rows, columns and groups of `spread_sums`: the channels of a group. A byte of channels makes a table that the second
cache holds, and half as many additions as half a byte of them."""


def fits(block: Block, rows: int, columns: int) -> bool:
    """Whether so many pixels of membranes fit into the registers at once."""
    return rows * columns * block.vectors <= registers()[1]


@numba.njit(inline="always")
def _spread(element, channels, rows, columns, job, place, target, pixel, v_row):  # type: ignore[no-untyped-def]
    """One row of a lattice: each spike of a pixel adds its channel's weights to ``rows x columns`` membranes."""
    column, bits = np.uint64(job[COLUMN]), np.uint64(job[BITS])
    weights, channel = np.uint64(job[WEIGHTS]), np.uint64(job[CHANNEL])
    digits, digit = np.uint64(job[DIGITS]), np.uint64(job[DIGIT])
    for _ in range(job[COLUMNS]):
        if digits != 1:
            add_counted_rows(
                element, channels, columns, rows, target, v_row, weights, channel, bits, place, digit, digits
            )
        else:
            word = word_at(place) & bits
            if word != 0:
                add_rows(element, channels, columns, rows, target, v_row, weights, channel, word)
        target += pixel
        place += column


@numba.njit(inline="always")
def _spread_sums(element, channels, rows, columns, groups, bits, job, place, target, v_row):  # type: ignore[no-untyped-def]
    """As `_spread`, from a table of sums."""
    weights, column, count = np.uint64(job[WEIGHTS]), np.uint64(job[COLUMN]), np.uint64(job[COLUMNS])
    add_sums(element, channels, columns, rows, groups, bits, target, v_row, weights, place, column, count)


@numba.njit(inline="always")
def _collect(element, channels, rows, columns, job, place, target, pixel):  # type: ignore[no-untyped-def]
    """One row of membranes: each gains the weights of the spikes in its own window."""
    column, tap = np.uint64(job[COLUMN]), np.uint64(job[TAP])
    weights, row = np.uint64(job[WEIGHTS]), np.uint64(job[CHANNEL])
    for _ in range(job[COLUMNS]):
        add_where(element, channels, columns, rows, target, weights, place, tap, row)
        target += pixel
        place += column


@numba.njit(inline="always")
def _fire(element, channels, has_current, threshold, width, v, size, x, x_pixel, bias, peak, sent, out_pixel):  # type: ignore[no-untyped-def]
    """One row of neurons, as many pixels at once as one word has bits for; ``bias`` and ``peak`` fill a word, too."""
    pixels = np.uint64(64 // channels)
    groups, others = np.uint64(width) // pixels, np.uint64(width) % pixels
    if groups != 0:
        x_group = x_pixel * pixels
        fire(element, channels, 64, has_current, threshold, v, x, x_group, bias, peak, sent, out_pixel, groups)
    if others != 0:
        done = groups * pixels
        v, x, sent = v + done * size, x + done * x_pixel, sent + done * out_pixel
        fire(element, channels, channels, has_current, threshold, v, x, x_pixel, bias, peak, sent, out_pixel, others)


@cache
def count_kernel(element: str, channels: int) -> Callable[..., None]:
    """How many neurons of each channel would fire next; the counterpart of `layer_kernel` for charged membranes."""
    size, revision = Block(element, channels).size, REVISION

    @compiled
    def count(current, shape, v, bias, counts, t, first, last):  # type: ignore[no-untyped-def]
        """Add them up over images ``first`` to ``last`` at step t; as for `layer_kernel`, counts: ``[channels]``."""
        _ = revision
        v_row, x_row, x_pixel = np.uint64(shape[2]), np.uint64(current[3]), np.uint64(current[4])
        b = np.uint64(bias.ctypes.data + t * (64 // channels) * size)
        counts_at, width = np.uint64(counts.ctypes.data), np.uint64(shape[1])
        for n in range(first, last):
            at = np.uint64(v.ctypes.data + n * v.strides[0] + shape[3])
            x = np.uint64(current[0] + n * current[1] + t * current[2])
            for _ in range(shape[0]):
                if current[0] != 0:
                    count_reached(element, channels, 1, shape[5], at, x, x_pixel, b, counts_at, width)
                else:
                    count_reached(element, channels, 0, shape[5], at, x, x_pixel, b, counts_at, width)
                at += v_row
                x += x_row

    return count


@compiled
def put_scaled(values, scale, step, room) -> None:  # type: ignore[no-untyped-def]
    """Write ``values [pixels, channels]``, times the scale, into a wider ``room``, with zeros in what is left of it.

    step: they are rounded to multiples of it first, a power of two, if it is not 0.
    """
    channels = values.shape[1]
    per_step, times = (1 / step, step * scale) if step != 0 else (scale, scale)
    for pixel in range(len(values)):
        for c in range(channels):
            value = values[pixel, c]
            room[pixel, c] = np.rint(value * per_step) * times if step != 0 else value * scale
        for c in range(channels, room.shape[1]):
            room[pixel, c] = 0


@cache
def layer_kernel(element: str, channels: int) -> Callable[..., None]:
    """The loop for layers whose channels come in blocks of ``channels``; compiled at its first call, kept on disk."""
    block = Block(element, channels)
    size, revision = block.size, REVISION
    fits_33, fits_23, fits_22, fits_13, fits_12, fits_21 = (fits(block, *shape) for shape in SPREADS[:-1])

    # Closed over are numbers and text alone: only then does numba find the compiled code again.
    @compiled
    def run(jobs, current, shape, v, start, bias, peak, out, begin, end, first, last):  # type: ignore[no-untyped-def]
        """Images ``first`` to ``last``, from one half of a step to another: 2 t is to charge, 2 t + 1 to fire.

        current: address of the first, 0 if there is none, and bytes from there to the next image, step, row and column;
        shape: rows and columns of the output, bytes of a row of membranes, bytes from the first membrane to the first
        that is read, bytes of a pixel of the output, the threshold (1 or, for int16, the scale); v: membranes ``[N,
        cells]``, with margins that nobody reads, or ``[1, cells]`` for all images in turn, if no half is left for
        another call; start: ``[channels]`` or ``[cells]``; bias: ``[T, 64]`` and peak: ``[64]``, repeated to fill a
        word; out: address of the first word, bytes of an image, of a step.
        """
        _ = revision
        height, width, v_row, out_pixel = shape[0], shape[1], np.uint64(shape[2]), np.uint64(shape[4])
        threshold, pixel = shape[5], np.uint64(size)
        start_at, start_pixel = np.uint64(start.ctypes.data), pixel if len(start) > channels else np.uint64(0)
        bias_at, peak_at = np.uint64(bias.ctypes.data), np.uint64(peak.ctypes.data)
        x_row, x_pixel = np.uint64(current[3]), np.uint64(current[4])
        for n in range(first, last):
            v_at = np.uint64(v.ctypes.data + (n * v.strides[0] if len(v) > 1 else 0))
            inner = v_at + np.uint64(shape[3])
            if begin == 0:
                for block in range(v.shape[1] // channels):
                    begun = start_at + np.uint64(block) * start_pixel
                    copy_block(element, channels, v_at + np.uint64(block) * pixel, begun)
            for half in range(begin, end):
                t = half // 2
                for j in range(len(jobs) if half % 2 == 0 else 0):
                    job = jobs[j]
                    kind = job[KIND]
                    place = np.uint64(job[SOURCE] + n * job[IMAGE] + t * job[STEP])
                    target = v_at + np.uint64(job[TARGET])
                    for _ in range(job[ROWS]):
                        if fits_33 and kind == 33:
                            _spread(element, channels, 3, 3, job, place, target, pixel, v_row)
                        elif fits_33 and kind == 233:
                            _spread_sums(element, channels, 3, 3, 2, 8, job, place, target, v_row)
                        elif fits_33 and kind == 433:
                            _spread_sums(element, channels, 3, 3, 4, 8, job, place, target, v_row)
                        elif fits_23 and kind == 23:
                            _spread(element, channels, 2, 3, job, place, target, pixel, v_row)
                        elif fits_22 and kind == 22:
                            _spread(element, channels, 2, 2, job, place, target, pixel, v_row)
                        elif fits_13 and kind == 13:
                            _spread(element, channels, 1, 3, job, place, target, pixel, v_row)
                        elif fits_12 and kind == 12:
                            _spread(element, channels, 1, 2, job, place, target, pixel, v_row)
                        elif fits_21 and kind == 21:
                            _spread(element, channels, 2, 1, job, place, target, pixel, v_row)
                        elif kind == 11:
                            _spread(element, channels, 1, 1, job, place, target, pixel, v_row)
                        elif fits_22 and kind == 222:
                            _spread_sums(element, channels, 2, 2, 2, 8, job, place, target, v_row)
                        elif fits_12 and kind == 212:
                            _spread_sums(element, channels, 1, 2, 2, 8, job, place, target, v_row)
                        elif fits_21 and kind == 221:
                            _spread_sums(element, channels, 2, 1, 2, 8, job, place, target, v_row)
                        elif kind == 211:
                            _spread_sums(element, channels, 1, 1, 2, 8, job, place, target, v_row)
                        elif kind == 811:
                            _spread_sums(element, channels, 1, 1, 8, 4, job, place, target, v_row)
                        elif kind == 1611:
                            _spread_sums(element, channels, 1, 1, 16, 4, job, place, target, v_row)
                        elif kind == COLLECT_9:
                            _collect(element, channels, 3, 3, job, place, target, pixel)
                        else:
                            _collect(element, channels, 1, 1, job, place, target, pixel)
                        target += v_row
                        place += np.uint64(job[ROW])
                b = bias_at + np.uint64(t * (64 // channels) * size)
                sent = np.uint64(out[0] + n * out[1] + t * out[2])
                x = np.uint64(current[0] + n * current[1] + t * current[2])
                at = inner
                for _ in range(height if half % 2 == 1 else 0):
                    if current[0] != 0:
                        _fire(
                            element, channels, 1, threshold, width, at, pixel, x, x_pixel, b, peak_at, sent, out_pixel
                        )
                    else:
                        _fire(
                            element, channels, 0, threshold, width, at, pixel, x, x_pixel, b, peak_at, sent, out_pixel
                        )
                    at += v_row
                    x += x_row
                    sent += np.uint64(width) * out_pixel

    return run
