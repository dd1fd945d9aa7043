"""In: a command line. Out: text for people, files where they were asked for, and an exit status.

Commands only read options, call the library and show the result; no method is written here.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line: errors meant for a user are one line and exit status 2."""
    try:
        from ftbc.cli.app import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "click"):
            raise
        sys.exit(f"the command line needs the package '{error.name}': install it with pip install 'ftbc[cli]'")
    sys.exit(run(sys.argv[1:]))
