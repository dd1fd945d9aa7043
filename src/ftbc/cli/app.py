"""The commands, and what happens when one fails."""

from __future__ import annotations

import errno
import logging
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from ftbc.cli.bench import bench
from ftbc.cli.check import check
from ftbc.cli.compare import compare
from ftbc.cli.convert import convert
from ftbc.cli.data import data
from ftbc.cli.demo import demo
from ftbc.cli.evaluate import evaluate
from ftbc.cli.export import export
from ftbc.cli.methods import methods
from ftbc.cli.report import report
from ftbc.cli.reproduce import reproduce
from ftbc.cli.search import search
from ftbc.cli.train import train
from ftbc.errors import FtbcError, InputError
from ftbc.processes import leads, started

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Turn trained PyTorch networks into spiking ones that are accurate in few time steps.",
    epilog="Every command takes --debug, which shows the whole traceback of an error.",
)
for command in (demo, check, convert, evaluate, compare, reproduce, report, bench, search, train, methods):
    app.command()(command)
app.add_typer(data, name="data")
app.add_typer(export, name="export")

TOGETHER = ("train", "convert", "evaluate", "compare", "reproduce")
"""Commands that several processes can do together; any other would be done by each of them."""
INTERRUPTED, ENDED = 130, 143
"""Exit statuses after Ctrl-C, and after a polite kill, by which torchrun ends processes whose neighbour has died."""
_WrongUsage = typer.BadParameter.__base__
"""What the parser raises for unknown commands and options; typer has no name of its own for it."""


def run(arguments: list[str]) -> int:
    """Run one command and give its exit status: 0 done, 2 an error of the user's, else interrupted or a defect."""
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"] or ["--help"]
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    with _interrupts() as seen:
        try:
            if started() > 1 and arguments[0] not in TOGETHER:
                raise InputError(f"ftbc {arguments[0]} is for one process: start it without torchrun")
            status = app(arguments, prog_name="ftbc", standalone_mode=False)
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        except (KeyboardInterrupt, typer.Abort):
            status = INTERRUPTED
        except Exception as error:
            if not seen:
                return _failed(error, debug)
            status = INTERRUPTED  # torch swallows interrupts while it imports parts of itself, and stumbles afterwards
    if status == INTERRUPTED:
        ended = signal.SIGTERM in seen
        status = ENDED if ended else INTERRUPTED
        if leads():
            sys.stderr.write(f"ftbc: {'ended from outside' if ended else 'interrupted'}\n")
    return status if isinstance(status, int) else 0


def _failed(error: Exception, debug: bool) -> int:
    if isinstance(error, _WrongUsage):
        place = error.ctx.command_path if error.ctx is not None else "ftbc"  # type: ignore[attr-defined]
        message = f"{' '.join(error.format_message().split()).rstrip('.')}; see {place} --help"  # type: ignore[attr-defined]
    elif isinstance(error, FtbcError):
        message = str(error)
    elif isinstance(error, OSError) and error.filename is None and error.errno in (errno.ENOSPC, errno.EIO):
        message = f"cannot write the output ({error.strerror}): free some space, or send it elsewhere"
    elif isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        message = f"no file can have the name '{str(error.filename)[:60]}...': it is too long; give another"
    else:
        raise error
    if debug:
        traceback.print_exception(error)
    who = "ftbc" if leads() else "ftbc, in another process than the first"
    sys.stderr.write(f"{who}: {message}\n")
    return 2


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Interrupt as always on Ctrl-C, and on a polite kill, and remember which it was."""
    seen: list[int] = []

    def interrupt(number: int, _: Any) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
