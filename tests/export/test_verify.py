"""`verify` tells what a file does, and what others will make of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import ftbc
from ftbc.errors import FileError, InputError
from ftbc.export.agreement import recorded
from ftbc.export.dialect import DIALECTS, IMPORTERS
from ftbc.simulate.readout import read

from ..conftest import Refused
from .networks import STEPS, converted


def test_nir(tmp_path: Path) -> None:
    pytest.importorskip("nir")
    snn, images = converted("residual")
    labels = snn(images)[-1].argmax(1)  # the network is right at the last step
    ftbc.export.nir(snn, tmp_path / "net.nir")
    report = ftbc.export.verify(tmp_path / "net.nir", snn, (images, labels))
    assert report.agreement.equal and report.score.images == len(images)
    assert report.score.network[-1] == 100 and report.score.others["file"] == report.score.network
    assert list(report.score.others) == ["file", *IMPORTERS] and report.semantics.keys() == IMPORTERS.keys()
    for name, semantics in IMPORTERS.items():
        outputs = torch.stack([output for output, _ in recorded(snn.graph, images, STEPS, semantics.cell())])
        wanted = (read(outputs).argmax(2) == labels).double().mean(1) * 100
        assert report.score.others[name] == pytest.approx(wanted.tolist()), name
    text = str(report)
    assert "all" in text and "hard reset" in text and "file" in text
    assert report.to_dict()["share"] == 1.0


def test_a_lossy_file_is_told_apart(tmp_path: Path) -> None:
    pytest.importorskip("nir")
    snn, images = converted("residual")
    ftbc.export.nir(snn, tmp_path / "net.nir", bias="mean")
    report = ftbc.export.verify(tmp_path / "net.nir", snn, (images, snn(images)[-1].argmax(1)))
    assert not report.agreement.equal and report.score.network[-1] == 100


@pytest.mark.parametrize("all_at_once", [False, True])
def test_onnx(all_at_once: bool, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    snn, images = converted("hidden")
    snn, images = snn.float(), images.float()
    labels = snn(images)[-1].argmax(1)
    ftbc.export.onnx(snn, tmp_path / "net.onnx", all_at_once=all_at_once)
    report = ftbc.export.verify(tmp_path / "net.onnx", snn, (images, labels))
    assert report.agreement.equal and report.score.others == {"file": report.score.network} and not report.semantics
    assert ("all steps" if all_at_once else "one step") in report.form


def test_weights(tmp_path: Path) -> None:
    snn, images = converted("residual")
    labels = snn(images)[-1].argmax(1)
    ftbc.export.weights(snn, tmp_path / "net.npz", images, bits=5, data=(images, labels))
    report = ftbc.export.verify(tmp_path / "net.npz", snn, (images, labels))
    assert report.form == "weights of 5 bits" and not report.agreement.equal
    assert report.agreement.share > 0.8


def test_batches_add_up(tmp_path: Path) -> None:
    snn, images = converted("plain")
    labels = torch.arange(len(images)) % 5
    ftbc.export.weights(snn, tmp_path / "net.npz", images)
    whole = ftbc.export.verify(tmp_path / "net.npz", snn, (images, labels))
    parts = ftbc.export.verify(tmp_path / "net.npz", snn, list(zip(images.split(4), labels.split(4), strict=True)))
    assert whole == parts


def test_bad_input(tmp_path: Path, refused: Refused) -> None:
    snn, images = converted("plain")
    other, _ = converted("residual")
    labels = torch.zeros(len(images), dtype=torch.long)
    ftbc.export.weights(snn, tmp_path / "net.npz", images)
    check = ftbc.export.verify
    refused(FileError, (".nir", ".onnx", ".npz"), check, tmp_path / "net.txt", snn, (images, labels))
    refused(FileError, "gone.npz", check, tmp_path / "gone.npz", snn, (images, labels))
    refused(InputError, "another network", check, tmp_path / "net.npz", other, (images, labels))
    refused(InputError, "no images", check, tmp_path / "net.npz", snn, [])
    refused(InputError, "shape", check, tmp_path / "net.npz", snn, (images[:, :2], labels))
    refused(InputError, "int", check, tmp_path / "net.npz", 3, (images, labels))
    assert "nir" in DIALECTS
