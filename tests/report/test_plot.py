"""Plots are written whole, in the format of their suffix."""

from __future__ import annotations

from pathlib import Path

import pytest

from ftbc.errors import FileError
from ftbc.report.plot import accuracy_curves, training_curves
from ftbc.train import Epoch

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


def test_training_curves(tmp_path: Path) -> None:
    epochs = [Epoch(1, 2.3, 10.0, 0.1, 100.0), Epoch(2, 1.1, 60.0, 0.05, 100.0)]
    training_curves(tmp_path / "curve.png", epochs, "title")
    training_curves(tmp_path / "one.svg", epochs[:1], "title")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "one.svg").read_bytes().startswith(b"<?xml")
