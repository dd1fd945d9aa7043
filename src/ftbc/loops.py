"""Modules of loops that numba compiles (the extra ``fast``); all that they do has a plain form, too."""

from __future__ import annotations

import functools
import importlib
from typing import Any


@functools.cache
def compiled_loops(module: str) -> Any:
    """The module of that name; None where it cannot be had."""
    try:
        return importlib.import_module(module)
    except (ImportError, RuntimeError):  # numba is not installed, or has no folder in which to keep what it compiles
        return None
