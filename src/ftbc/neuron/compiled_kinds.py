"""The loops of `one_pass`: a step of neurons of each kind. Importing this module needs numba.

Each does to every neuron what `_fire` of its kind does to all of them in several passes: the equations stand there. The
sums are formed in the same order, so that both are equal to the last bit.

x: currents ``[N, P]``; b, theta: ``[P]``, an entry for each neuron; v and what else is remembered: ``[N, P]``, written,
too; out: what is sent, ``[N, P]``. All are of one type; numbers of a kind are brought to it, or the loop would be one
of float64.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

_AT_ONCE = 1024
"""Neurons whose intermediate numbers stay in the nearest cache."""

# As numpy divides: that a threshold might be zero must not be asked of each neuron. Loops would not become vector code.
_loop = numba.njit(nogil=True, cache=True, error_model="numpy")


@_loop
def plain(x: Any, b: Any, theta: Any, v: Any, out: Any, first: int, last: int) -> None:
    """`integrate_fire.py`, with constants for each neuron."""
    nothing = theta.dtype.type(0)
    for n in range(first, last):
        current, membrane, sent = x[n], v[n], out[n]
        for p in range(len(theta)):
            u = membrane[p] + current[p]
            u = u + b[p]
            s = theta[p] if u >= theta[p] else nothing
            sent[p] = s
            membrane[p] = u - s


@_loop
def signed(
    x: Any, b: Any, theta: Any, v: Any, m: Any, out: Any, lower: float, clamp: bool, first: int, last: int
) -> None:
    """`signed.py`."""
    number = theta.dtype.type
    nothing, one, below = number(0), number(1), number(-lower)
    for n in range(first, last):
        current, membrane, count, sent = x[n], v[n], m[n], out[n]
        for p in range(len(theta)):
            u = membrane[p] + current[p]
            u = u + b[p]
            taken_back = one if (u <= below * theta[p]) & (count[p] > nothing) else nothing
            sign = (one if u >= theta[p] else nothing) - taken_back
            s = sign * theta[p]
            left, kept = u - s, count[p] + sign
            sent[p], count[p] = s, kept
            membrane[p] = nothing if clamp & (kept <= nothing) & (left < nothing) else left


@_loop
def burst(x: Any, b: Any, theta: Any, v: Any, out: Any, most: int, first: int, last: int) -> None:
    """`burst.py`."""
    number = theta.dtype.type
    nothing, bound = number(0), number(most)
    for n in range(first, last):
        current, membrane, sent = x[n], v[n], out[n]
        for p in range(len(theta)):
            u = membrane[p] + current[p]
            u = u + b[p]
            times = u / theta[p]
            times = times if times > nothing else nothing
            times = bound if times > bound else times
            s = np.floor(times) * theta[p]
            sent[p] = s
            membrane[p] = u - s


@_loop
def differential(
    x: Any, b: Any, theta: Any, v: Any, total: Any, out: Any, levels: int, slack: float, t: int, first: int, last: int
) -> None:
    """`differential.py`; t: how many steps came before."""
    number = theta.dtype.type
    nothing, unbounded = number(0), number(np.inf)
    before, middle, rounding = number(max(t, 1)), number(0.75), number(slack)
    size, largest = np.empty(_AT_ONCE, theta.dtype), np.empty(_AT_ONCE, theta.dtype)
    for n in range(first, last):
        for begin in range(0, len(theta), _AT_ONCE):
            end = min(begin + _AT_ONCE, len(theta))
            current, membrane, told, sent = x[n, begin:end], v[n, begin:end], total[n, begin:end], out[n, begin:end]
            bias, threshold = b[begin:end], theta[begin:end]
            for p in range(end - begin):
                mean = told[p] / before
                u = membrane[p] + current[p]
                u = u + bias[p]
                u = u - mean
                wanted = abs(u) / middle
                most = unbounded if u > nothing else (told[p] + mean) / rounding
                largest[p] = wanted if wanted < most else most
                membrane[p], sent[p], size[p] = u, mean, nothing
            for k in range(levels - 1, -1, -1):
                part = number(0.5**k)  # a power of two: as exact as a division
                for p in range(end - begin):
                    level = threshold[p] * part
                    size[p] = level if largest[p] >= level else size[p]
            for p in range(end - begin):
                change = size[p] if membrane[p] > nothing else -size[p]
                value = sent[p] + change
                membrane[p], sent[p], told[p] = membrane[p] - change, value, told[p] + value
