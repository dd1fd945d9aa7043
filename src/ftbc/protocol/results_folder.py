"""A folder that keeps measurements, so that a run that was killed goes on and a second one is over at once.

Each measurement is a file of its own, a JSON text:

    key        everything that decides the figures; its fingerprint is in the name of the file
    result     the figures
    made       by which command, code, machine, and when
    checksum   of all of the above

A file appears whole or not at all. Two runs in one folder share the work: each claims what it measures, and a claim
ends with its process, however that ends.
"""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ftbc.atomic import make_folder, replacing
from ftbc.errors import FileError, first_line
from ftbc.protocol.fingerprint import of_settings

try:
    import fcntl
except ImportError:  # not on Windows: there two runs may measure the same twice, which does no harm
    fcntl = None

log = logging.getLogger(__name__)
_LOCK = ".lock"
_DIGITS = 15  # of a fingerprint, which make a place in a file: less than 2^63


class ResultsFolder:
    """Measurements by their keys; without a path nothing is kept. used: the files that were read or written."""

    def __init__(self, path: str | Path | None) -> None:
        self.path = None if path is None else Path(path)
        self.used: set[Path] = set()
        self._named: set[Path] = set()
        self._lock: BinaryIO | None = None
        if self.path is not None and self.path.exists() and not self.path.is_dir():
            raise FileError(f"'{self.path}' is not a folder: name another for the results")

    def place(self, key: dict[str, Any]) -> Path:
        """The file of a measurement."""
        assert self.path is not None
        return self.path / f"{key['what']}-{of_settings(key)[:16]}.json"

    def read(self, key: dict[str, Any]) -> dict[str, Any] | None:
        """``{"result": ..., "made": ...}`` of a measurement; None if it is not there, or damaged, which is logged."""
        if self.path is None:
            return None
        path = self.place(key)
        try:
            content = json.loads(path.read_bytes())
            checksum = content.pop("checksum")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise FileError(f"'{path}' cannot be read ({error.strerror}): check its permissions") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            return self.refuse(key, first_line(error))
        try:
            sound = checksum == of_settings(content) and of_settings(content["key"]) == of_settings(key)
        except (ValueError, KeyError, TypeError, RecursionError):
            sound = False
        if not sound or not isinstance(content.get("result"), dict) or not isinstance(content.get("made"), dict):
            return self.refuse(key, "its content does not fit its checksum or its name")
        self.used.add(path)
        return {"result": content["result"], "made": content["made"]}

    def refuse(self, key: dict[str, Any], why: str) -> None:
        """Say that a file is damaged; it will be replaced."""
        path = self.place(key)
        if path not in self._named:
            log.warning("'%s' is damaged (%s): it is measured again", path, why)
        self._named.add(path)

    def write(self, key: dict[str, Any], result: dict[str, Any], made: dict[str, Any]) -> None:
        """Keep a measurement."""
        if self.path is None:
            return
        content = {"key": key, "result": result, "made": made}
        text = json.dumps({**content, "checksum": of_settings(content)}, indent=1, allow_nan=False)
        path = self.place(key)
        with replacing(path) as file:
            file.write((text + "\n").encode())
        self.used.add(path)

    def prepare(self) -> None:
        """Make the folder, and refuse one that cannot be written to before any work is done."""
        if self.path is None:
            return
        make_folder(self.path)
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise FileError(f"cannot write into '{self.path}': permission denied; choose another folder")

    @contextmanager
    def claim(self, key: dict[str, Any]) -> Iterator[bool]:
        """Whether this process may measure it now: false if another one does. The claim ends with the block."""
        if self.path is None or fcntl is None:
            yield True
            return
        place = int(of_settings(key)[:_DIGITS], 16)
        ours = self._lock_byte(place)
        try:
            yield ours
        finally:
            if ours and self._lock is not None:
                with suppress(OSError):  # a file system without locks
                    fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, place)

    def close(self) -> None:
        """Let go of all claims."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _lock_byte(self, place: int) -> bool:
        """Lock one byte of one file for each measurement: no files are left over, and locks end with their process."""
        assert self.path is not None and fcntl is not None
        try:
            self._lock = self._lock or (self.path / _LOCK).open("ab")
        except OSError as error:
            raise FileError(f"cannot write into '{self.path}' ({error.strerror}): choose another folder") from error
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError as error:
            # Held by another process; or a file system without locks, where two runs may measure the same twice.
            return error.errno not in (errno.EACCES, errno.EAGAIN)
        return True
