"""How charged membranes of neurons other than plain ones fire on events: a compiled loop for each `Rule`.

Each does to one row of pixels after another what `_fire` of its kind (`neuron/`) does to whole tensors, with thresholds
of 1, and writes what is sent as bits (`coding`). The equations stand there; plain neurons fire in `kernel`. Loops over
all channels of a row are long enough to become vector code.

Arguments of all loops: v, membranes that events have charged, ``[N, cells]``; memory: what else neurons remember,
``[numbers, N, cells]``; x: currents ``[N or 1, T or 1, rows, columns, channels]`` besides; b: bias of the step; words:
where spikes go, ``[N, T, rows, columns, planes * words]``; place: rows, columns, cells from one row of membranes to the
next, the first cell that fires, the block's word in a plane, and the words of a plane; numbers: the rule's; t: the
step; then the first image, and the one behind the last.
"""

# pyright: reportCallIssue=false
# The operations of `vector` are called without their first argument, which is the compiler's.

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numba
import numpy as np

from ftbc.simulate.event.vector import REVISION, bits_at
from ftbc.vectors import compiled


@cache
def firing(loop: str, element: str, channels: int, planes: int, has_current: bool) -> Callable[..., None]:
    """The loop of that name for blocks of so many channels; compiled at its first call, kept on disk."""
    return _LOOPS[loop](element, channels, planes, has_current)


@numba.njit(inline="always")
def tiled(b, channels, columns):  # type: ignore[no-untyped-def]
    """The bias of each channel, for each pixel of a row."""
    biases = np.empty(columns * channels, b.dtype)
    for column in range(columns):
        biases[column * channels : (column + 1) * channels] = b[:channels]
    return biases


@numba.njit(inline="always")
def _add_current(membranes, x, n, t, y, channels, word):  # type: ignore[no-untyped-def]
    """Add the currents that torch computed to a row of membranes."""
    currents = x[n % len(x), t % x.shape[1], y]
    for column in range(len(currents)):
        current = currents[column, word * channels : (word + 1) * channels]
        membrane = membranes[column * channels : (column + 1) * channels]
        for c in range(channels):
            membrane[c] += current[c]


@numba.njit(inline="always")
def _write(spikes, element, channels, words, word):  # type: ignore[no-untyped-def]
    """Write a row of spikes, each 0 or 1, as bits into one of the ``words`` of each pixel."""
    at = np.uint64(spikes.ctypes.data)
    size = np.uint64(channels * spikes.itemsize)
    for column in range(len(words)):
        words[column, word] = bits_at(element, channels, at + np.uint64(column) * size)


def _signed(element: str, channels: int, _: int, has_current: bool) -> Callable[..., None]:
    """`neuron/signed.py`; memory: m."""
    revision = REVISION

    @compiled
    def run(v, memory, x, b, words, place, numbers, t, first, last):  # type: ignore[no-untyped-def]
        _ = revision
        rows, columns, row, begin, word, apart = place
        wide, kind = columns * channels, v.dtype.type
        nothing, one, below, clamp = kind(0), kind(1), kind(-numbers[0]), numbers[1] != 0
        biases, plus, minus = tiled(b, channels, columns), np.empty(wide, v.dtype), np.empty(wide, v.dtype)
        for n in range(first, last):
            for y in range(rows):
                at = begin + y * row
                membrane, count = v[n, at : at + wide], memory[0, n, at : at + wide]
                if has_current:
                    _add_current(membrane, x, n, t, y, channels, word)
                for c in range(wide):
                    u = membrane[c] + biases[c]
                    taken_back = one if (u <= below) & (count[c] > nothing) else nothing
                    fired = one if u >= one else nothing
                    plus[c], minus[c] = fired, taken_back
                    left, kept = u - fired + taken_back, count[c] + fired - taken_back
                    count[c] = kept
                    membrane[c] = nothing if clamp & (kept <= nothing) & (left < nothing) else left
                _write(plus, element, channels, words[n, t, y], word)
                _write(minus, element, channels, words[n, t, y], apart + word)

    return run


