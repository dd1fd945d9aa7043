"""In: a command line. Out: text for people, files where they were asked for, and an exit status.

Commands only read options, call the library and show the result; no method is written here.
"""

from __future__ import annotations

import sys

from ftbc.errors import MissingExtraError


def main() -> None:
    """Run the command line: errors meant for a user are one line and exit status 2."""
    try:
        from ftbc.cli.app import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "click"):
            raise
        sys.stderr.write(f"ftbc: {MissingExtraError(error.name, 'the command line', 'cli')}\n")
        sys.exit(2)
    sys.exit(run(sys.argv[1:]))
