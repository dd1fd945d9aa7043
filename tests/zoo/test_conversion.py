"""Every network of the registry, with BatchNorm and without: from its forward to spikes, to a file and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc import zoo
from ftbc.graph.ops import Activation, Affine
from tests.graph.support import answer, clean

# A layer of neurons for each activation. SNN Calibration (Li et al. 2021) has 19 in its ResNet-20, 35 in its ResNet-34,
# 13 in VGG-16 for CIFAR and 15 for ImageNet. Depthwise separable blocks have two each, beside the stem.
SPIKING_LAYERS = {
    "resnet20": 19, "resnet32": 31, "resnet56": 55, "resnet20-pad": 19, "resnet32-pad": 31, "resnet56-pad": 55,
    "resnet20-wide": 19, "resnet18-cifar": 17, "vgg16-cifar": 13, "mobilenet-v1-cifar": 27,
    "resnet18": 17, "resnet34": 33, "resnet50": 49, "resnet34-deep-stem": 35,
    "vgg16": 15, "vgg16-bn": 15, "vgg16-average": 15,
    "mobilenet-v1": 27, "mobilenet-v1-0.25": 27, "mobilenet-v2": 35,
}  # fmt: skip


# What the settings change: (architecture, settings, layers of neurons).
OPTIONS = {
    "max pools": ("vgg16-cifar", {"pool": nn.MaxPool2d}, 13),
    "the linear layers of QCFS": ("vgg16-cifar", {"hidden": (4096, 4096)}, 15),
    "average pool": ("resnet18", {"pool": nn.AvgPool2d}, 17),
    "ReLU in place of ReLU6": ("mobilenet-v2", {"activation": nn.ReLU}, 35),
}


def _narrow(name: str, **settings: Any) -> nn.Module:
    """An eighth as wide, with BatchNorms that do something."""
    model = zoo.build(name, width=0.125, classes=5, **settings).double().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-0.3, 0.3)
            module.running_var.uniform_(0.5, 2.0)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.3, 0.3)
    return model


def _images(name: str) -> Tensor:
    side = min(zoo.architectures()[name].side, 64)
    return torch.randn(2, 3, side, side, dtype=torch.float64)


def _has(model: nn.Module, kind: type[nn.Module]) -> bool:
    return any(isinstance(module, kind) for module in model.modules())


def _from_forward_to_file(model: nn.Module, x: Tensor, layers: int, file: Path) -> None:
    cleaned = clean(model, x)
    torch.testing.assert_close(answer(cleaned, x), model(x).detach(), rtol=1e-9, atol=1e-9)
    assert len(cleaned.graph.of_type(Activation)) == layers
    assert not cleaned.graph.of_type(nn.BatchNorm2d, Affine)  # all of them are in the weights

    snn = ftbc.convert(model, x, steps=2, recipe="mean-square")
    means = snn(x)
    assert means.shape == (2, 2, 5) and not torch.equal(means[0], means[1])
    for t in range(2):
        torch.testing.assert_close(snn.step(x), means[t], rtol=0, atol=1e-12)
    snn.save(file)
    assert torch.equal(ftbc.load(file)(x), means)


@pytest.mark.parametrize("batch_norm", [True, False], ids=["BatchNorm", "none"])
@pytest.mark.parametrize("name", zoo.architectures())
def test_every_architecture(name: str, batch_norm: bool, tmp_path: Path) -> None:
    model = _narrow(name, batch_norm=batch_norm)
    assert _has(model, nn.BatchNorm2d) == batch_norm
    _from_forward_to_file(model, _images(name), SPIKING_LAYERS[name], tmp_path / "net.snn")


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option(option: str, tmp_path: Path) -> None:
    name, settings, layers = OPTIONS[option]
    model = _narrow(name, **settings)
    assert _has(model, nn.MaxPool2d) == (option == "max pools") and not _has(model, nn.ReLU6)
    _from_forward_to_file(model, _images(name), layers, tmp_path / "net.snn")


@pytest.mark.parametrize("name", zoo.entries())
def test_every_trained_network(name: str) -> None:
    entry = zoo.entries()[name]
    architecture = entry.network["architecture"]
    model, x = zoo.load(name).double(), _images(architecture)
    snn = ftbc.convert(model, x, steps=2, recipe="mean-square")
    assert len(snn.layers()) == SPIKING_LAYERS[architecture] and snn(x).shape == (2, 2, entry.network["classes"])
