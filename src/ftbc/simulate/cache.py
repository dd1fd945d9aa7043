"""How much memory a layer's values may take at once, so that they are near the processor when they are read."""

from __future__ import annotations

import os
from functools import cache

from ftbc.heap import LARGEST_KEPT

_USUAL = 2 << 20
_CACHES = 8
_MOST = LARGEST_KEPT - (2 << 20)
"""Larger tensors are taken from the system anew each time, and it must clear their pages."""

_FEWEST = 32
"""Images times steps below which the small layers of a network are slower by more than its large ones gain."""


def budget(largest: int, weights: int = 0) -> int:
    """Bytes that the largest value of a network may take over the images and steps that are taken at once.

    Eight times the second cache of a core: most values of a network are smaller than its largest, and what small
    layers cost beside their work is shared by more images. But enough for 32 images or steps, and with more weights
    than that as many bytes as there are weights, since each portion reads all of them again. largest: bytes of that
    value for one image and step; weights: bytes of all of them.

    >>> budget(largest=1, weights=1 << 30) == 30 << 20
    True
    """
    return min(max(_CACHES * second_cache(), _FEWEST * largest, weights), _MOST)


@cache
def second_cache() -> int:
    """Bytes of a core's second cache, as far as the system says."""
    try:
        size = os.sysconf("SC_LEVEL2_CACHE_SIZE")
    except (AttributeError, ValueError, OSError):  # not Linux
        size = 0
    return min(max(size, 1 << 19), 4 << 20) if size > 0 else _USUAL
