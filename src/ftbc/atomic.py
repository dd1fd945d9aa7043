"""Write a file whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ftbc.errors import FileError

try:
    import fcntl
except ImportError:  # not on Windows, where nobody keeps two runs apart
    fcntl = None


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file beside ``path`` for writing and move it there when the block ends well.

    On any failure ``path`` is as it was before and nothing else stays.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe or a device such as /dev/stdout: nothing to replace
            with path.open("wb") as file:
                yield file
            return
        target = Path(os.path.realpath(path))  # a link stays a link
        # Not tempfile: its files are readable by their owner only, and the mode would survive the move.
        scratch = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.partial")
        try:
            with scratch.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())  # else a power cut after the move can leave an empty file
            scratch.replace(target)
        finally:
            with suppress(OSError):  # it is gone already after a success
                scratch.unlink()
    except OSError as error:
        raise FileError(f"cannot write '{path}' ({error.strerror or error}): check folder and free space") from error


@contextmanager
def alone_at(path: Path) -> Iterator[None]:
    """Let no other process write ``path`` inside the block; refuse if one does. It ends with its process, too."""
    if fcntl is None:
        yield
        return
    try:
        lock = path.with_name(f".{path.name}.lock").open("ab")
    except OSError as error:
        raise FileError(f"cannot write beside '{path}' ({error.strerror}): choose another place") from error
    with lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):  # else a file system without locks
                raise FileError(f"another run is at work on '{path}': wait for it, or choose another name") from error
        try:
            yield
        finally:
            with suppress(OSError):
                Path(lock.name).unlink()


def make_folder(path: Path) -> None:
    """Make a folder and those around it, if it is not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder '{path}' ({error.strerror}): choose another place") from error


def require_ending(path: Path, ending: str) -> None:
    """Programs that read a file, `ftbc export verify` among them, tell its format by its name."""
    if path.suffix != ending:
        raise FileError(f"cannot write '{path}': give it a name that ends in {ending}")


def is_file(path: str | Path) -> bool:
    """Whether there is such a file; there is none whose name cannot be one, as if it is too long."""
    try:
        return Path(path).is_file()
    except OSError:
        return False


def require_writable(*paths: Path | None, beside: Iterable[Path | str | None] = ()) -> None:
    """Raise before the work what writing these files would raise after it, or would destroy; None stands for no file.

    beside: what is read, and must not be written over where it is a file.
    """
    taken = {os.path.realpath(path) for path in beside if path is not None and is_file(path)}
    for path in paths:
        if path is None:
            continue
        try:
            _require_writable(path, taken)
        except OSError as error:
            raise FileError(f"cannot write '{path}' ({error.strerror}): choose another name") from error
        taken.add(os.path.realpath(path))


def _require_writable(path: Path, taken: set[str]) -> None:
    if os.path.realpath(path) in taken and (not path.exists() or path.is_file()):  # two may share a pipe or /dev/null
        raise FileError(f"cannot write '{path}': another file of this command has that name; choose another")
    if path.is_dir():
        raise FileError(f"cannot write '{path}': it is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise FileError(f"cannot write '{path}': the folder '{path.parent}' does not exist; make it first")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise FileError(f"cannot write '{path}': permission denied; choose another place")
