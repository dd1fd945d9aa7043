"""`ftbc check`."""

from __future__ import annotations

from dataclasses import asdict

import typer

import ftbc
from ftbc.atomic import require_writable
from ftbc.cli.options import (
    Classes,
    Data,
    Json,
    Model,
    Normalisation,
    Seed,
    Weights,
    find_example,
    find_model,
    write_json,
)


def check(
    model: Model,
    weights: Weights = None,
    classes: Classes = None,
    data: Data = None,
    normalise: Normalisation = None,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Say what converts and what does not, layer by layer, before any work is done.

    Example: `ftbc check my_model.py:make_model --data cifar10-sample`
    """
    require_writable(json)
    network = find_model(model, weights, classes)
    report = ftbc.check(network, find_example(data, normalise, seed))
    typer.echo(str(report))
    write_json(json, {**asdict(report), "ok": report.ok})
    if not report.ok:
        raise typer.Exit(2)
