"""The loop of `fused`, in a module of its own: importing it needs numba, and numba keeps what it compiled beside it."""

from __future__ import annotations

from typing import Any

import numba


# No fastmath: sums must round as torch rounds them. No prange: numba's threads and torch's are one OpenMP pool, and
# each call would change the number of threads that the other works with; `fused` shares out the images instead.
@numba.njit(nogil=True, cache=True)
def integrate_and_fire(x: Any, theta: Any, v: Any, b: Any, spikes: Any, first: int, last: int) -> None:
    """Images ``first`` to ``last`` of a layer; v and spikes are written.

    x: ``[1 or T, N, C, P]``; theta: ``[C]``; v: ``[N, C, P]``; b: ``[T, C]``; spikes: ``[T, N, C, P]``.
    """
    steps, _, channels, positions = spikes.shape
    for n in range(first, last):
        for c in range(channels):
            threshold = theta[c]
            nothing = threshold * 0
            membrane = v[n, c]
            for t in range(steps):
                current, sent, bias = x[min(t, len(x) - 1), n, c], spikes[t, n, c], b[t, c]
                for p in range(positions):
                    u = membrane[p] + current[p]
                    u = u + bias
                    s = threshold if u >= threshold else nothing
                    sent[p] = s
                    membrane[p] = u - s
