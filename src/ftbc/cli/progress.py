"""A progress bar on a terminal, and silence in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ftbc.progress import Progress as Report

_PERIOD = 600.0
"""Seconds over which speed is averaged for the time that is left: parts of long work may take minutes each."""


@contextmanager
def progress_bar(shown: bool = True, share: str = "") -> Iterator[Report]:
    """Gives a callable for the library's ``progress=``; one bar for each kind of work.

    share: the kind of work, if any, of which the percentage says more than the count.

    Print when no bar is there, after the block or between two kinds of work: it would run into the text.
    """
    columns = (TextColumn("{task.description:>14}"), BarColumn(), TextColumn("{task.fields[count]}"))
    bars = Progress(
        *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True,
        disable=not shown or not sys.stderr.isatty(), redirect_stdout=False, speed_estimate_period=_PERIOD,
    )  # fmt: skip
    tasks: dict[str, int] = {}

    def report(what: str, done: int, total: int) -> None:
        if what not in tasks:
            tasks[what] = bars.add_task(what, total=total, count="")
        count = f"{100 * done / max(total, 1):.1f} %" if what == share else f"{done:.0f}/{total:.0f}"
        bars.update(tasks[what], completed=done, total=total, count=count)  # type: ignore[arg-type]
        if done >= total:
            bars.remove_task(tasks.pop(what))  # type: ignore[arg-type]

    with bars:
        yield report
