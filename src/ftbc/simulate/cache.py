"""How much memory a layer's values may take at once, so that they are near the processor when they are read."""

from __future__ import annotations

import os
from functools import cache

_USUAL = 2 << 20
_MOST = 16 << 20
"""Larger tensors are taken from the system anew each time, and it must clear their pages: a quarter of the speed."""


def budget(weights: int = 0) -> int:
    """Bytes of the largest value over the images and steps taken at once, for a network with so many bytes of weights.

    Four times the second cache of a core: most values of a network are smaller than its largest. With more weights
    than that as many bytes as there are weights, since each portion reads all of them again.

    >>> budget(weights=1 << 30) == 16 << 20
    True
    """
    return min(max(4 * _second_cache(), weights), _MOST)


@cache
def _second_cache() -> int:
    try:
        size = os.sysconf("SC_LEVEL2_CACHE_SIZE")
    except (AttributeError, ValueError, OSError):  # not Linux
        size = 0
    return min(max(size, 1 << 19), 4 << 20) if size > 0 else _USUAL
