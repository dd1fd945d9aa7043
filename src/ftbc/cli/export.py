"""`ftbc export nir`, `onnx`, `weights`, `verify`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from torch import Tensor

import ftbc
from ftbc.cli.options import (
    CalibrationData,
    Data,
    Json,
    Normalisation,
    Seed,
    TestImages,
    find_calibration,
    find_test,
    write_json,
)
from ftbc.cli.outputs import require_outputs
from ftbc.cli.progress import progress_bar
from ftbc.data import Images
from ftbc.errors import InputError
from ftbc.export import DIALECTS
from ftbc.export.verify import require_format

export = typer.Typer(help="Write a spiking network for other programs and chips, and verify such files.")

Network = Annotated[Path, typer.Argument(help="A spiking network, as ftbc convert writes it")]
To = Annotated[Path, typer.Option(help="Write to this file")]
CheckData = Annotated[
    str | None,
    typer.Option("--data", help="Run the file on images of this data set (as for ftbc evaluate); else on noise"),
]
_CHECKED = 16


@export.command("nir")
def write_nir(
    context: typer.Context,
    network: Network,
    to: To,
    dialect: Annotated[str, typer.Option(help=f"For which program: {', '.join(DIALECTS)}")] = "nir",
    bias: Annotated[str, typer.Option(help="b[t]: clock (exact, more input channels) or mean (lossy)")] = "clock",
    data: CheckData = None,
    normalise: Normalisation = None,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Write a NIR file (neuroir.org), read it back and run it, and say how faithful it is.

    Example: `ftbc export nir resnet20.snn --to resnet20.nir`
    """
    require_outputs(context, "to", "json")
    report = ftbc.export.nir(ftbc.load(network), to, dialect=dialect, bias=bias, images=_images(data, normalise, seed))
    write_json(json, asdict(report))
    typer.echo(str(report))


@export.command("onnx")
def write_onnx(
    context: typer.Context,
    network: Network,
    to: To,
    all_steps: Annotated[
        bool, typer.Option("--all-steps", help="All T steps in one model, instead of one step with its state")
    ] = False,
    data: CheckData = None,
    normalise: Normalisation = None,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Write an ONNX model, run it in onnxruntime, and say how faithful it is.

    Example: `ftbc export onnx resnet20.snn --to resnet20.onnx --all-steps`
    """
    require_outputs(context, "to", "json")
    report = ftbc.export.onnx(ftbc.load(network), to, all_at_once=all_steps, images=_images(data, normalise, seed))
    write_json(json, asdict(report))
    typer.echo(str(report))


@export.command("weights")
def write_weights(
    context: typer.Context,
    network: Network,
    to: Annotated[Path, typer.Option(help="The .npz file to write; the description goes beside it, as .json")],
    bits: Annotated[int, typer.Option(min=2, max=16, help="Bits of a weight, the sign included")] = 8,
    per_channel: Annotated[bool, typer.Option(help="A scale and a threshold for each channel, not layer")] = False,
    data: Data = None,
    calibration: CalibrationData = None,
    normalise: Normalisation = None,
    test_images: TestImages = None,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Write integer weights, thresholds and biases b[t] for chips, with the accuracy of the integers.

    Example: `ftbc export weights resnet20.snn --to resnet20.npz --bits 8`
    """
    require_outputs(context, "to", "json", beside=to.with_suffix(".json"))
    snn = ftbc.load(network)
    chosen = find_calibration(data, calibration, normalise, _CHECKED, seed)
    test = find_test(data, normalise, test_images, seed)
    with progress_bar() as progress:
        report = ftbc.export.weights(
            snn, to, chosen.with_normalise(test.normalise).tensor(), bits=bits, per_channel=per_channel, data=test,
            progress=progress,
        )  # fmt: skip
    write_json(json, asdict(report))
    typer.echo(str(report))


@export.command()
def verify(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A file that ftbc export wrote: .nir, .onnx or .npz")],
    network: Network,
    data: Data = None,
    normalise: Normalisation = None,
    test_images: Annotated[int, typer.Option(min=1, help="Run so many test images, or all if there are fewer")] = 200,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Read a file again, run it, and tell its accuracy, its spikes beside the network's, and what programs make of it.

    Example: `ftbc export verify resnet20.nir resnet20.snn --test-images 500`
    """
    require_outputs(context, "json")
    require_format(file)
    snn = ftbc.load(network)
    test = _some(data, normalise, test_images, seed)
    with progress_bar() as progress:
        report = ftbc.export.verify(file, snn, test, progress=progress)
    write_json(json, report.to_dict())
    typer.echo(str(report))


def _images(data: str | None, normalise: str | None, seed: int) -> Tensor | None:
    """A few images to run a file on, or None for noise."""
    return None if data is None else _some(data, normalise, _CHECKED, seed).tensor()


def _some(data: str | None, normalise: str | None, count: int, seed: int) -> Images:
    """So many test images, or all if there are fewer."""
    try:
        return find_test(data, normalise, count, seed)
    except InputError:
        return find_test(data, normalise, None, seed)
