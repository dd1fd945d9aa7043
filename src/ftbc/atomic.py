"""Write a file whole or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ftbc.errors import FileError


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file beside ``path`` for writing and move it there when the block ends well.

    On any failure ``path`` is as it was before and nothing else stays.
    """
    # Not tempfile: its files are readable by their owner only, and the mode would survive the move.
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with scratch.open("xb") as file:
            yield file
        scratch.replace(path)
    except OSError as error:
        raise FileError(f"cannot write '{path}' ({error.strerror or error}): check folder and free space") from error
    finally:
        with suppress(OSError):  # it is gone already after a success
            scratch.unlink()
