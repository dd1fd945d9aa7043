"""Every example runs as it stands, on fewer images, and is short enough to be read."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

import ftbc
from ftbc.data import Images

from .reproduce.tiny import tiny_network

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
NEEDS = {"exporting": ("nir", "onnx", "onnxruntime")}
CALIBRATION, TEST = 10, 10
# What each must show, and the files that it must leave.
SHOWN = {
    "quickstart": ("ANN", ["resnet20.snn"]),
    "own_model": ("ANN", ["small.snn"]),
    "no_classifier": ("variance", []),
    "choosing_steps": ("below the ANN", []),
    "comparing": ("mean-square", ["table.tex", "table.csv"]),
    "own_recipe": ("ternary", ["mine.toml"]),
    "own_method": ("accuracy", []),
    "early_exit": ("steps of 16", []),
    "stream": ("t = 8", []),
    "exporting": ("resnet20", ["resnet20.nir", "resnet20.onnx", "resnet20.npz"]),
    "trained_thresholds": ("ftbc-qcfs", []),
    "report": ("%", ["report.html"]),
}


def test_all_are_known() -> None:
    assert {path.stem for path in EXAMPLES} == set(SHOWN)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in NEEDS.get(path.stem, ()):
        pytest.importorskip(package)
    real, measured = ftbc.data.load, ftbc.evaluate
    small = tiny_network().eval()

    def few(source: str, calibration: int | None = None, test: int | None = None) -> tuple[Images, Images]:
        return real(source, calibration=CALIBRATION, test=TEST)

    def quick(snn: Any, data: Any, reference: Any = None) -> ftbc.Evaluation:
        few = data[:TEST] if isinstance(data, Tensor) else data.take(min(TEST, len(data)))
        return measured(snn, few, reference)

    monkeypatch.setattr(ftbc.data, "load", few)
    monkeypatch.setattr(ftbc, "evaluate", quick)
    monkeypatch.setattr(Images, "take", lambda images, n, take=Images.take: take(images, min(n, len(images))))
    monkeypatch.setattr(ftbc.zoo, "load", lambda name: small)
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    word, files = SHOWN[path.stem]
    assert word in capsys.readouterr().out
    assert all((tmp_path / name).is_file() for name in files)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_says_how_to_run_it(path: Path) -> None:
    text = path.read_text()
    assert 8 <= len([line for line in text.splitlines() if line.strip()]) <= 25
    assert re.match(rf'""".*python examples/{path.name}( \(needs ftbc\[.*\]\))?"""\n', text)
    assert "/" not in re.sub(r'""".*?"""', "", text, flags=re.S).replace("# ", "").replace("//", "")
