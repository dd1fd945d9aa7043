"""The loop of `descent`, in a module of its own: importing it needs numba, which keeps what it compiled beside it."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

_LEAST = 1e-12


# Sums may be added in any order: they decide between moves, whose effect is far larger than rounding.
@numba.njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def _from(
    x: Any, a: Any, theta: Any, b: Any, weights: Any, variance: float, first: int, v: Any, n: Any, e: Any
) -> float:
    """J when steps from ``first`` on have changed: v, n ``[T + 1, P]`` and e ``[T]`` hold the steps before, and are
    written from there on."""
    steps, places = x.shape
    nothing = theta * 0
    for t in range(first, steps):
        before, after, count, counted = v[t], v[t + 1], n[t], n[t + 1]
        current, bias = x[t], b[t]
        total, squares, product = 0, 0, 0.0
        for p in range(places):
            u = before[p] + current[p]
            u = u + bias
            fired = u >= theta
            after[p] = u - (theta if fired else nothing)
            sent = count[p] + (1 if fired else 0)
            counted[p] = sent
        if weights[t] > 0:
            for p in range(places):
                sent = np.int64(counted[p])
                total += sent
                squares += sent * sent
                product += counted[p] * a[p]
        mean = total / places
        spread = squares / places - mean * mean
        covariance = max(product / places, 0.0)
        explained = covariance * covariance / spread if spread > _LEAST else 0.0
        e[t] = weights[t] * (1 - explained / variance)
    result = 0.0
    for t in range(steps):
        result += e[t]
    return result


@numba.njit(nogil=True, cache=True)
def descend(x: Any, a: Any, theta: Any, b: Any, weights: Any, sizes: Any, first: int, last: int) -> None:
    """Channels ``first`` to ``last``: x ``[C, T, P]``, a ``[C, P]``, weights ``[T]``; theta ``[C]``, b ``[C, T]`` are
    written."""
    _, steps, places = x.shape
    kind = theta.dtype
    # Two of each: the steps of the best so far, and those of the move that is tried.
    v, n, e = np.zeros((2, steps + 1, places), kind), np.zeros((2, steps + 1, places), np.int32), np.zeros((2, steps))
    centred, trial, threshold = np.empty(places, kind), np.empty(steps, kind), np.empty(1, kind)
    for c in range(first, last):
        mean = 0.0
        for p in range(places):
            mean += a[c, p]
        mean /= places
        variance = 0.0
        for p in range(places):
            centred[p] = a[c, p] - mean
            variance += centred[p] * centred[p]
        variance /= places
        if variance <= 1e-30:
            continue
        best, other = 0, 1
        least = _from(x[c], centred, theta[c], b[c], weights, variance, 0, v[best], n[best], e[best])
        for size in sizes:
            for move in range(4 * steps - 2 + 6):
                start, stretch = 0, 1.0
                trial[:] = b[c]
                if move < 4 * steps - 2:
                    start, which = move // 4, move % 4
                    h = (size if which % 2 == 0 else -size) * theta[c]
                    trial[start] += h
                    if which >= 2:
                        trial[start + 1] -= h
                elif move < 4 * steps + 2:
                    which = move - (4 * steps - 2)
                    stretch = 1 + 0.6 * size if which < 2 else 1 - 0.6 * size
                    for t in range(steps if which % 2 else 0):
                        trial[t] *= stretch
                else:
                    for t in range(steps):
                        trial[t] += (size / 2 if move == 4 * steps + 2 else -size / 2) * theta[c]
                threshold[0] = theta[c] * stretch
                e[other, :start] = e[best, :start]
                v[other, start], n[other, start] = v[best, start], n[best, start]
                found = _from(
                    x[c], centred, threshold[0], trial, weights, variance, start, v[other], n[other], e[other]
                )
                if found < least:
                    least = found
                    theta[c] = threshold[0]
                    b[c] = trial
                    v[other, :start], n[other, :start] = v[best, :start], n[best, :start]
                    best, other = other, best
