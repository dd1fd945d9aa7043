"""Networks by name."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest
import torch
from torch import nn

import ftbc
from ftbc import zoo
from ftbc.errors import ModelError

from ..conftest import Refused


def test_every_network_is_listed_with_a_line_about_it() -> None:
    names = zoo.list()
    assert [*names] == [*zoo.entries(), *zoo.architectures()] and len(names) == len(set(names))
    lines = str(names).splitlines()
    assert all(any(line.startswith(f"{name} ") for line in lines) for name in names)
    assert any("resnet20-cifar10" in line and "91.34 %" in line for line in lines)
    assert any("vgg16-bn " in line and "224 x 224" in line for line in lines)


@pytest.mark.parametrize("name", zoo.architectures())
def test_every_architecture_takes_the_same_settings(name: str) -> None:
    side = zoo.architectures()[name].side
    with torch.device("meta"):
        usual = zoo.build(name)(torch.empty(2, 3, side, side))
        chosen = zoo.build(name, classes=7, width=0.5, batch_norm=False, activation=nn.Hardtanh)
        assert chosen(torch.empty(2, 3, side, side)).shape == (2, 7)
    assert usual.shape == (2, 10 if side == 32 else 1000)


def test_unknown_names_suggest_the_nearest(refused: Refused) -> None:
    refused(ModelError, ("'rsnet20'", "did you mean 'resnet20"), zoo.build, "rsnet20")
    refused(ModelError, ("'resnet-20'", "did you mean 'resnet20"), zoo.load, "resnet-20")
    refused(ModelError, "did you mean", zoo.build, "")


def test_trained_and_untrained_are_told_apart(refused: Refused) -> None:
    refused(ModelError, ("'vgg16-bn'", "no weights", "load_weights"), zoo.load, "vgg16-bn")
    refused(ModelError, ("'resnet20-cifar10'", "zoo.load"), zoo.build, "resnet20-cifar10")


def test_unknown_settings(refused: Refused) -> None:
    refused(ModelError, ("resnet20", "'colours'", "batch_norm"), zoo.build, "resnet20", colours=3)


@pytest.mark.parametrize("name", zoo.architectures())
@pytest.mark.parametrize("width", [0, -1.0, float("nan")])
def test_a_width_that_leaves_nothing(name: str, width: float, refused: Refused) -> None:
    refused(ModelError, f"width={width!r}", zoo.build, name, width=width)


@pytest.mark.parametrize("name", list(zoo.entries()))
def test_shipped_weights_load(name: str) -> None:
    model = zoo.load(name)
    assert not model.training and all(bool(torch.isfinite(p).all()) for p in model.parameters())


@pytest.mark.parametrize("name", list(zoo.entries()))
def test_shipped_files_say_what_they_are_and_are_small(name: str) -> None:
    entry = zoo.entries()[name]
    path = Path(str(resources.files("ftbc.zoo").joinpath("files", f"{name}.safetensors")))
    assert path.stat().st_size <= 5 << 20
    said = zoo.blueprint_of(path)
    assert said is None or said == zoo.Blueprint.from_dict(entry.network)
    assert entry.normalisation in ftbc.data.NORMALISATIONS and entry.command.startswith("ftbc train ")
    assert entry.command.endswith(f"--to {name}.safetensors")


def test_no_file_ships_without_an_entry() -> None:
    folder = Path(str(resources.files("ftbc.zoo").joinpath("files")))
    assert {path.stem for path in folder.iterdir()} == set(zoo.entries())
