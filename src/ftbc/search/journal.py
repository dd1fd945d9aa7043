"""Where proposals and their worth are kept: Optuna's journal, a file that workers on several machines can share.

Optuna's own locks are files, which a killed worker leaves behind. Here the lock is the system's, which ends with its
process; and what a worker was writing when it was killed, a last line without its end, is cut off by the next.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from ftbc.errors import FileError, InputError, MissingExtraError, first_line

try:
    import fcntl
except ImportError:  # not on Windows: there Optuna's own locks must do
    fcntl = None

_PART = 1 << 12


def import_optuna() -> Any:
    """Optuna, or what to install."""
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise MissingExtraError("optuna", "the search", "search") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


class Lock:
    """Lets one process at a time write to a journal; Optuna calls `acquire` and `release`."""

    def __init__(self, journal: Path) -> None:
        self.journal = journal
        self._file: BinaryIO | None = None

    def acquire(self) -> bool:
        """Wait until it is this process's turn, and mend what a killed one has left."""
        assert fcntl is not None
        self._file = self.journal.with_name(f".{self.journal.name}.lock").open("ab")
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        mend(self.journal)
        return True

    def release(self) -> None:
        """Let others write."""
        if self._file is not None:
            self._file.close()
            self._file = None


def mend(journal: Path) -> None:
    """Cut off a last line that has no end."""
    if not journal.exists():
        return
    with journal.open("r+b") as file:
        end = size = file.seek(0, os.SEEK_END)
        while end:
            begin = max(0, end - _PART)
            file.seek(begin)
            place = file.read(end - begin).rfind(b"\n")
            if place >= 0:
                end = begin + place + 1
                break
            end = begin
        if end != size:
            file.truncate(end)


@contextmanager
def writing(journal: Path) -> Iterator[None]:
    """What goes wrong with the file, in one line; what was in it before is still there."""
    try:
        yield
    except OSError as error:
        raise FileError(
            f"cannot keep the search in '{journal}' ({error.strerror or error}): check folder and free space"
        ) from error
    except json.JSONDecodeError as error:
        raise FileError(f"'{journal}' is damaged ({first_line(error)}): move it away; measurements are kept") from error


def open_storage(storage: str | None, journal: Path) -> Any:
    """The storage at an address of Optuna's (``sqlite:///search.db``), or a journal file."""
    optuna = import_optuna()
    try:
        if storage is not None:
            return optuna.storages.get_storage(storage)
        lock = Lock(journal) if fcntl is not None else None
        from optuna.storages.journal import JournalFileBackend, JournalStorage

        return JournalStorage(JournalFileBackend(str(journal), lock_obj=lock))
    except OSError as error:
        raise FileError(f"cannot keep the search in '{journal}' ({error.strerror}): choose another folder") from error
    except Exception as error:  # of Optuna, of its database or of a driver that is missing
        if storage is None:
            raise FileError(
                f"'{journal}' is damaged ({first_line(error)}): move it away to begin anew; measurements are kept"
            ) from error
        raise InputError(
            f"--storage {storage}: {first_line(error)}; give an address such as sqlite:///search.db"
        ) from error
