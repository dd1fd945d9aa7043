"""The page of the networks says what the package holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("benchmarks", reason="not part of a source distribution")

from benchmarks import trained
from benchmarks.page import filled
from ftbc import zoo

ROOT = Path(__file__).parents[2]


def test_the_page_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = trained.PAGE.read_text()
    assert filled(page, trained.BLOCKS) == page, "run python -m benchmarks.trained"


def test_logs_of_training_are_of_the_networks_that_ship() -> None:
    entries = zoo.entries()
    logs = [path for path in (ROOT / trained.FOLDER).glob("*.json") if path.stem in entries]
    assert logs
    for path in logs:
        content = json.loads(path.read_text())
        assert content["network"] == entries[path.stem].network
        assert content["accuracy"] == entries[path.stem].accuracy and content["images"] == 10_000


def test_rows_of_converted_networks(tmp_path: Path) -> None:
    assert "Not measured" in trained.spiking(tmp_path)
    rows = [{"steps": 8, "accuracy": [10.0 + t for t in range(8)], "reference_accuracy": 90.0}]
    (tmp_path / "resnet20-cifar10.ftbc.json").write_text(json.dumps({"results": rows}))
    line = trained.spiking(tmp_path).splitlines()[-1]
    assert line == "| `resnet20-cifar10` | ftbc | 90.00 | 10.00 | 11.00 | 13.00 | 17.00 | - | - |"
