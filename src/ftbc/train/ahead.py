"""Make the next item of an iterator while the present one is used."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items in the same order, each begun by a thread when the one before is taken; errors are raised here."""
    nothing = object()
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, nothing)
        while (item := coming.result()) is not nothing:
            coming = thread.submit(next, items, nothing)
            yield item  # type: ignore[misc]
