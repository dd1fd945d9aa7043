"""In: a command line. Out: text for people, files where they were asked for, and an exit status.

Commands only read options, call the library and show the result; no method is written here.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ftbc.errors import MissingExtraError


def main() -> None:
    """Run the command line: errors meant for a user are one line and exit status 2."""
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:  # closed by the shell: what is said goes nowhere
            setattr(sys, stream, Path(os.devnull).open("w"))  # noqa: SIM115
    try:
        from ftbc.cli.app import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "click"):
            raise
        sys.stderr.write(f"ftbc: {MissingExtraError(error.name, 'the command line', 'cli')}\n")
        sys.exit(2)
    sys.exit(run(sys.argv[1:]))
