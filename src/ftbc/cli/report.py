"""`ftbc report`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import ftbc
from ftbc.cli.options import (
    CalibrationData,
    Classes,
    Data,
    Engine,
    Images_,
    Json,
    Model,
    Normalisation,
    RecipeName,
    Seed,
    Steps,
    TestImages,
    Weights,
    find_calibration,
    find_model,
    find_recipe,
    find_test,
    refuse_beside_snn,
    require_classifier,
    typed,
    write_json,
)
from ftbc.cli.outputs import require_outputs
from ftbc.cli.progress import progress_bar
from ftbc.conversion_report import conversion_page
from ftbc.errors import InputError
from ftbc.report import html
from ftbc.simulate import require_engine


def report(
    context: typer.Context,
    model: Model,
    to: Annotated[Path, typer.Option(help="Write the page to this file")] = Path("report.html"),
    snn: Annotated[Path | None, typer.Option(help="Show this saved spiking network, instead of converting")] = None,
    weights: Weights = None,
    classes: Classes = None,
    data: Data = None,
    calibration: CalibrationData = None,
    normalise: Normalisation = None,
    images: Images_ = 256,
    test_images: TestImages = None,
    steps: Steps = 8,
    recipe: RecipeName = "ftbc",
    against: Annotated[str, typer.Option(help="Methods beside it, with commas; '' for none")] = "mean-square",
    engine: Engine = "layerwise",
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Show what a conversion does, layer by layer and step by step, in one page that needs no network.

    Accuracy at each step, energy under several models, firing rates, errors, biases, membranes, spikes of an image, and
    what the network says of images at each step.

    Example: `ftbc report resnet20-cifar10 --steps 8 --against mean-square,maximum --to report.html`
    """
    require_outputs(context, "to", "json")
    require_engine(engine)
    if snn is not None:
        refuse_beside_snn(context, "steps", "recipe")
    saved = None if snn is None else ftbc.load(snn)
    method = find_recipe(recipe) if saved is None else saved.recipe
    rivals = {rival.name: rival for rival in (find_recipe(name) for name in against.split(",") if name)}
    if method.name in rivals:
        raise InputError(f"--against {against}: '{method.name}' is the method that is shown; name others")
    network = find_model(model, weights, classes)
    test = find_test(data, normalise, test_images, seed)
    require_classifier(network, test)
    chosen = find_calibration(data, calibration, normalise, images, seed).with_normalise(test.normalise)
    with progress_bar() as progress:
        shown = saved or ftbc.convert(network, chosen, steps, method, seed=seed, progress=progress)
        others = {
            name: ftbc.convert(network, chosen, shown.steps, rival, seed=seed, progress=progress)
            for name, rival in rivals.items()
        }
        facts = {"network": model, "seed": seed, "calibration images": len(chosen)}
        page = conversion_page(
            network, shown, test, chosen, others, engine=engine, facts=facts, command=typed(),
            title=f"{model}: {shown.recipe.name}, T = {shown.steps}", progress=progress,
        )  # fmt: skip
    html.write(to, page)
    typer.echo(f"{page.summary}\nThe report is in {to}")
    written = {"series": [asdict(row) for row in page.series], "baselines": [asdict(row) for row in page.baselines]}
    write_json(json, {"model": model, "data": test.name, **written})
