"""What all files of ours have in common: a description as JSON, with a version."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from ftbc.errors import FileError, MissingExtraError, first_line


def header_of(text: str | bytes, path: Path, version: int) -> dict[str, Any]:
    """The description in a file of ours, if it is whole and of a version that this ftbc reads."""
    try:
        header = json.loads(text)
        found = header["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(f"'{path}' is damaged: its description cannot be read ({first_line(error)})") from error
    if found != version:
        raise FileError(
            f"'{path}' has format version {found!r:.20}, this ftbc reads {version}: use the ftbc that wrote it"
        )
    return header


def read_content(path: Path) -> bytes:
    """A file's bytes."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"'{path}' cannot be read ({error.strerror}): give a file that ftbc export wrote") from error


def package(name: str, purpose: str, extra: str) -> Any:
    """A package that only an extra brings, or an error that says how to get it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(name.partition(".")[0], purpose, extra) from error
