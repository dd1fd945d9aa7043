"""Options that several commands share, and how they become models and data."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import nn

from ftbc import data, zoo
from ftbc.atomic import replacing
from ftbc.calibration_data import MOST_IMAGES
from ftbc.cli.user_file import from_user_file
from ftbc.convert import MOST_STEPS
from ftbc.data import Images, Normalise
from ftbc.data.balance import draw_balanced
from ftbc.errors import InputError, ModelError
from ftbc.measure.tally import answers, require_scores
from ftbc.network import SpikingNetwork
from ftbc.program import ENDING, read_program
from ftbc.recipe import Recipe, read_recipe
from ftbc.recipes import recipe
from ftbc.search.held_out import HeldOut

USUAL_DATA = "cifar10-sample"
REPORT_IMAGES = 500
"""A report that comes along with something else is made on at most so many test images."""
_POOL = 4
"""Calibrations that leave images out draw from so many times the images that each of them takes."""

Model = Annotated[
    str, typer.Argument(help="A network of the zoo by name, file.py:factory, or a torch.export program, .pt2")
]
Weights = Annotated[Path | None, typer.Option(help="Weights: .safetensors, or a state dict saved by torch")]
Classes = Annotated[int | None, typer.Option(min=1, help="Number of classes of a zoo architecture with --weights")]
Data = Annotated[
    str | None, typer.Option(help=f"A folder (CIFAR, ImageNet), an .npz file, or '{USUAL_DATA}', which is the default")
]
CalibrationData = Annotated[
    str | None, typer.Option(help="Where calibration images come from (default: the training split of --data)")
]
Normalisation = Annotated[
    str | None, typer.Option("--normalise", help=f"One of {', '.join(data.NORMALISATIONS)} (default: that of the data)")
]
Images_ = Annotated[int, typer.Option("--images", min=1, help="How many training images to calibrate on")]
Mirrored = Annotated[
    bool,
    typer.Option("--mirrored", help="Also calibrate on their mirror images, left for right; not for images of text"),
]
TestImages = Annotated[int | None, typer.Option(min=1, help="Number of test images (default: all)")]
Steps = Annotated[int, typer.Option(min=1, max=MOST_STEPS, help="Time steps T")]
RecipeName = Annotated[
    str, typer.Option("--recipe", help="A method by name (see: ftbc methods), a .toml file, or file.py:recipe")
]
Engine = Annotated[str, typer.Option(help="How to run the spiking network: layerwise, stepwise, or event (fastest)")]
Rounded = Annotated[
    bool, typer.Option("--rounded", help="Round to whole numbers of 16 bits, in which events run fastest")
]
Device = Annotated[
    str,
    typer.Option(
        "--device",
        help="Where to compute: cpu, or cuda (under torchrun a GPU for each process); cuda+bf16: synapses in bfloat16",
    ),
]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of the random draw of images")]
Json = Annotated[Path | None, typer.Option("--json", help="Also write the result to this file")]


def find_model(name: str, weights: Path | None, classes: int | None) -> nn.Module:
    """The network a user named on the command line, in eval mode."""
    if name.endswith(".py"):
        raise ModelError(f"'{name}' is a file: name the function or class in it that gives the network, {name}:factory")
    if name.endswith((".onnx", ENDING)):
        return _finished(name, weights, classes)
    if ".py:" in name:
        if classes is not None:
            raise ModelError(f"--classes is for networks of the zoo: '{name}' decides on its own classes")
        model = from_user_file(name, nn.Module, "an nn.Module")
    elif name in zoo.entries() and weights is None:
        if classes is not None:
            raise ModelError(f"--classes is for weights of your own: '{name}' has classes of its own; leave it out")
        return zoo.load(name)
    elif name in zoo.architectures():
        if weights is None:
            raise ModelError(f"'{name}' is an architecture without weights: give --weights FILE")
        model = _blueprint(name, weights, classes).build()
    elif name in zoo.entries():
        said = zoo.Blueprint.from_dict(zoo.entries()[name].network)
        model = replace(said, classes=classes or said.classes).build()
    else:
        raise zoo.unknown(name)
    return (zoo.load_weights(model, weights) if weights is not None else model).eval()


def _finished(name: str, weights: Path | None, classes: int | None) -> nn.Module:
    """A network from a file that holds its weights as well."""
    if name.endswith(".onnx"):
        raise ModelError(
            f"'{name}' is an ONNX model, which ftbc cannot read: name a function that gives it as a torch module, "
            "file.py:factory, as onnx2torch.convert does"
        )
    if weights is not None or classes is not None:
        raise ModelError(f"'{name}' has weights and classes of its own: leave out --weights and --classes")
    return read_program(name)


def _blueprint(name: str, weights: Path, classes: int | None) -> zoo.Blueprint:
    """What a weights file says of its network, if it says anything; width, activation and levels are in there."""
    said = zoo.blueprint_of(weights) or zoo.Blueprint(name)
    if said.architecture != name:
        raise ModelError(f"weights '{weights}' belong to '{said.architecture}': name that in the place of '{name}'")
    return said if classes is None else replace(said, classes=classes)


def find_calibration(
    source: str | None, calibration: str | None, normalise: str | None, images: int, seed: int, mirrored: bool = False
) -> Images:
    """Images to calibrate on, never drawn from the test split of ``source``; mirrored: and their mirror images."""
    found = _as_asked(_train_split(_training_data(source, calibration), images, seed), mirrored)
    if calibration is not None and source is not None and normalise is None:
        return found.with_normalise(find_test(source, None, 1, seed).normalise)
    return normalised(found, normalise)


def find_draws(
    source: str | None, calibration: str | None, normalise: Normalise, images: int, mirrored: bool = False
) -> Callable[[int], Images]:
    """As `find_calibration`, for each of several seeds, with the normalisation of the test images."""
    place = _training_data(source, calibration)
    return lambda seed: _as_asked(_train_split(place, images, seed), mirrored).with_normalise(normalise)


def find_held_out(
    source: str | None,
    normalise: str | None,
    images: int,
    held_out: int,
    seed: int,
    calibration: str | None = None,
    mirrored: bool = False,
) -> HeldOut:
    """Training images in two parts: of one each calibration draws so many, the other is measured on."""
    _require_room(images, mirrored)
    source = calibration or _given(source)
    if source == USUAL_DATA:
        train = data.load(USUAL_DATA)[0]
    elif calibration is None and Path(source).expanduser().is_file():
        raise InputError(f"'{source}' is one file: give a folder with a training split, of which images are held out")
    else:
        in_memory = not (Path(source).expanduser() / "train").is_dir()
        train = data.read(source, "train", limit=None if in_memory else _POOL * images + held_out, seed=seed)
    return HeldOut.of(normalised(train, normalise), images, held_out, mirrored)


def _given(source: str | None) -> str:
    """Where images come from; an empty name, as of a variable of the shell that is not set, stands for nothing."""
    if source == "":
        raise InputError("--data is empty: name a folder or an .npz file, or leave it out")
    return source or USUAL_DATA


def find_test(source: str | None, normalise: str | None, images: int | None, seed: int) -> Images:
    """Images to measure on: the test split, or all of a single file."""
    source = _given(source)
    found = data.load(source, test=images)[1] if source == USUAL_DATA else data.read(source, "test", images, seed)
    return normalised(found, normalise)


def find_some_test(source: str | None, normalise: str | None, seed: int) -> Images:
    """A few test images, balanced over the classes as far as there are so many."""
    found = find_test(source, normalise, None, seed)
    return found.subset(draw_balanced(found.labels, min(REPORT_IMAGES, len(found)), seed))


@torch.no_grad()
def require_classifier(network: nn.Module, images: Images) -> None:
    """Refuse before the work what counts right answers, for a network that gives no scores of classes."""
    try:
        shape = answers(network, images.take(1).tensor()).shape[1:]
    except InputError:  # what is wrong with a network that does not run, its conversion says best
        return
    require_scores(shape)


def find_some_training(source: str | None, normalise: str | None, images: int, seed: int) -> Images:
    """A few images; one is enough for what depends on shapes alone."""
    return normalised(_train_split(_given(source), images, seed), normalise)


def find_recipe(name: str) -> Recipe:
    """A recipe by name, from a TOML file, or from a Python file that may define pieces of its own."""
    if ".py:" in name:
        return from_user_file(name, Recipe, "an ftbc.Recipe")
    return read_recipe(name) if name.endswith(".toml") else recipe(name)


def rounded(snn: SpikingNetwork, images: Images) -> SpikingNetwork:
    """The network in whole numbers, whose scales come from a few of the calibration images."""
    few = images.take(min(64, len(images))).tensor()
    return snn.rounded(few.to(next(snn.graph.parameters()).device))


def refuse_beside_snn(context: typer.Context, *options: str) -> None:
    """Refuse options of a conversion where a saved network is measured, which was converted with its own."""
    given = [name for name in options if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"]
    if given:
        listed = ", ".join(f"--{name}" for name in given)
        raise InputError(f"--snn names a network that is converted already: leave out {listed}")


def find_steps(steps: str) -> list[int]:
    """Several numbers of time steps from one option."""
    parts = list(dict.fromkeys(part.strip() for part in steps.split(",")))
    if not all(part.isdecimal() and part.isascii() and 1 <= int(part) <= MOST_STEPS for part in parts):
        raise InputError(
            f"--steps {steps}: give whole numbers from 1 to {MOST_STEPS:,} with commas between, such as 1,2,4,8"
        )
    return [int(part) for part in parts]


def typed() -> str:
    """What the user typed, for the record."""
    return shlex.join(["ftbc", *sys.argv[1:]])


def write_json(path: Path | None, content: Any) -> None:
    """Write a result for programs, if a path was given."""
    if path is not None:
        with replacing(path) as file:
            file.write((json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def _training_data(source: str | None, calibration: str | None) -> str:
    if calibration is None and source is not None and Path(source).expanduser().is_file():
        raise InputError(f"'{source}' is one file: give training images to calibrate on with --calibration")
    return calibration or _given(source)


def _train_split(source: str, images: int, seed: int) -> Images:
    if source == USUAL_DATA:
        calibration, _ = data.load(source)
        if images > len(calibration):
            raise InputError(
                f"--images {images}: {USUAL_DATA} has {len(calibration)} training images; give fewer, or --data"
            )
        return calibration.subset(draw_balanced(calibration.labels, images, seed))
    return data.read(source, "train", limit=images, seed=seed)


def _as_asked(images: Images, mirrored: bool) -> Images:
    """Images and, if wanted, their mirror images."""
    _require_room(len(images), mirrored)
    return images.with_mirrored() if mirrored else images


def _require_room(images: int, mirrored: bool) -> None:
    """All images that were asked for will be used, or none is taken."""
    if images * (1 + mirrored) > MOST_IMAGES:
        typed, most = f"--images {images}{' with --mirrored' * mirrored}", MOST_IMAGES // (1 + mirrored)
        raise InputError(f"{typed}: a calibration takes {MOST_IMAGES} images at most; give --images {most}")


def normalised(images: Images, normalise: str | None) -> Images:
    """Images under a normalisation by name, if one is given."""
    if normalise is None:
        return images
    if normalise not in data.NORMALISATIONS:
        raise InputError(f"no normalisation '{normalise}': choose one of {', '.join(data.NORMALISATIONS)}")
    return images.with_normalise(data.NORMALISATIONS[normalise])
