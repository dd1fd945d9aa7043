"""All that a training is made of, in one TOML file: the network, the settings, the data, and where it begins.

    data = "data/cifar10"

    [network]
    architecture = "vgg16-cifar"
    activation = "qcfs"
    levels = 4

    [train]
    epochs = 300
    warm_up = 0.0

What a file leaves out has its usual value; the plan of a run, with everything filled in, is written beside its weights.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ftbc.atomic import replacing
from ftbc.errors import FileError, InputError
from ftbc.train.settings import TrainSettings
from ftbc.zoo import Blueprint

_SECTIONS = ("network", "train")


@dataclass(frozen=True)
class Plan:
    """A training.

    side: of the crops of an image folder; start_from, finetune_from: weights that it begins with; fit_steps: see
    `swap_activations`; teachers: trained networks to learn from, by name or file (`teacher.py`); float16: store kernels
    and matrices in half the bytes.
    """

    network: Blueprint
    train: TrainSettings
    data: str
    side: int | None = None
    start_from: str | None = None
    average: bool = False
    finetune_from: str | None = None
    fit_steps: int | None = None
    teachers: tuple[str, ...] = ()
    float16: bool = False

    def __post_init__(self) -> None:
        if self.average and self.start_from is None:
            raise InputError("--average needs --start-from: it averages the result with the weights it began with")
        if self.start_from is not None and self.finetune_from is not None:
            raise InputError("--start-from and --finetune-from: choose one of them to begin with")
        if self.finetune_from is not None and self.network.activation in (None, "relu"):
            raise InputError("--finetune-from swaps the activations of a ReLU network: name others with --activation")
        if self.fit_steps is not None and self.finetune_from is None:
            raise InputError("--fit-steps fits thresholds to a trained network: name its weights with --finetune-from")
        if self.fit_steps is not None and self.fit_steps < 1:
            raise InputError(f"fit_steps={self.fit_steps}: thresholds are fitted to 1 or more time steps")

    def write(self, path: Path) -> None:
        """Write the plan as TOML."""
        content = {
            name: value for name, value in asdict(self).items() if name not in _SECTIONS and value not in (None, ())
        }
        lines = _lines(content)
        for section, part in (("network", self.network.to_dict()), ("train", asdict(self.train))):
            lines += ["", f"[{section}]", *_lines(part)]
        with replacing(path) as file:
            file.write(("\n".join(lines) + "\n").encode())


def read_plan(path: Path) -> dict[str, Any]:
    """What a file says, which may be no more than a part of a plan."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FileError(f"settings '{path}' cannot be read: {error}") from error
    known = {
        "": {field.name for field in fields(Plan)},
        "network": {field.name for field in fields(Blueprint)},
        "train": {field.name for field in fields(TrainSettings)},
    }
    for section in ("", *_SECTIONS):
        part = found if not section else found.get(section, {})
        if not isinstance(part, dict):
            raise FileError(f"settings '{path}': {section} must be a section, [{section}]")
        for name in part:
            if name not in known[section]:
                where = f"[{section}]" if section else "the top"
                raise FileError(f"settings '{path}' have '{name}' at {where}, which takes {', '.join(known[section])}")
    return found


def merged(*parts: dict[str, Any]) -> dict[str, Any]:
    """One plan of several, of which the later override the earlier; None says nothing."""
    whole: dict[str, Any] = {"network": {}, "train": {}}
    for part in parts:
        for name, value in part.items():
            if name in _SECTIONS:
                whole[name].update({key: entry for key, entry in value.items() if entry is not None})
            elif value is not None:
                whole[name] = value
    return whole


def plan_of(content: dict[str, Any]) -> Plan:
    """The plan that a merged file and command line ask for; the usual settings are those of `usual`."""
    if "architecture" not in content["network"]:
        raise InputError("no architecture: name a network of the zoo, such as resnet20 (see ftbc.zoo.list)")
    if "data" not in content:
        raise InputError("no data: give a folder with a training and a test split with --data")
    kinds = {
        "data": str, "side": int, "start_from": str, "finetune_from": str, "fit_steps": int, "average": bool,
        "float16": bool,
    }  # fmt: skip
    for name, kind in kinds.items():
        if name in content and type(content[name]) is not kind:
            raise InputError(f"{name}={content[name]!r}: give a {kind.__name__}")
    teachers = content.get("teachers", [])
    if not isinstance(teachers, list) or not all(isinstance(name, str) for name in teachers):
        raise InputError(f"teachers={teachers!r}: give a list of names or files")
    network = Blueprint.from_dict(content["network"])
    chosen = {**usual(network, "finetune_from" in content), **content["train"]}
    rest = {name: value for name, value in content.items() if name not in _SECTIONS}
    return Plan(network, TrainSettings(**chosen), **{**rest, "teachers": tuple(teachers)})


def usual(network: Blueprint, finetune: bool) -> dict[str, Any]:
    """Learning rate and weight decay that suit a network, as FTBC trains; a tenth and 10 epochs to fine-tune it."""
    with torch.device("meta"):  # to see whether there are BatchNorms needs no numbers
        model = replace(network, classes=network.classes or 2).build()
    has_norm = any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules())
    small = not has_norm or network.architecture.startswith("mobilenet")
    settings: dict[str, Any] = {"learning_rate": 0.1 if has_norm else 0.01, "weight_decay": 1e-4 if small else 5e-4}
    if finetune:
        settings |= {"learning_rate": settings["learning_rate"] / 10, "epochs": 10}
    return settings


def _lines(content: dict[str, Any]) -> list[str]:
    return [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in content.items()]
