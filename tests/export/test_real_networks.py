"""ResNet-20, VGG and MobileNet to NIR and back in double precision: not one spike is lost or gained."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import ftbc

RECIPE = ftbc.recipe("ftbc", calibrate=(ftbc.FTBC(iterations=1, batch=16),))
NETWORKS = {
    "resnet20": lambda: ftbc.zoo.load("resnet20-cifar10"),
    "resnet20-pad": lambda: ftbc.zoo.build("resnet20-pad", classes=10),
    "vgg16": lambda: ftbc.zoo.build("vgg16-cifar", classes=10, width=0.25),
    "mobilenet-v1": lambda: ftbc.zoo.build("mobilenet-v1-cifar", classes=10, width=0.25),
    "mobilenet-v2": lambda: ftbc.zoo.build("mobilenet-v2", classes=10, width=0.35),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_every_spike_comes_back(name: str, tmp_path: Path) -> None:
    pytest.importorskip("nir")
    calibration, test = ftbc.data.load("cifar10-sample", calibration=32, test=10)
    snn = ftbc.convert(NETWORKS[name]().double().eval(), calibration.tensor().double(), 4, RECIPE)
    for dialect in ("nir", "spikingjelly", "snntorch"):
        report = ftbc.export.nir(snn, tmp_path / "net.nir", dialect=dialect, images=test.tensor().double()[:4])
        assert report.agreement.equal and report.agreement.largest < 1e-10, report
        assert report.agreement.spikes > 10_000
    back = ftbc.export.read_nir(tmp_path / "net.nir")
    images = test.tensor().double()[4:6]
    assert torch.allclose(back(images), snn(images), atol=1e-9)
