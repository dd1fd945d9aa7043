"""The tables of docs/export.md are made of results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("benchmarks", reason="not part of a source distribution")

from benchmarks import exports
from benchmarks.page import fill

PAGE = Path(__file__).parents[2] / "docs" / "export.md"


def rows() -> list[dict]:
    found = []
    for steps in (4, 8):
        for name, different in (("NIR, clock", 0), ("integers, 8 bits", 5)):
            accuracy = {"file": 90.0 + steps, **({"SpikingJelly": 12.5} if different == 0 else {})}
            row = {"different": different, "share": 1 - different / 1000, "bytes": 2_000_000, "network": 91.25}
            found.append({"format": name, "steps": steps, "accuracy": accuracy, **row})
        found.append({"format": "NIR, mean bias", "steps": steps, "refused": "no"})
    return found


def test_tables(tmp_path: Path) -> None:
    content = {"model": "net", "recipe": "ftbc", "images": 1500, "data": "squares", "rows": rows()}
    (tmp_path / "net.json").write_text(json.dumps(content))
    lines = exports.exports(tmp_path).splitlines()
    assert lines[0] == "**net**, recipe ftbc, 1,500 test images of squares"
    assert "| NIR, clock | all | all | 94.00 | 98.00 | 2.00 |" in lines
    assert "| integers, 8 bits | 99.5000 % | 99.5000 % | 94.00 | 98.00 | 2.00 |" in lines
    assert any(line.startswith("| NIR, mean bias | cannot be written |") for line in lines)
    assert "| predicted for SpikingJelly | - | - | 12.50 | 12.50 | - |" in lines
    peers = [{"program": "P", "network": name, "bias": "clock", "predicted": 1.0, "ours": 0.9} for name in ("a", "b")]
    (tmp_path / "interop.jsonl").write_text("\n".join(map(json.dumps, peers)))
    assert "| P | clock | a, b | 100.00 % | 90.00 to 90.00 % |" in exports.interop(tmp_path / "interop.jsonl")
    page = tmp_path / "export.md"
    page.write_text(PAGE.read_text())
    fill(page, {"exports": exports.exports, "interop": exports.interop})
    assert page.read_text().count("<!-- end -->") == PAGE.read_text().count("<!-- end -->") == 2


def test_nothing_measured_yet(tmp_path: Path) -> None:
    assert "Not measured" in exports.exports(tmp_path) and "Not measured" in exports.interop(tmp_path / "x.jsonl")
