"""How much memory a layer's values may take at once, so that they are near the processor when they are read, and how
what one layer frees is kept for the next.
"""

from __future__ import annotations

import os
from functools import cache

import torch

_USUAL = 2 << 20
_MOST = 16 << 20
"""Larger tensors are taken from the system anew each time, and it must clear their pages: a quarter of the speed."""

_FEWEST = 16
"""Images times steps below which the small layers of a network are slower by more than its large ones gain."""

_LARGEST_LESSON = (32 << 20) - (64 << 10)


def budget(largest: int, weights: int = 0) -> int:
    """Bytes that the largest value of a network may take over the images and steps that are taken at once.

    Four times the second cache of a core: most values of a network are smaller than its largest. But enough for 16
    images or steps, and with more weights than that as many bytes as there are weights, since each portion reads all
    of them again. largest: bytes of that value for one image and step; weights: bytes of all of them.

    >>> budget(largest=1, weights=1 << 30) == 16 << 20
    True
    """
    return min(max(4 * second_cache(), _FEWEST * largest, weights), _MOST)


@cache
def keep_what_is_freed() -> None:
    """Have the C library keep the memory of freed tensors for the next ones, from now on.

    glibc gives memory back to the system as soon as a few large tensors are free, and the system clears every page of
    the next tensor. How much it keeps it learns from the largest block that was freed, so it is given one of just under
    32 MB, the most that it learns from; as nobody writes to it, it takes no memory. Other C libraries make nothing of
    it.
    """
    torch.empty(_LARGEST_LESSON, dtype=torch.uint8)


@cache
def second_cache() -> int:
    """Bytes of a core's second cache, as far as the system says."""
    try:
        size = os.sysconf("SC_LEVEL2_CACHE_SIZE")
    except (AttributeError, ValueError, OSError):  # not Linux
        size = 0
    return min(max(size, 1 << 19), 4 << 20) if size > 0 else _USUAL
