"""`ftbc convert`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import ftbc
from ftbc.calibration_data import placed
from ftbc.cli.options import (
    REPORT_IMAGES,
    CalibrationData,
    Classes,
    Data,
    Device,
    Images_,
    Json,
    Mirrored,
    Model,
    Normalisation,
    RecipeName,
    Rounded,
    Seed,
    Steps,
    Weights,
    find_calibration,
    find_model,
    find_recipe,
    find_some_test,
    require_classifier,
    rounded,
    typed,
    write_json,
)
from ftbc.cli.outputs import require_outputs
from ftbc.cli.progress import progress_bar
from ftbc.conversion_report import conversion_page
from ftbc.processes import leads, team
from ftbc.report import html


def convert(
    context: typer.Context,
    model: Model,
    to: Annotated[Path, typer.Option(help="Write the spiking network to this file")],
    weights: Weights = None,
    classes: Classes = None,
    data: Data = None,
    calibration: CalibrationData = None,
    normalise: Normalisation = None,
    images: Images_ = 256,
    mirrored: Mirrored = False,
    steps: Steps = 8,
    recipe: RecipeName = "ftbc",
    whole: Rounded = False,
    report: Annotated[
        Path | None, typer.Option(help=f"Also write a page on what it does with {REPORT_IMAGES} test images: .html")
    ] = None,
    device: Device = "cpu",
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Convert a trained network and write the spiking one to a file.

    In several processes, each with a part of the images: `torchrun --nproc-per-node 2 -m ftbc convert ...`

    Example: `ftbc convert resnet20-cifar10 --steps 8 --to resnet20.snn`
    """
    if leads():  # others may be on machines without that folder
        require_outputs(context, "to", "json", "report")
    network = find_model(model, weights, classes)
    method = find_recipe(recipe)
    chosen = find_calibration(data, calibration, normalise, images, seed, mirrored)
    test = None if report is None else find_some_test(data, normalise, seed).with_normalise(chosen.normalise)
    if test is not None:
        require_classifier(network, test)
    with team(device) as own, progress_bar(shown=own.leads) as progress:
        given = placed(chosen, own)
        snn = ftbc.convert(network.to(own.device), given, steps, method, seed=seed, progress=progress, team=own)
    if not own.leads:
        return
    network, snn = network.cpu(), snn.cpu()
    snn = rounded(snn, chosen) if whole else snn
    snn.save(to)
    write_json(json, {"steps": steps, "recipe": method.to_dict(), "layers": [asdict(row) for row in snn.layers()]})
    typer.echo(f"{'layer':24} {'shape':>14} {'threshold':>10} {'rate':>7} {'error':>7}  events")
    for row in snn.layers():
        shape = "x".join(map(str, row.shape))
        typer.echo(
            f"{row.name:24} {shape:>14} {row.threshold:10.4g} {row.firing_rate:7.3f} {row.error:7.3f}  {row.events}"
        )
    typer.echo(f"\n{len(snn.layers())} spiking layers, T = {steps}, recipe {method.name}: written to {to}")
    if report is not None and test is not None:
        with progress_bar() as progress:
            facts = {"network": model, "seed": seed, "calibration images": len(chosen)}
            page = conversion_page(network, snn, test, chosen, facts=facts, command=typed(), progress=progress)
        html.write(report, page)
        typer.echo(f"The report is in {report}")
