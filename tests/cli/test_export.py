"""`ftbc export`: files are written, run and verified from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import ftbc

from .conftest import Outcome

Command = Callable[..., Outcome]
Fails = Callable[..., str]
DATA = ("--data", "squares")


@pytest.fixture
def network(ftbc_command: Command) -> str:
    ftbc_command(
        "convert", "nets.py:good", *DATA, "--images", 16, "--recipe", "mean-square", "--steps", 3, "--to", "net.snn"
    )
    return "net.snn"


def test_nir(network: str, ftbc_command: Command, folder: Path) -> None:
    pytest.importorskip("nir")
    outcome = ftbc_command("export", "nir", network, "--to", "net.nir", *DATA, "--json", "nir.json")
    assert outcome.status == 0 and not outcome.err and "12 images" in outcome.out and "spikes equal" in outcome.out
    assert json.loads((folder / "nir.json").read_text())["agreement"]["different"] == 0
    outcome = ftbc_command("export", "verify", "net.nir", network, *DATA, "--test-images", 12, "--json", "v.json")
    assert outcome.status == 0 and not outcome.err
    report = json.loads((folder / "v.json").read_text())
    direct = ftbc.evaluate(ftbc.load(network), ftbc.data.read(folder / "squares", "test"))
    assert report["score"]["others"]["file"] == direct.accuracy == report["score"]["network"]
    assert "SpikingJelly" in outcome.out and "hard reset" in outcome.out
    for dialect in ftbc.export.DIALECTS:
        outcome = ftbc_command(
            "export", "nir", network, "--to", f"{dialect}.nir", "--dialect", dialect, "--bias", "mean"
        )
        assert outcome.status == 0 and "noise" in outcome.out
    outcome = ftbc_command("export", "nir", network, "--to", "mean.nir", "--bias", "mean")
    assert outcome.status == 0 and "lossy" in outcome.out


@pytest.mark.parametrize("flags", [(), ("--all-steps",)])
def test_onnx(flags: tuple[str, ...], network: str, ftbc_command: Command, folder: Path) -> None:
    pytest.importorskip("onnxruntime")
    outcome = ftbc_command("export", "onnx", network, "--to", "net.onnx", *flags, "--json", "onnx.json")
    assert outcome.status == 0 and not outcome.err and "opset 17" in outcome.out
    assert json.loads((folder / "onnx.json").read_text())["agreement"]["different"] == 0
    outcome = ftbc_command("export", "verify", "net.onnx", network, *DATA, "--test-images", 12)
    assert outcome.status == 0 and not outcome.err and "spikes equal" in outcome.out


def test_weights(network: str, ftbc_command: Command, folder: Path) -> None:
    outcome = ftbc_command("export", "weights", network, "--to", "net.npz", *DATA, "--bits", 6, "--json", "w.json")
    assert outcome.status == 0 and not outcome.err and "6 bits" in outcome.out and "integers" in outcome.out
    report = json.loads((folder / "w.json").read_text())
    assert report["score"]["images"] == 12 and len(report["score"]["others"]["integers"]) == 3
    described = json.loads((folder / "net.json").read_text())
    assert described["bits"] == 6 and described["accuracy"]["integers"] == report["score"]["others"]["integers"]
    outcome = ftbc_command("export", "verify", "net.npz", network, *DATA, "--test-images", 12)
    assert outcome.status == 0 and "weights of 6 bits" in outcome.out


CASES: dict[str, tuple[tuple[object, ...], tuple[str, ...]]] = {
    "no such network": (("nir", "gone.snn", "--to", "x.nir"), ("gone.snn",)),
    "no network": (("nir", "nets.py", "--to", "x.nir"), ("nets.py",)),
    "no such folder": (("nir", "net.snn", "--to", "no/x.nir"), ("no/x.nir",)),
    "no such folder for weights": (("weights", "net.snn", "--to", "no/x.npz"), ("no/x.npz",)),
    "another ending of a NIR file": (("nir", "net.snn", "--to", "x.txt"), ("x.txt", ".nir")),
    "another ending of a model": (("onnx", "net.snn", "--to", "x.nir"), ("x.nir", ".onnx")),
    "another ending": (("weights", "net.snn", "--to", "x.bin", *DATA), (".npz",)),
    "bits": (("weights", "net.snn", "--to", "x.npz", "--bits", "1"), ("--bits",)),
    "images of another size": (("weights", "net.snn", "--to", "x.npz"), ("32",)),
    "a file of no kind": (("verify", "nets.py", "net.snn", *DATA), ("nets.py", ".onnx")),
    "no such file": (("verify", "gone.npz", "net.snn", *DATA, "--test-images", "12"), ("gone.npz",)),
    "missing command": ((), ("ommand", "ftbc export --help")),
}


@pytest.mark.parametrize("case", CASES)
def test_errors(case: str, network: str, fails: Fails, folder: Path) -> None:
    arguments, words = CASES[case]
    line = fails("export", *arguments)
    assert all(word in line for word in words), line
    assert not list(folder.glob("x.*"))


def test_wrong_dialect(network: str, fails: Fails) -> None:
    pytest.importorskip("nir")
    line = fails("export", "nir", network, "--to", "x.nir", "--dialect", "lava")
    assert "lava" in line and "spikingjelly" in line
    assert "clock" in fails("export", "nir", network, "--to", "x.nir", "--bias", "sum")
