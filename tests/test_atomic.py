"""One run at a time at a file, and what full disks and closed folders leave."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ftbc.atomic import alone_at, replacing
from ftbc.errors import FileError
from ftbc.protocol.results_folder import ResultsFolder

from .conftest import Refused, RunPython

CODE = """if True:
    import sys
    from pathlib import Path
    from ftbc.atomic import alone_at
    from ftbc.errors import FileError
    try:
        with alone_at(Path(sys.argv[1])):
            print("alone")
    except FileError as error:
        print(error)
"""


def test_two_runs_at_one_file(tmp_path: Path, run_python: RunPython) -> None:
    path = tmp_path / "net.safetensors"
    with alone_at(path):
        assert "another run is at work on" in run_python(CODE, path).stdout
        assert run_python(CODE, tmp_path / "other.safetensors").stdout == "alone\n"
    assert run_python(CODE, path).stdout == "alone\n" and not list(tmp_path.glob(".*"))


def test_an_error_inside_lets_others_in(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(KeyError), alone_at(tmp_path / "net"):
            raise KeyError
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_the_old_measurement(
    tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, key = ResultsFolder(tmp_path), {"what": "cell"}
    folder.write(key, {"accuracy": 1.0}, {})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("ftbc.atomic.os.fsync", full)
        refused(FileError, ("No space left", "free space"), folder.write, key, {"accuracy": 2.0}, {})
    assert folder.read(key) == {"result": {"accuracy": 1.0}, "made": {}} and len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_closed_folder(tmp_path: Path, refused: Refused) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "kept").write_text("old")
    closed.chmod(0o500)
    try:
        refused(FileError, "ermission", ResultsFolder(closed).prepare)
        with pytest.raises(FileError), replacing(closed / "kept") as file:
            file.write(b"new")
        assert (closed / "kept").read_text() == "old"
    finally:
        closed.chmod(0o700)
