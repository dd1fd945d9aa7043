"""The loops of `fused`, in a module of their own: importing it needs numba, which keeps what it compiled beside it."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


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


_AT_ONCE = 1024
"""Neurons whose membranes and constants stay in the innermost cache over all steps."""


@numba.njit(nogil=True, cache=True)
def integrate_and_fire_channels_last(
    x: Any, constant: Any, theta: Any, v: Any, b: Any, initial: Any, begins: bool, first: int, last: int
) -> None:
    """As `integrate_and_fire` where the channels of a pixel lie side by side.

    x: ``[T, N, P * C]``; constant: None or ``[N, P * C]``; theta: ``[C]``; v: ``[N, P * C]``; b: ``[T, C]``; initial:
    ``[C]``.
    """
    steps, _, neurons = x.shape
    channels = len(theta)
    chunk = max(1, _AT_ONCE // channels) * channels
    # Constants repeated to the length of a chunk make one long loop of many short ones, which can be vectorised.
    thresholds, biases = np.empty(chunk, theta.dtype), np.empty((steps, chunk), theta.dtype)
    starts = np.empty(chunk, theta.dtype)
    for begin in range(0, chunk, channels):
        thresholds[begin : begin + channels] = theta
        starts[begin : begin + channels] = initial
        for t in range(steps):
            biases[t, begin : begin + channels] = b[t]
    nothing = theta.dtype.type(0)
    for n in range(first, last):
        for begin in range(0, neurons, chunk):
            end = min(begin + chunk, neurons)
            membrane = v[n, begin:end]
            if begins:
                membrane[:] = starts[: end - begin]
            for t in range(steps):
                spikes, bias = x[t, n, begin:end], biases[t]
                current = spikes
                if constant is not None:
                    current = constant[n, begin:end]
                for p in range(end - begin):
                    u = membrane[p] + current[p]
                    u = u + bias[p]
                    s = thresholds[p] if u >= thresholds[p] else nothing
                    spikes[p] = s
                    membrane[p] = u - s


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
