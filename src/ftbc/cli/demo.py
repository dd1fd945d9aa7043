"""`ftbc demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import ftbc
from ftbc.atomic import make_folder
from ftbc.cli.options import Json, Seed, typed, write_json
from ftbc.cli.outputs import require_outputs
from ftbc.cli.progress import progress_bar
from ftbc.conversion_report import subject_page
from ftbc.report import html
from ftbc.report.plot import accuracy_curves
from ftbc.report.series import Baseline, Series
from ftbc.simulate.event import available

STEPS = (1, 2, 4, 8, 16, 32)
NETWORK = "resnet20-cifar10"
SHOWN = 8
"""The report looks inside the network of the largest T up to this."""
COUNTED = 5
"""Operations are counted on so few images: a demonstration should not take long."""


def demo(
    context: typer.Context,
    to: Annotated[Path, typer.Option(help="Folder for the picture and the report")] = Path("demo"),
    test_images: Annotated[int, typer.Option(min=10, max=1000, help="Measure on so many test images")] = 500,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Convert the shipped ResNet-20, with FTBC and without, and show its accuracy at each number of time steps.

    Needs no download: network and images are part of the package.

    Example: `ftbc demo --to demo`
    """
    make_folder(to)
    require_outputs(context, "json")
    ann = ftbc.zoo.load(NETWORK)
    calibration, test = ftbc.data.load("cifar10-sample", calibration=128, test=test_images)
    # Fewer and smaller batches than the recipe's own: a demonstration should not take long.
    quick = ftbc.recipe("ftbc", calibrate=(ftbc.FTBC(batch=32, iterations=4),))
    methods = {"without FTBC": ftbc.recipe("mean-square"), "with FTBC": quick}
    curves: dict[str, list[float]] = {label: [] for label in methods}
    results: dict[str, dict[int, ftbc.Evaluation]] = {label: {} for label in methods}
    reference = subject = None
    engine = "event" if available() else "layerwise"

    typer.echo(f"{NETWORK}: {len(calibration)} unlabelled images to calibrate on, {len(test)} test images\n")
    typer.echo("".join([f"{'T':>4}", *(f"{label:>15}" for label in methods), f"{'ANN':>10}"]))
    for steps in STEPS:
        with progress_bar() as progress:
            for label, method in methods.items():
                snn = ftbc.convert(ann, calibration, steps, method, seed=seed, progress=progress)
                known = ann if reference is None else None
                result = ftbc.evaluate(snn, test, known, engine=engine, counted_images=COUNTED, progress=progress)
                results[label][steps] = result
                subject = snn if label == "with FTBC" and steps <= SHOWN else subject
                reference = result.reference_accuracy if reference is None else reference
                curves[label].append(result.accuracy[-1])
        typer.echo("".join([f"{steps:4}", *(f"{c[-1]:14.1f}%" for c in curves.values()), f"{reference:9.1f}%"]))
    assert reference is not None and subject is not None
    picture = to / "accuracy.png"
    accuracy_curves(picture, STEPS, curves, reference, "ResNet-20 on CIFAR-10, converted for T time steps")
    series = [Series.of_last_steps(label, results[label]) for label in ("with FTBC", "without FTBC")]
    first = results["without FTBC"][STEPS[0]]
    page = subject_page(
        ann, subject, test, series, [Baseline("ANN", reference, first.reference_energies())],
        title=f"{NETWORK}, with FTBC and without", per_t=True, command=typed(),
        facts={"seed": seed, "calibration images": len(calibration), "operations counted on": f"{COUNTED} images"},
    )  # fmt: skip
    html.write(to / "report.html", page)
    typer.echo(f"\nThe curve is in {picture}; what happens inside, in {to / 'report.html'}")
    write_json(json, {"steps": STEPS, "accuracy": curves, "reference": reference, "images": len(test), "seed": seed})
