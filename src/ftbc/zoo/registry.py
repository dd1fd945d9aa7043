"""Every network by name: architectures, and the trained ones that ship with the package."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import resources
from typing import Any

from torch import nn

from ftbc.errors import FileError, ModelError
from ftbc.zoo.mobilenet_v1 import MobileNetV1
from ftbc.zoo.resnet_cifar import CifarResNet
from ftbc.zoo.weights import load_safetensors

_ARCHITECTURES: dict[str, Callable[..., nn.Module]] = {
    "resnet20": partial(CifarResNet, blocks=3),
    "resnet32": partial(CifarResNet, blocks=5),
    "resnet56": partial(CifarResNet, blocks=9),
    "resnet20-pad": partial(CifarResNet, blocks=3, shortcut="pad"),
    "resnet32-pad": partial(CifarResNet, blocks=5, shortcut="pad"),
    "resnet56-pad": partial(CifarResNet, blocks=9, shortcut="pad"),
    "mobilenet-v1": MobileNetV1,
    "mobilenet-v1-0.25": partial(MobileNetV1, width=0.25),
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


def architectures() -> list[str]:
    """Names that `build` takes."""
    return list(_ARCHITECTURES)


def entries() -> dict[str, Entry]:
    """The trained networks that `load` takes, by name."""
    return {entry.name: entry for entry in _ENTRIES}


def build(name: str, **settings: Any) -> nn.Module:
    """An untrained network, for example ``build("resnet20", classes=100)``."""
    if name not in _ARCHITECTURES:
        raise unknown(name)
    try:
        return _ARCHITECTURES[name](**settings)
    except TypeError as error:
        raise ModelError(f"network '{name}' has no setting {str(error).rpartition(' ')[2]}") from error


def load(name: str) -> nn.Module:
    """A trained network of the package in eval mode, its file checked against its sha256."""
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
