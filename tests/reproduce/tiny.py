"""A tiny network with its weights in a file, a tiny data set, and experiments on them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from ftbc import zoo
from ftbc.data import Images, Normalise, write_npz
from ftbc.reproduce.experiment import Experiment
from ftbc.reproduce.files import read_experiment
from ftbc.reproduce.material import Material
from ftbc.reproduce.setting import Setting, scale_of
from ftbc.zoo import registry

NETWORK = '{ architecture = "tiny", classes = 10, weights = "net.safetensors" }'
TABLE = f"""
title = "A tiny table"
source = "tab:tiny"
kind = "table"
about = "Two methods & a 100 % quoted one."
notes = ["A note."]

[full]
steps = [1, 2]
seeds = 2
images = 16

[small]
steps = [1, 2]
images = 16
test_images = 10

[networks.net]
full = {NETWORK}
small = {NETWORK}

[networks.gone]
full = {{ architecture = "resnet20", weights = "gone.safetensors", train = "cifar10.toml" }}

[[part]]
title = "ResNet-20 on CIFAR-10"
data = "cifar10"

[[part.row]]
method = "FTBC"
network = "net"
recipe = "ftbc-cifar"
settings = {{ iterations = 2, batch = 8, batches = 1, alpha = 0.2 }}
ann = 95.0
paper = {{ 1 = 50.0, 4 = 60.25 }}

[[part.row]]
method = "QCFS"
network = "net"
recipe = "qcfs"
paper = {{ 1 = 40.0 }}

[[part.row]]
method = "RTS"
network = "gone"
recipe = "rts"
paper = {{ 1 = 30.0 }}

[[part.row]]
method = "TET_x"
trained = "training through time"
paper = {{ 2 = 20.0 }}
"""
STABILITY = f"""
title = "A tiny course"
source = "fig:tiny"
kind = "stability"
about = "A course."

[full]
data = "cifar10"
steps = [1, 2]
images = 16

[small]
data = "cifar10"
steps = [1, 2]
images = 16
test_images = 10

[networks.subject]
full = {NETWORK}
small = {NETWORK}

[figure]
recipe = "ftbc-cifar"
alphas = [0.5, 1.0]
batches = 2
batch = 8
"""
MEMBRANES = (
    STABILITY.partition("[figure]")[0].replace('"stability"', '"membranes"')
    + """
[figure]
recipe = "ftbc-cifar"
iterations = 2
alpha = 0.5

[[figure.panel]]
layer = 3
step = 1

[[figure.panel]]
layer = 2
step = 2
"""
)
OVERVIEW = (
    STABILITY.partition("[figure]")[0].replace('"stability"', '"overview"')
    + '\n[figure]\nrecipe = "ftbc-cifar"\nlayer = 2\n'
)


def tiny_network(classes: int = 10, activation: type[nn.Module] = nn.ReLU) -> nn.Module:
    """Three layers of neurons, for images of 32 x 32."""
    convolutions = [nn.Conv2d(3, 4, 5, stride=4), activation(), nn.Conv2d(4, 6, 3, stride=2), activation()]
    return nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(54, 8), activation(), nn.Linear(8, classes))


def make_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with weights/, pictures/ (32 x 32, ten classes) and the experiments above; the zoo knows the network."""
    monkeypatch.setitem(registry._ARCHITECTURES, "tiny", zoo.Architecture(tiny_network, 32, "for tests"))
    (tmp_path / "weights").mkdir()
    (tmp_path / "pictures").mkdir()
    blueprint = zoo.Blueprint("tiny", classes=10)
    zoo.save_weights(blueprint.build(), tmp_path / "weights" / "net.safetensors", blueprint)
    for split, count in (("train", 40), ("test", 20)):
        pixels = torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8)
        images = Images(pixels, torch.arange(count) % 10, Normalise((0.5,) * 3, (0.25,) * 3), split)
        write_npz(tmp_path / "pictures" / f"pictures_{split}.npz", images)
    for name, text in (
        ("tiny", TABLE), ("course", STABILITY), ("potentials", MEMBRANES), ("scheme", OVERVIEW),
    ):  # fmt: skip
        (tmp_path / f"{name}.toml").write_text(text)
    return tmp_path


def setting_of(place: Path, name: str, scale: str = "full", **others: object) -> Setting:
    """An experiment of the folder on its material."""
    experiment: Experiment = read_experiment(place / f"{name}.toml")
    material = Material({"cifar10": str(place / "pictures")}, place / "weights")
    return Setting(experiment, scale, material, place / "kept", scale_of(experiment, scale), "layerwise", **others)  # type: ignore