def _burst(element: str, channels: int, planes: int, has_current: bool) -> Callable[..., None]:
    """`neuron/burst.py`."""
    revision = REVISION

    @compiled
    def run(v, memory, x, b, words, place, numbers, t, first, last):  # type: ignore[no-untyped-def]
        _ = revision
        rows, columns, row, begin, word, apart = place
        wide, kind = columns * channels, v.dtype.type
        nothing, most = kind(0), kind(numbers[0])
        biases, count, digit = tiled(b, channels, columns), np.empty(wide, np.int32), np.empty(wide, v.dtype)
        for n in range(first, last):
            for y in range(rows):
                at = begin + y * row
                membrane = v[n, at : at + wide]
                if has_current:
                    _add_current(membrane, x, n, t, y, channels, word)
                for c in range(wide):
                    u = membrane[c] + biases[c]
                    times = u if u > nothing else nothing
                    times = np.floor(most if times > most else times)
                    count[c] = np.int32(times)
                    membrane[c] = u - times
                for plane in range(planes):
                    for c in range(wide):
                        digit[c] = kind((count[c] >> plane) & 1)
                    _write(digit, element, channels, words[n, t, y], plane * apart + word)

    return run


def _differential(element: str, channels: int, planes: int, has_current: bool) -> Callable[..., None]:
    """`neuron/differential.py`; v holds the changes that arrived, W d; memory: membrane, sum of all y, and W r."""
    revision, levels = REVISION, planes // 2

    @compiled
    def run(v, memory, x, b, words, place, numbers, t, first, last):  # type: ignore[no-untyped-def]
        _ = revision
        rows, columns, row, begin, word, apart = place
        wide, kind = columns * channels, v.dtype.type
        nothing, one, unbounded, middle = kind(0), kind(1), kind(np.inf), kind(0.75)
        rounding, before, steps = kind(numbers[0]), kind(max(t, 1)), kind(t + 1)
        biases, change = tiled(b, channels, columns), np.empty(wide, v.dtype)
        largest, plane = np.empty(wide, v.dtype), np.empty(wide, v.dtype)
        for n in range(first, last):
            for y in range(rows):
                at = begin + y * row
                arrived, membrane = v[n, at : at + wide], memory[0, n, at : at + wide]
                total, received = memory[1, n, at : at + wide], memory[2, n, at : at + wide]
                if has_current:
                    _add_current(membrane, x, n, t, y, channels, word)
                for c in range(wide):
                    membrane[c] += received[c] + arrived[c] + biases[c]
                    received[c] += arrived[c] / steps
                    arrived[c] = nothing
                for c in range(wide):
                    mean = total[c] / before
                    u = membrane[c] - mean
                    wanted = abs(u) / middle
                    most = unbounded if u > nothing else (total[c] + mean) / rounding
                    largest[c] = wanted if wanted < most else most
                    membrane[c], change[c] = u, nothing
                    total[c] += mean
                for k in range(levels - 1, -1, -1):
                    level = kind(0.5**k)
                    for c in range(wide):
                        size = level if membrane[c] > nothing else -level
                        change[c] = size if largest[c] >= level else change[c]
                for k in range(planes):
                    worth = kind(0.5**k) if k < levels else kind(-(0.5 ** (k - levels)))
                    for c in range(wide):
                        plane[c] = one if change[c] == worth else nothing
                    _write(plane, element, channels, words[n, t, y], k * apart + word)
                for c in range(wide):
                    membrane[c] -= change[c]
                    total[c] += change[c]

    return run


def _residual(element: str, channels: int, _: int, has_current: bool) -> Callable[..., None]:
    """`neuron/residual.py`; memory: where the membrane begins, and whether it is awake."""
    revision = REVISION

    @compiled
    def run(v, memory, x, b, words, place, numbers, t, first, last):  # type: ignore[no-untyped-def]
        _ = revision
        rows, columns, row, begin, word, _ = place
        wide, kind = columns * channels, v.dtype.type
        nothing, one, extra, margin = kind(0), kind(1), numbers[0], kind(numbers[1])
        biases, sent = tiled(b, channels, columns), np.empty(wide, v.dtype)
        for n in range(first, last):
            for y in range(rows):
                at = begin + y * row
                membrane, start = v[n, at : at + wide], memory[0, n, at : at + wide]
                awake = memory[1, n, at : at + wide]
                if has_current:
                    _add_current(membrane, x, n, t, y, channels, word)
                for c in range(wide):
                    u = membrane[c] + biases[c]
                    fired = one if u >= one else nothing
                    sent[c] = fired if t < extra else fired * awake[c]
                    membrane[c] = u - fired
                if t + 1 == extra:
                    for c in range(wide):
                        awake[c] = one if membrane[c] > margin else nothing
                        membrane[c] = start[c]
                _write(sent, element, channels, words[n, t, y], word)

    return run


_LOOPS = {"signed": _signed, "burst": _burst, "differential": _differential, "residual": _residual}
