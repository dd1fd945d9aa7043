"""Every architecture by name."""

from __future__ import annotations

import copy
import difflib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import nn

from ftbc.errors import ModelError
from ftbc.zoo.mobilenet_v1 import MobileNetV1
from ftbc.zoo.mobilenet_v2 import MobileNetV2
from ftbc.zoo.resnet import ResNet
from ftbc.zoo.resnet_cifar import CifarResNet
from ftbc.zoo.trained import entries
from ftbc.zoo.vgg import VGG16


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


def architectures() -> dict[str, Architecture]:
    """The networks that `build` makes, by name."""
    return dict(_ARCHITECTURES)


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


def unknown(name: str) -> ModelError:
    """The error for a name that is neither a trained network nor an architecture."""
    known = [*entries(), *_ARCHITECTURES]
    nearest = difflib.get_close_matches(name, known, 1, 0.0)[0]
    return ModelError(f"there is no network '{name}'; did you mean '{nearest}'? ftbc.zoo.list() names all of them")
