"""Options that several commands share, and how they become models and data."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from torch import nn

from ftbc import data, zoo
from ftbc.atomic import replacing
from ftbc.data import Images
from ftbc.errors import FileError, InputError, ModelError
from ftbc.recipe import Recipe, read_recipe, recipe

Model = Annotated[str, typer.Argument(help="A network of the zoo by name, or file.py:factory")]
Weights = Annotated[Path | None, typer.Option(help="Weights: .safetensors, or a state dict saved by torch")]
Classes = Annotated[int | None, typer.Option(help="Number of classes of a zoo architecture with --weights")]
Data = Annotated[str, typer.Option(help="'cifar10-sample', a folder (CIFAR, ImageNet) or an .npz file")]
CalibrationData = Annotated[
    str | None, typer.Option(help="Where the calibration images come from, if not the training split of --data")
]
Normalisation = Annotated[
    str | None, typer.Option("--normalise", help=f"One of {', '.join(data.NORMALISATIONS)}; else that of the data")
]
Images_ = Annotated[int, typer.Option("--images", min=1, help="How many training images to calibrate on")]
TestImages = Annotated[int | None, typer.Option(min=1, help="Measure on so many test images; else all")]
Steps = Annotated[int, typer.Option(min=1, help="Time steps T")]
RecipeName = Annotated[str, typer.Option("--recipe", help="A method by name (see: ftbc methods), or a .toml file")]
Seed = Annotated[int, typer.Option(help="Which calibration images, and in which order")]
Json = Annotated[Path | None, typer.Option("--json", help="Also write the result to this file")]


def find_model(name: str, weights: Path | None, classes: int | None) -> nn.Module:
    """The network a user named on the command line, in eval mode."""
    if ".py:" in name:
        model = _from_file(name)
    elif name in zoo.entries() and weights is None:
        return zoo.load(name)
    elif name in zoo.architectures():
        if weights is None:
            raise ModelError(f"'{name}' is an architecture without weights: give --weights FILE")
        model = zoo.build(name, **({} if classes is None else {"classes": classes}))
    elif name in zoo.entries():
        entry = zoo.entries()[name]
        model = zoo.build(entry.architecture, classes=classes or entry.classes)
    else:
        raise zoo.unknown(name)
    return (zoo.load_weights(model, weights) if weights is not None else model).eval()


def find_data(
    source: str, calibration_source: str | None, normalise: str | None, images: int, test_images: int | None, seed: int
) -> tuple[Images, Images]:
    """Images to calibrate on and images to measure on; the first are never drawn from the test split."""
    test = _test_split(source, test_images, seed)
    if calibration_source is None and Path(source).is_file():
        raise InputError(f"'{source}' is one file: give training images to calibrate on with --calibration")
    calibration = _train_split(calibration_source or source, images, seed)
    if normalise is not None:
        if normalise not in data.NORMALISATIONS:
            raise InputError(f"no normalisation '{normalise}': choose one of {', '.join(data.NORMALISATIONS)}")
        chosen = data.NORMALISATIONS[normalise]
        return calibration.with_normalise(chosen), test.with_normalise(chosen)
    return calibration.with_normalise(test.normalise), test


def find_recipe(name: str) -> Recipe:
    """A recipe by name or from a TOML file."""
    return read_recipe(name) if name.endswith(".toml") else recipe(name)


def write_json(path: Path | None, content: Any) -> None:
    """Write a result for programs, if a path was given."""
    if path is not None:
        with replacing(path) as file:
            file.write((json.dumps(content, indent=1) + "\n").encode())


def _train_split(source: str, images: int, seed: int) -> Images:
    if source == "cifar10-sample":
        calibration, _ = data.load(source)
        return calibration.take(min(images, len(calibration)))
    return data.read(source, "train", limit=images, seed=seed)


def _test_split(source: str, images: int | None, seed: int) -> Images:
    if source == "cifar10-sample":
        return data.load(source, test=images)[1]
    return data.read(source, "test", limit=images, seed=seed)


def _from_file(name: str) -> nn.Module:
    path, _, factory = name.rpartition(":")
    if not Path(path).is_file():
        raise FileError(f"'{path}' does not exist: give an existing Python file as file.py:factory")
    specification = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    try:
        specification.loader.exec_module(module)
    except Exception as error:
        raise ModelError(f"'{path}' cannot be run: {type(error).__name__}: {error}") from error
    if not hasattr(module, factory):
        raise ModelError(f"'{path}' has no '{factory}': name a function or class that gives the network")
    try:
        model = getattr(module, factory)
        model = model if isinstance(model, nn.Module) else model()
    except Exception as error:
        raise ModelError(f"{factory}() of '{path}' fails: {type(error).__name__}: {error}") from error
    if not isinstance(model, nn.Module):
        raise ModelError(f"{factory}() of '{path}' gives a {type(model).__name__}, not an nn.Module")
    return model
