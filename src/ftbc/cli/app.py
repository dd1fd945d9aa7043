"""The commands, and what happens when one fails."""

from __future__ import annotations

import logging
import sys

import typer

from ftbc.cli.check import check
from ftbc.cli.convert import convert
from ftbc.cli.data import data
from ftbc.cli.demo import demo
from ftbc.cli.evaluate import evaluate
from ftbc.cli.methods import methods
from ftbc.cli.train import train
from ftbc.errors import FtbcError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Turn trained PyTorch networks into spiking ones that are right from their first time steps.",
    epilog="Every command takes --debug, which shows the whole traceback of an error.",
)
for command in (demo, check, convert, evaluate, train, methods):
    app.command()(command)
app.add_typer(data, name="data")


def run(arguments: list[str]) -> int:
    """Run one command and give its exit status: 0 done, 2 an error of the user's, else interrupted or a defect."""
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    try:
        app(arguments, prog_name="ftbc")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except FtbcError as error:
        if debug:
            raise
        sys.stderr.write(f"ftbc: {error}\n")
        return 2
    return 0
