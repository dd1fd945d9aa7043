"""Networks of every method: what plain neurons can carry goes into each format, all else is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import ftbc
from ftbc.errors import UnsupportedError
from tests.networks import INPUT_SHAPE, residual

from ..conftest import Refused

CARRIED = ("snnc-potential", "ltb", "ftbc-neuron", "best")
"""Initial potentials per neuron, a readout, biases per neuron, a readout with weights on the shortcut."""
REFUSED = {"tsc": "SwitchFire", "snm": "SignedFire", "burst": "BurstFire", "differential": "DifferentialFire"}


def converted(recipe: str) -> tuple[ftbc.SpikingNetwork, torch.Tensor]:
    torch.manual_seed(0)
    images = torch.rand(16, *INPUT_SHAPE)
    return ftbc.convert(residual().float(), images, 4, recipe), images


@pytest.mark.parametrize("recipe", CARRIED)
def test_carried(recipe: str, tmp_path: Path) -> None:
    pytest.importorskip("nir")
    pytest.importorskip("onnxruntime")
    snn, images = converted(recipe)
    labels = snn(images)[-1].argmax(1)
    ftbc.export.nir(snn, tmp_path / "net.nir")
    ftbc.export.onnx(snn, tmp_path / "net.onnx")
    ftbc.export.onnx(snn, tmp_path / "all.onnx", all_at_once=True)
    ftbc.export.weights(snn, tmp_path / "net.npz", images, bits=12, per_channel=True)
    for name in ("net.nir", "net.onnx", "all.onnx", "net.npz"):
        found = ftbc.export.verify(tmp_path / name, snn, (images, labels))
        assert found.agreement.share > 0.98 and found.score.network[-1] == 100, (name, found)
        assert name == "net.npz" or found.score.others["file"] == found.score.network, (name, found)


@pytest.mark.parametrize("recipe", REFUSED)
def test_refused(recipe: str, tmp_path: Path, refused: Refused) -> None:
    pytest.importorskip("nir")
    pytest.importorskip("onnxruntime")
    snn, images = converted(recipe)
    refused(UnsupportedError, (REFUSED[recipe], "NIR"), ftbc.export.nir, snn, tmp_path / "net.nir")
    refused(UnsupportedError, (REFUSED[recipe], "ONNX"), ftbc.export.onnx, snn, tmp_path / "net.onnx")
    refused(UnsupportedError, (REFUSED[recipe], "integers"), ftbc.export.weights, snn, tmp_path / "net.npz", images)
    assert not list(tmp_path.iterdir())
