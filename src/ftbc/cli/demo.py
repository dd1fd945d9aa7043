"""`ftbc demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import ftbc
from ftbc.atomic import make_folder, require_writable
from ftbc.cli.options import Json, Seed, write_json
from ftbc.cli.progress import progress_bar
from ftbc.report.plot import accuracy_curves
from ftbc.simulate.event import available

STEPS = (1, 2, 4, 8, 16, 32)
NETWORK = "resnet20-cifar10"


def demo(
    to: Annotated[Path, typer.Option(help="Folder for the picture")] = Path("demo"),
    test_images: Annotated[int, typer.Option(min=10, max=1000, help="Measure on so many test images")] = 500,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Convert the shipped ResNet-20, with FTBC and without, and show its accuracy at each number of time steps.

    Needs no download: network and images are part of the package.

    Example: `ftbc demo --to demo`
    """
    make_folder(to)
    require_writable(json)
    ann = ftbc.zoo.load(NETWORK)
    calibration, test = ftbc.data.load("cifar10-sample", calibration=128, test=test_images)
    # Fewer and smaller batches than the recipe's own: a demonstration should not take long.
    quick = ftbc.recipe("ftbc", calibrate=(ftbc.FTBC(batch=32, iterations=5),))
    methods = {"without FTBC": ftbc.recipe("mean-square"), "with FTBC": quick}
    curves: dict[str, list[float]] = {label: [] for label in methods}
    reference = None
    engine = "event" if available() else "layerwise"

    typer.echo(f"{NETWORK}: {len(calibration)} unlabelled images to calibrate on, {len(test)} test images\n")
    typer.echo("".join([f"{'T':>4}", *(f"{label:>15}" for label in methods), f"{'ANN':>10}"]))
    for steps in STEPS:
        with progress_bar() as progress:
            for label, method in methods.items():
                snn = ftbc.convert(ann, calibration, steps, method, seed=seed, progress=progress)
                known = ann if reference is None else None
                result = ftbc.evaluate(snn, test, known, engine=engine, counted_images=1, progress=progress)
                reference = result.reference_accuracy if reference is None else reference
                curves[label].append(result.accuracy[-1])
        typer.echo("".join([f"{steps:4}", *(f"{c[-1]:14.1f}%" for c in curves.values()), f"{reference:9.1f}%"]))
    assert reference is not None
    picture = to / "accuracy.png"
    accuracy_curves(picture, STEPS, curves, reference, "ResNet-20 on CIFAR-10, converted for T time steps")
    typer.echo(f"\nThe curve is in {picture}")
    write_json(json, {"steps": STEPS, "accuracy": curves, "reference": reference, "images": len(test), "seed": seed})
