"""`ftbc check`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

import ftbc
from ftbc.cli.options import (
    Classes,
    Data,
    Json,
    Model,
    Normalisation,
    RecipeName,
    Seed,
    Weights,
    find_model,
    find_recipe,
    find_some_training,
    write_json,
)
from ftbc.cli.outputs import require_outputs
from ftbc.measure.inside import look_inside
from ftbc.report.table import error_table


def check(
    context: typer.Context,
    model: Model,
    weights: Weights = None,
    classes: Classes = None,
    data: Data = None,
    normalise: Normalisation = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Also say where so many time steps lose most")] = None,
    recipe: RecipeName = "mean-square",
    images: Annotated[int, typer.Option(min=1, help="On how many training images --steps looks")] = 32,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Say what converts and what does not, layer by layer, before any work is done.

    With --steps also how much each layer loses in so many steps, and of what kind, under a quick conversion.

    Example: `ftbc check my_model.py:make_model --data cifar10-sample --steps 4`
    """
    require_outputs(context, "json")
    method = find_recipe(recipe)
    network = find_model(model, weights, classes)
    report = ftbc.check(network, find_some_training(data, normalise, 1, seed))
    typer.echo(str(report))
    content = {**asdict(report), "ok": report.ok}
    if steps is not None and report.ok:
        x = find_some_training(data, normalise, images, seed).tensor()
        inside = look_inside(ftbc.convert(network, x, steps, method, seed=seed), x, network)
        typer.echo(f"\nT = {steps}, {method.name}, in percent, on {inside.images} training images:")
        typer.echo(error_table(inside.layers))
        content["errors"] = {layer.name: layer.split.to_dict() for layer in inside.layers if layer.split is not None}
    write_json(json, content)
    if not report.ok:
        raise typer.Exit(2)
