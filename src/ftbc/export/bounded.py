"""A bound on memory for libraries that believe what a file says: a few damaged bytes make HDF5 ask for gigabytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SIZE = Path("/proc/self/statm")


@contextmanager
def at_most(bytes_more: int) -> Iterator[None]:
    """Inside the block this process cannot grow by more; what asks for it gets an error. Only on Linux.

    The bound is that of the process, so that other threads are under it, too: use it for a short while.
    """
    if not _SIZE.exists():
        yield
        return
    import resource

    before, hard = resource.getrlimit(resource.RLIMIT_AS)
    now = int(_SIZE.read_text().split()[0]) * resource.getpagesize()
    bound = min(limit for limit in (now + bytes_more, before, hard) if limit != resource.RLIM_INFINITY)
    resource.setrlimit(resource.RLIMIT_AS, (bound, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, hard))
