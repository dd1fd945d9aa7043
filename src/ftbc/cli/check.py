"""`ftbc check`."""

from __future__ import annotations

from dataclasses import asdict

import typer

import ftbc
from ftbc.cli.options import Classes, Data, Json, Model, Normalisation, Seed, Weights, find_data, find_model, write_json


def check(
    model: Model,
    weights: Weights = None,
    classes: Classes = None,
    data: Data = "cifar10-sample",
    normalise: Normalisation = None,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Say what converts and what does not, layer by layer, before any work is done.

    Example: `ftbc check my_model.py:make_model --data cifar10-sample`
    """
    network = find_model(model, weights, classes)
    calibration, _ = find_data(data, None, normalise, 8, None, seed)
    report = ftbc.check(network, calibration)
    typer.echo(str(report))
    write_json(json, {**asdict(report), "ok": report.ok})
    if not report.ok:
        raise typer.Exit(2)
