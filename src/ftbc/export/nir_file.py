"""NIR files: written and read by the package `nir`, with what NIR has no place for as JSON in the metadata."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftbc.errors import FileError, first_line
from ftbc.export.bounded import at_most
from ftbc.export.header import header_of, package

VERSION = 1
_KEY = "ftbc"
_QUICKLY = 1
"""The level of gzip: higher ones take many times longer for files that are hardly smaller."""

_ROOM, _UNPACKED = 256 << 20, 32
"""Bytes that reading may take, and how many times the file's size besides: weights are packed to about a half."""


def require_nir() -> Any:
    """The package `nir`, or an error that says how to get it."""
    return package("nir", "NIR", "nir")


def to_bytes(nodes: dict[str, Any], edges: list[tuple[str, str]], header: dict[str, Any], old: bool) -> bytes:
    """The whole file. old: as nir 1.0.4 reads it, which knows no reset potentials."""
    nir = require_nir()
    graph = nir.NIRGraph(nodes, edges, metadata={_KEY: json.dumps({"version": VERSION, **header})})
    target = io.BytesIO()
    nir.write(target, _Old(graph) if old else graph, compression_opts=_QUICKLY)
    return target.getvalue()


@dataclass(frozen=True)
class _Old:
    """A graph whose neurons have no reset potentials."""

    graph: Any

    def to_dict(self) -> dict[str, Any]:
        found = self.graph.to_dict()
        for node in found["nodes"].values():
            node.pop("v_reset", None)
        return found


def from_bytes(content: bytes, path: Path) -> tuple[Any, dict[str, Any]]:
    """The NIR graph of a file and our header; anything but a file of ours is refused."""
    nir = require_nir()
    try:
        with at_most(_ROOM + _UNPACKED * len(content)):
            graph = nir.read(io.BytesIO(content), type_check=False)
        text = graph.metadata.get(_KEY)
    except Exception as error:  # h5py and nir raise nearly anything for files that are cut or of something else
        raise FileError(f"'{path}' is not a complete NIR file ({first_line(error)}): write it again") from error
    if text is None:
        raise FileError(f"'{path}' is a NIR file of another program: give one that ftbc export nir wrote")
    return graph, header_of(text, path, VERSION)
