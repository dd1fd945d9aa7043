"""Sharing out images to threads. Compiled loops let go of the interpreter's lock, so that plain threads do.

Not by numba's own threads: they and torch's are one OpenMP pool, and each call would change the number of threads
that the other works with.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch


def over_images(work: Callable[[int, int], object], images: int, worth: int) -> None:
    """Call ``work(first, last)`` so that all images are covered, in as many threads as torch uses.

    worth: how many threads the work is worth; with one it is done here.
    """
    threads = min(torch.get_num_threads(), images, worth)
    if threads <= 1:
        work(0, images)
        return
    bounds = [images * k // threads for k in range(threads + 1)]
    list(_pool(threads).map(work, bounds[:-1], bounds[1:]))


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="ftbc")
