"""Sharing out images to threads. Compiled loops and torch let go of the interpreter's lock, so that plain threads do.

Not by numba's own threads: they and torch's are one OpenMP pool, and each call would change the number of threads
that the other works with.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, local
from typing import TypeVar

import torch

from ftbc.heap import keep_what_is_freed

Result = TypeVar("Result")

_this_thread = local()


def over_images(work: Callable[[int, int], Result], images: int, worth: int) -> list[Result]:
    """Call ``work(first, last)`` so that all images are covered, in as many threads as torch uses; results in order.

    worth: how many threads the work is worth; with one it is done here. What torch does in one of several threads it
    does in that thread alone, and without gradients.
    """
    threads = min(torch.get_num_threads(), images, worth)
    if threads <= 1 or getattr(_this_thread, "is_one_of_several", False):
        return [work(0, images)]
    bounds = [images * k // threads for k in range(threads + 1)]
    return list(_pool(threads).map(torch.no_grad()(work), bounds[:-1], bounds[1:]))


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    keep_what_is_freed()  # before its threads take heaps of their own
    usual = torch.get_num_threads()
    all_here = Barrier(threads)

    def alone() -> None:
        _this_thread.is_one_of_several = True
        torch.set_num_threads(1)
        torch.get_num_threads()  # asked once, a thread keeps its number whatever others set
        all_here.wait()

    pool = ThreadPoolExecutor(threads, thread_name_prefix="ftbc", initializer=alone)
    list(pool.map(lambda _: None, range(threads)))
    torch.set_num_threads(usual)  # of this thread, and of those that begin from now on
    return pool
