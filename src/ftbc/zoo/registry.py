"""Every network by name: architectures, and the trained ones that ship with the package."""

from __future__ import annotations

import copy
import difflib
import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import resources
from typing import Any

from torch import nn

from ftbc.errors import FileError, ModelError
from ftbc.zoo.mobilenet_v1 import MobileNetV1
from ftbc.zoo.mobilenet_v2 import MobileNetV2
from ftbc.zoo.resnet import ResNet
from ftbc.zoo.resnet_cifar import CifarResNet
from ftbc.zoo.vgg import VGG16
from ftbc.zoo.weights import load_safetensors


@dataclass(frozen=True)
class Architecture:
    """A network without weights: how it is made, the side of the images it is meant for, and what it is."""

    make: Callable[..., nn.Module]
    side: int
    summary: str


_ARCHITECTURES: dict[str, Architecture] = {
    "resnet20": Architecture(partial(CifarResNet, blocks=3), 32, "ResNet-20, channels 16 to 64"),
    "resnet32": Architecture(partial(CifarResNet, blocks=5), 32, "ResNet-32, channels 16 to 64"),
    "resnet56": Architecture(partial(CifarResNet, blocks=9), 32, "ResNet-56, channels 16 to 64"),
    "resnet20-pad": Architecture(
        partial(CifarResNet, blocks=3, shortcut="pad"), 32, "ResNet-20, shortcuts without weights"
    ),
    "resnet32-pad": Architecture(
        partial(CifarResNet, blocks=5, shortcut="pad"), 32, "ResNet-32, shortcuts without weights"
    ),
    "resnet56-pad": Architecture(
        partial(CifarResNet, blocks=9, shortcut="pad"), 32, "ResNet-56, shortcuts without weights"
    ),
    "resnet20-wide": Architecture(
        partial(CifarResNet, blocks=3, widths=(64, 128, 256)), 32, "ResNet-20, channels 64 to 256, as FTBC uses it"
    ),
    "resnet18-cifar": Architecture(
        partial(CifarResNet, blocks=2, widths=(64, 128, 256, 512)), 32, "ResNet-18 with a 3 x 3 stem and no pool"
    ),
    "vgg16-cifar": Architecture(
        partial(VGG16, classes=10, grid=1, hidden=()), 32, "VGG-16 with BatchNorm and average pools, one linear layer"
    ),
    "mobilenet-v1-cifar": Architecture(
        partial(MobileNetV1, classes=10, stem_stride=1, activation=nn.ReLU), 32, "MobileNet v1 with a stem of stride 1"
    ),
    "resnet18": Architecture(partial(ResNet, blocks=(2, 2, 2, 2)), 224, "ResNet-18, takes the weights of torchvision"),
    "resnet34": Architecture(partial(ResNet, blocks=(3, 4, 6, 3)), 224, "ResNet-34, takes the weights of torchvision"),
    "resnet50": Architecture(
        partial(ResNet, blocks=(3, 4, 6, 3), bottleneck=True), 224, "ResNet-50, takes the weights of torchvision"
    ),
    "resnet34-deep-stem": Architecture(
        partial(ResNet, blocks=(3, 4, 6, 3), deep_stem=True, pool=nn.AvgPool2d),
        224,
        "ResNet-34 with a stem of three convolutions and an average pool, as FTBC uses it",
    ),
    "vgg16": Architecture(
        partial(VGG16, pool=nn.MaxPool2d, batch_norm=False), 224, "VGG-16, takes the weights of torchvision"
    ),
    "vgg16-bn": Architecture(
        partial(VGG16, pool=nn.MaxPool2d), 224, "VGG-16 with BatchNorm, takes the weights of torchvision"
    ),
    "vgg16-average": Architecture(VGG16, 224, "VGG-16 with BatchNorm and average pools, as FTBC uses it"),
    "mobilenet-v1": Architecture(MobileNetV1, 224, "MobileNet v1 with the layer names of Keras"),
    "mobilenet-v1-0.25": Architecture(
        partial(MobileNetV1, width=0.25), 224, "MobileNet v1 with the layer names of Keras, width 0.25"
    ),
    "mobilenet-v2": Architecture(MobileNetV2, 224, "MobileNet v2, takes the weights of torchvision"),
}


@dataclass(frozen=True)
class Entry:
    """A trained network of the package: what it is, how good, and the command that made it."""

    name: str
    architecture: str
    classes: int
    normalisation: str
    accuracy: float
    measured_on: str
    command: str
    sha256: str


def architectures() -> dict[str, Architecture]:
    """The networks that `build` makes, by name."""
    return dict(_ARCHITECTURES)


def entries() -> dict[str, Entry]:
    """The trained networks that `load` takes, by name."""
    return {entry.name: entry for entry in _ENTRIES}


def build(name: str, **settings: Any) -> nn.Module:
    """An untrained network, for example ``build("vgg16-cifar", classes=100, width=0.5, batch_norm=False)``.

    Every architecture takes ``classes``, ``width``, ``batch_norm`` and ``activation``: a class or function, which is
    called for each activation, or a module such as ``ftbc.activation.QCFS(levels=4)``, which is copied for each: all
    have parameters of their own. The docstring of the network's class tells of the rest.
    """
    if name in entries():
        raise ModelError(f"'{name}' is a trained network: load it with ftbc.zoo.load")
    if name not in _ARCHITECTURES:
        raise unknown(name)
    make = _ARCHITECTURES[name].make
    known = inspect.signature(make).parameters
    for setting in settings:
        if setting not in known:
            raise ModelError(f"network '{name}' has no setting '{setting}': it takes {', '.join(known)}")
    # A module stands for its own settings: a second set of classes to hold them would say the same twice.
    prototype = settings.get("activation")
    if isinstance(prototype, nn.Module):
        settings["activation"] = partial(copy.deepcopy, prototype)
    return make(**settings)


def load(name: str) -> nn.Module:
    """A trained network of the package in eval mode, its file checked against its sha256."""
    if name in _ARCHITECTURES:
        raise ModelError(f"'{name}' has no weights here: give it yours with build and load_weights of ftbc.zoo")
    if name not in entries():
        raise unknown(name)
    entry = entries()[name]
    content = resources.files("ftbc.zoo").joinpath(f"{name}.safetensors").read_bytes()
    if hashlib.sha256(content).hexdigest() != entry.sha256:
        raise FileError(f"the weights of '{name}' in this installation are damaged: install ftbc again")
    model = build(entry.architecture, classes=entry.classes)
    return load_safetensors(model, content, name).eval()


def unknown(name: str) -> ModelError:
    """The error for a name that is neither a trained network nor an architecture."""
    known = [*entries(), *_ARCHITECTURES]
    nearest = difflib.get_close_matches(name, known, 1, 0.0)[0]
    return ModelError(
        f"there is no network '{name}'; did you mean '{nearest}'? Trained: {', '.join(entries())}; "
        f"architectures: {', '.join(_ARCHITECTURES)}"
    )


_ENTRIES = (
    Entry(
        name="resnet20-cifar10",
        architecture="resnet20",
        classes=10,
        normalisation="cifar10",
        accuracy=91.34,
        measured_on="the 10,000 test images of CIFAR-10",
        command="ftbc train resnet20 --data data/cifar10 --epochs 40 --to first.safetensors && "
        "ftbc train resnet20 --data data/cifar10 --start-from first.safetensors --average --epochs 10 "
        "--learning-rate 0.05 --seed 1 --to resnet20-cifar10.safetensors",
        sha256="2d38f84dc88b867687f7f6e462bb033e5165b72f56aa1aea0cf73c94264e9b01",
    ),
)
