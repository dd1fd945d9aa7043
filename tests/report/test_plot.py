"""Plots are written whole, in the format of their suffix."""

from __future__ import annotations

from pathlib import Path

import pytest

from ftbc.errors import FileError
from ftbc.report.plot import accuracy_curves

CURVES = {"with": [50.0, 70.0], "without": [20.0, 60.0]}


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_format_by_suffix(tmp_path: Path, suffix: str, start: bytes) -> None:
    path = tmp_path / f"curve.{suffix}"
    accuracy_curves(path, [1, 2], CURVES, 91.0, "title")
    assert path.read_bytes().startswith(start)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot write"):
        accuracy_curves(tmp_path / "missing" / "curve.png", [1, 2], CURVES, 91.0, "title")
    assert not list(tmp_path.iterdir())
