"""The loops of `fused`, in a module of their own: importing it needs numba, which keeps what it compiled beside it."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from ftbc.neuron.block import REVISION, SIZE, integrate_and_fire_block


# No fastmath: sums must round as torch rounds them. No prange: numba's threads and torch's are one OpenMP pool, and
# each call would change the number of threads that the other works with; `fused` shares out the images instead.
# In place: writing spikes elsewhere takes twice the time, most of it for memory.
@numba.njit(nogil=True, cache=True)
def integrate_and_fire(
    x: Any, constant: Any, theta: Any, v: Any, b: Any, initial: Any, begins: bool, first: int, last: int
) -> None:
    """Images ``first`` to ``last`` of a layer whose pixels lie side by side; x, the currents, become the spikes.

    x: ``[T, N, C, P]``; constant: None, or a current ``[N, C, P]`` that is the same at each step, whatever x holds;
    theta: ``[C]``; v: ``[N, C, P]``, written, too; b: ``[T, C]``; begins: whether the membranes begin at ``initial``,
    ``[C]``, and not at v.
    """
    steps, _, channels, positions = x.shape
    nothing = theta.dtype.type(0)  # not a plain 0: that would make the loop one of float64
    for n in range(first, last):
        for c in range(channels):
            threshold = theta[c]
            membrane = v[n, c]
            if begins:
                membrane[:] = initial[c]
            for t in range(steps):
                spikes, bias = x[t, n, c], b[t, c]
                current = spikes
                if constant is not None:
                    current = constant[n, c]
                for p in range(positions):
                    u = membrane[p] + current[p]
                    u = u + bias
                    s = threshold if u >= threshold else nothing
                    spikes[p] = s
                    membrane[p] = u - s


def _channels_last() -> Any:
    size, revision = SIZE, REVISION

    @numba.njit(nogil=True, cache=True)
    def integrate_and_fire_channels_last(x, constant, theta, v, b, initial, begins, first, last):  # type: ignore[no-untyped-def]
        """As `integrate_and_fire` where the channels of a pixel lie side by side.

        x: ``[T, N, P * C]``; constant: None or ``[N, P * C]``; theta: ``[C]``; v: ``[N, P * C]``; b: ``[T, C]``;
        initial: ``[C]``.
        """
        _ = revision
        steps, _, neurons = x.shape
        channels, block = len(theta), size // x.itemsize
        # Repeated by the length of a block: wherever a block begins, its constants lie side by side.
        length = channels + block
        thresholds, starts = np.empty(length, theta.dtype), np.empty(length, theta.dtype)
        biases = np.empty((steps, length), theta.dtype)
        for i in range(length):
            thresholds[i], starts[i], biases[:, i] = theta[i % channels], initial[i % channels], b[:, i % channels]
        nothing = theta.dtype.type(0)
        currents = x[0] if constant is None else constant
        current_step = x.strides[0] if constant is None else 0
        in_blocks = neurons - neurons % block
        for n in range(first, last):
            for begin in range(0, in_blocks, block):
                place = begin % channels
                spikes, membrane = _address(x[0, n, begin:]), _address(v[n, begin:])
                integrate_and_fire_block(  # pyright: ignore[reportCallIssue]
                    theta, steps, _address(currents[n, begin:]), current_step, spikes, x.strides[0],
                    _address(biases[0, place:]), biases.strides[0], _address(thresholds[place:]),
                    _address(starts[place:]) if begins else membrane, membrane,
                )  # fmt: skip
            for p in range(in_blocks, neurons):
                c = p % channels
                membrane = initial[c] if begins else v[n, p]
                for t in range(steps):
                    u = membrane + (x[t, n, p] if constant is None else constant[n, p])
                    u = u + b[t, c]
                    s = theta[c] if u >= theta[c] else nothing
                    x[t, n, p] = s
                    membrane = u - s
                v[n, p] = membrane

    return integrate_and_fire_channels_last


@numba.njit(nogil=True, cache=True)
def _address(values: Any) -> Any:
    return np.int64(values.ctypes.data)


integrate_and_fire_channels_last = _channels_last()

_AT_ONCE = 1024
"""Neurons whose constants are repeated side by side, so that a loop over them is long enough to be vectorised."""


@numba.njit(nogil=True, cache=True)
def spike_counts(x: Any, theta: Any, v: Any, b: Any, counts: Any, first: int, last: int) -> None:
    """Add to ``counts`` ``[C]`` the spikes of one step; x, v: ``[N, C, P]``, theta, b: ``[C]``."""
    _, channels, positions = x.shape
    for n in range(first, last):
        for c in range(channels):
            threshold, bias, current, membrane = theta[c], b[c], x[n, c], v[n, c]
            fired = 0
            for p in range(positions):
                fired += membrane[p] + current[p] + bias >= threshold
            counts[c] += fired


@numba.njit(nogil=True, cache=True)
def spike_counts_channels_last(x: Any, theta: Any, v: Any, b: Any, counts: Any, first: int, last: int) -> None:
    """As `spike_counts` where the channels of a pixel lie side by side; x, v: ``[N, P * C]``."""
    channels, neurons = len(theta), x.shape[1]
    chunk = max(1, _AT_ONCE // channels) * channels
    thresholds, biases = np.empty(chunk, theta.dtype), np.empty(chunk, theta.dtype)
    fired = np.zeros(chunk, np.int32)
    for begin in range(0, chunk, channels):
        thresholds[begin : begin + channels] = theta
        biases[begin : begin + channels] = b
    for n in range(first, last):
        for begin in range(0, neurons, chunk):
            end = min(begin + chunk, neurons)
            membrane, current = v[n, begin:end], x[n, begin:end]
            for p in range(end - begin):
                fired[p] += membrane[p] + current[p] + biases[p] >= thresholds[p]
    for p in range(chunk):
        counts[p % channels] += fired[p]
