"""How much memory a layer's values may take while the processor's own cache still holds them."""

from __future__ import annotations

import os
from functools import cache

_USUAL = 2 << 20


@cache
def budget() -> int:
    """Bytes of the largest value over the images and steps taken at once: twice the second cache of a core.

    Twice, because a value is written once and read once: what was written last is still there when its reader begins.
    """
    try:
        size = os.sysconf("SC_LEVEL2_CACHE_SIZE")
    except (AttributeError, ValueError, OSError):  # not Linux
        size = 0
    return 2 * min(max(size, 1 << 19), 4 << 20) if size > 0 else 2 * _USUAL
