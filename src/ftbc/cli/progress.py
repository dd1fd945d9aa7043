"""A progress bar on a terminal, and silence in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ftbc.calibrate.base import Progress as Report


@contextmanager
def progress_bar(shown: bool = True) -> Iterator[Report]:
    """Gives a callable for the library's ``progress=``; one bar for each kind of work.

    Print when no bar is there, after the block or between two kinds of work: it would run into the text.
    """
    columns = (TextColumn("{task.description:>14}"), BarColumn(), TextColumn("{task.completed:.0f}/{task.total:.0f}"))
    bars = Progress(
        *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True,
        disable=not shown or not sys.stderr.isatty(), redirect_stdout=False,
    )  # fmt: skip
    tasks: dict[str, int] = {}

    def report(what: str, done: int, total: int) -> None:
        if what not in tasks:
            tasks[what] = bars.add_task(what, total=total)
        bars.update(tasks[what], completed=done, total=total)  # type: ignore[arg-type]
        if done >= total:
            bars.remove_task(tasks.pop(what))  # type: ignore[arg-type]

    with bars:
        yield report
