"""Files that a command writes never take the place of files that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from ftbc.atomic import require_writable


def require_outputs(context: typer.Context, *names: str, beside: Path | None = None) -> None:
    """Raise before the work what writing these options' files would raise after it, or would destroy.

    names: of the options that name files to write; any other may name files to read. beside: a further file to write.
    """
    given = context.params
    read = [place for name, value in given.items() if name not in names for place in _places(value)]
    require_writable(*(given[name] for name in names), beside, beside=read)


def _places(value: Any) -> Iterator[str]:
    """The files that an option may name: one, several with commas, ``file.py:name``, ``name=file``."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from _places(one)
    elif isinstance(value, str | Path):
        whole = str(value)
        for part in (whole, *whole.split(",")):
            yield from (part, part.rpartition("=")[2])
            if ".py:" in part:
                yield part.rpartition(":")[0]
