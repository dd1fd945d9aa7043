"""Where a figure comes from: the command, the state of the code, the machine, the time."""

from __future__ import annotations

import hashlib
import re
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from ftbc.measure.machine import machine

_PACKAGE = Path(__file__).parents[1]
_WITHOUT_FIGURES = ("cli", "report", "export", "train")
_IN_REPOSITORY = "src/ftbc/"


def origin(command: str | None = None) -> dict[str, Any]:
    """All of it as plain data; command: what the user typed."""
    return {
        "command": None if command is None else without_folders(command),
        "commit": commit(),
        "code": code(),
        "machine": machine(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def without_folders(command: str) -> str:
    """A command whose files lie nowhere in particular: results are handed on, and say nothing of a home directory.

    >>> without_folders("ftbc compare /home/me/net.py:make --data=/mnt/cifar10 --steps 1,2")
    'ftbc compare net.py:make --data=cifar10 --steps 1,2'
    >>> without_folders("ftbc report net.snn --data ../shared/images")
    'ftbc report net.snn --data images'
    """
    return re.sub(r"""(?<![^\s=,'"])(?:~|\.\.?)?/(?:[^\s,'"/]+/)*""", "", command)


@cache
def code() -> str:
    """A short name for the source code that figures depend on: another one means that something in it was changed."""
    total = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        place = path.relative_to(_PACKAGE)
        if place.parts[0] not in _WITHOUT_FIGURES:
            total.update(place.as_posix().encode())
            total.update(path.read_bytes())
    return total.hexdigest()[:12]


@cache
def commit() -> str | None:
    """The commit this package was checked out at, with ``+`` if files have changed since; None if it is installed."""
    lines = _git("rev-parse", "--show-prefix", "HEAD")
    # An installed package may lie in somebody else's repository, inside a virtual environment.
    if len(lines) != 2 or lines[0] != _IN_REPOSITORY:
        return None
    return lines[1][:12] + ("+" if _git("status", "--porcelain", "--", ".") else "")


def _git(*arguments: str) -> list[str]:
    try:
        done = subprocess.run(
            ["git", "-C", str(_PACKAGE), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.splitlines()
