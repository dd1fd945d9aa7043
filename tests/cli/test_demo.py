"""The demonstration, on few images and with little calibration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ftbc.cli import demo
from ftbc.cli.app import run


def test_demo_prints_a_row_for_each_t_and_draws_the_curve(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "STEPS", (1, 2))
    result = tmp_path / "result.json"
    assert run(["demo", "--to", str(tmp_path / "out"), "--test-images", "20", "--json", str(result)]) == 0
    picture = tmp_path / "out" / "accuracy.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "Membranes before they fire" in (tmp_path / "out" / "report.html").read_text()
    content = json.loads(result.read_text())
    assert content["images"] == 20
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()[:1].isdigit()]
    for row, t, without, corrected in zip(
        rows, (1, 2), content["accuracy"]["without FTBC"], content["accuracy"]["with FTBC"], strict=True
    ):
        assert row == [str(t), f"{without:.1f}%", f"{corrected:.1f}%", f"{content['reference']:.1f}%"]
    assert content["reference"] > 75
