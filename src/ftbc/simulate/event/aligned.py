"""Arrays that begin at a cache line: a vector that lies across two lines costs two loads."""

from __future__ import annotations

import math

import numpy as np

_LINE = 64


def aligned(values: np.ndarray, element: str) -> np.ndarray:
    """A copy of values as numbers of the kind ``element``."""
    copy = room(values.shape, element)
    copy[...] = values
    return copy


def room(shape: tuple[int, ...], element: str) -> np.ndarray:
    """Room for numbers of the kind ``element``, not filled."""
    size = math.prod(shape) * np.dtype(element).itemsize
    raw = np.empty(size + _LINE, np.uint8)
    begin = -raw.ctypes.data % _LINE
    return raw[begin : begin + size].view(element).reshape(shape)
