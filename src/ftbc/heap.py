"""Memory that one layer frees is kept for the next, or given back: how glibc is told to.

Left alone, glibc hands tensors of some megabytes back to the system as soon as they are freed, and the system clears
every page of the next tensor: time that no profile of a layer shows. And it gives each thread a heap of its own, of
64 MB at most, which the values of two large layers fill.

Where a little of what a layer computes stays for long, it is the other way round: the free memory between what stays
has no piece that is large enough for the next layer, and the heap grows by gigabytes that nobody uses.
"""

from __future__ import annotations

import ctypes
from functools import cache

LARGEST_KEPT = 32 << 20
"""Bytes of the largest tensor that glibc may be told to keep; larger ones come from the system anew each time."""

_KEPT = 1 << 29
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # as <malloc.h> numbers them


@cache
def keep_what_is_freed() -> None:
    """Have the C library keep freed memory, up to 512 MB, in one heap for all threads that begin from now on.

    Where the C library is another one, nothing happens.
    """
    for setting, value in ((_MMAP_THRESHOLD, LARGEST_KEPT), (_TRIM_THRESHOLD, _KEPT), (_ARENA_MAX, 1)):
        _tell("mallopt", setting, value)


def give_back() -> None:
    """Hand all free memory of the C library back to the system, also that between pieces which are in use.

    Where the C library is another one, nothing happens.
    """
    _tell("malloc_trim", 0)


def _tell(function: str, *numbers: int) -> None:
    """Call a function of the C library, if it has one of that name."""
    try:
        found = getattr(ctypes.CDLL(None), function)
    except (AttributeError, OSError, TypeError):
        return
    found(*numbers)
