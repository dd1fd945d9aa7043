"""A table of a TOML file, read key by key: what is of the wrong kind, missing or unknown is said by name."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ftbc.errors import FileError

_REQUIRED = object()
_WORDS = {
    str: "text",
    int: "a whole number, at least 1",
    float: "a number",
    list: "a list",
    dict: "a table",
}


class TomlTable:
    """Keys and values, and the place they stand in; `close` refuses what nobody asked for.

    >>> table = TomlTable({"steps": [1, 2]}, "mine.toml")
    >>> table.numbers("steps"), table.get("seeds", int, 3)
    ([1, 2], 3)
    """

    def __init__(self, content: dict[str, Any], place: str) -> None:
        self.content = dict(content)
        self.place = place

    def get(self, key: str, kind: type, default: Any = _REQUIRED) -> Any:
        """The value of a key, which must be of a kind: str, int (from 1), float, list or dict."""
        if key not in self.content:
            if default is _REQUIRED:
                raise FileError(f"{self.place} lacks '{key}': give {_WORDS[kind]}")
            return default
        value = self.content.pop(key)
        if not _fits(value, kind):
            raise FileError(f"{self.place}: {key} = {value!r:.60} must be {_WORDS[kind]}")
        return float(value) if kind is float else value

    def numbers(self, key: str, default: Any = _REQUIRED) -> Any:
        """A list of whole numbers from 1, at least one."""
        values = self.get(key, list, default)
        if values is not default and not (values and all(_fits(value, int) for value in values)):
            raise FileError(f"{self.place}: {key} = {values!r:.60} must be whole numbers, at least 1")
        return values

    def texts(self, key: str) -> list[str]:
        """A list of texts; none if the key is not there."""
        values = self.get(key, list, [])
        if not all(isinstance(value, str) for value in values):
            raise FileError(f"{self.place}: {key} = {values!r:.60} must be a list of texts")
        return values

    def tables(self, key: str) -> Iterator[TomlTable]:
        """The tables of ``[[key]]``, none if it is not there, each with its place."""
        for number, value in enumerate(self.get(key, list, []), 1):
            if not isinstance(value, dict):
                raise FileError(f"{self.place}: {key} {number} must be a table")
            yield TomlTable(value, f"{self.place}, {key} {number}")

    def named(self, key: str) -> dict[str, TomlTable]:
        """The tables of ``[key.NAME]`` by name."""
        found = {}
        for name, value in self.get(key, dict, {}).items():
            if not isinstance(value, dict):
                raise FileError(f"{self.place}: {key}.{name} must be a table")
            found[name] = TomlTable(value, f"{self.place}, {key}.{name}")
        return found

    def close(self) -> None:
        """Refuse keys that are left over."""
        if self.content:
            raise FileError(f"{self.place} has '{next(iter(self.content))}', which means nothing there: take it out")


def _fits(value: Any, kind: type) -> bool:
    if kind is int:
        return type(value) is int and value >= 1
    if kind is float:
        return type(value) in (int, float) and math.isfinite(value)
    return isinstance(value, kind)
