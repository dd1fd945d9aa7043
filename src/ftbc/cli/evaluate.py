"""`ftbc evaluate`."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Annotated

import typer

import ftbc
from ftbc.atomic import require_writable
from ftbc.cli.options import (
    CalibrationData,
    Classes,
    Data,
    Engine,
    Images_,
    Json,
    Model,
    Normalisation,
    Rounded,
    Seed,
    TestImages,
    Weights,
    find_calibration,
    find_model,
    find_recipe,
    find_steps,
    find_test,
    rounded,
    write_json,
)
from ftbc.cli.progress import progress_bar
from ftbc.errors import InputError, RecipeError
from ftbc.measure.inside import look_inside
from ftbc.report.table import accuracy_table, energy_table, error_table
from ftbc.simulate import require_engine

_LOOKED_INTO = 32
"""Images on which the errors of layers are measured."""


def evaluate(
    model: Model,
    snn: Annotated[Path | None, typer.Option(help="Measure this saved spiking network, instead of converting")] = None,
    weights: Weights = None,
    classes: Classes = None,
    data: Data = None,
    calibration: CalibrationData = None,
    normalise: Normalisation = None,
    images: Images_ = 256,
    test_images: TestImages = None,
    steps: Annotated[str, typer.Option(help="Time steps, several with commas: each T gets its own calibration")] = "8",
    recipe: Annotated[str, typer.Option(help="Methods by name, several with commas, or .toml files")] = "ftbc",
    stop: Annotated[float | None, typer.Option(help="Also show what stopping at this confidence does: 0.99")] = None,
    engine: Engine = "layerwise",
    whole: Rounded = False,
    layers: Annotated[bool, typer.Option(help="Also show firing rates and errors of each layer")] = False,
    energy: Annotated[bool, typer.Option(help="Also show the energy under every model, at each step")] = False,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Measure accuracy at each time step, beside the network it came from.

    Example: `ftbc evaluate resnet20-cifar10 --recipe mean-square,ftbc --steps 1,2,4,8`
    """
    require_writable(json)
    require_engine(engine)
    if snn is not None and whole:
        raise InputError("--rounded belongs to the conversion: use ftbc convert --rounded, then measure its file")
    methods, times, rule = [find_recipe(name) for name in recipe.split(",")], find_steps(steps), _rule(stop)
    network = find_model(model, weights, classes)
    test = find_test(data, normalise, test_images, seed)
    saved = None if snn is None else ftbc.load(snn)
    chosen = None
    if saved is None:
        chosen = find_calibration(data, calibration, normalise, images, seed).with_normalise(test.normalise)
    rows = []
    for method, t in itertools.product(methods, times) if saved is None else [(None, 0)]:
        with progress_bar() as progress:
            begun = time.perf_counter()
            spiking = saved or ftbc.convert(network, chosen, t, method, seed=seed, progress=progress)  # type: ignore
            spiking = rounded(spiking, chosen) if whole and chosen is not None else spiking
            seconds = time.perf_counter() - begun
            result = ftbc.evaluate(spiking, test, reference=network, stop=rule, engine=engine, progress=progress)
        origin = f"from {snn}" if chosen is None else f"{len(chosen)} calibration images, seed {seed}"
        typer.echo(f"{spiking.recipe.name}, T = {spiking.steps}, {origin}\n{result}\n")
        if energy:
            typer.echo(f"{energy_table(result)}\n")
        errors = {}
        if layers:
            inside = look_inside(spiking, test.take(min(_LOOKED_INTO, len(test))).tensor(), network)
            typer.echo(f"in percent, on {inside.images} images:\n{error_table(inside.layers)}\n")
            errors = {layer.name: layer.split.to_dict() for layer in inside.layers if layer.split is not None}
        rows.append(
            {
                "recipe": spiking.recipe.to_dict(),
                "steps": spiking.steps,
                "rounded": whole,
                "engine": engine,
                "seed": seed,
                "calibration_images": None if chosen is None else len(chosen),
                "conversion_seconds": None if chosen is None else seconds,
                **result.to_dict(),
                **({"errors": errors} if layers else {}),
                "energies": result.energies(),
                "reference_energies": result.reference_energies(),
            }
        )
    if len(rows) > 1:
        columns = {
            method.name: {row["steps"]: row["accuracy"][-1] for row in rows if row["recipe"]["name"] == method.name}
            for method in methods
        }
        typer.echo("Each T with a calibration of its own:")
        typer.echo(accuracy_table(times, columns, rows[0]["reference_accuracy"]))
    write_json(json, {"model": model, "data": test.name, "results": rows})


def _rule(stop: float | None) -> ftbc.Confidence | None:
    try:
        return None if stop is None else ftbc.Confidence(stop)
    except RecipeError:
        raise InputError(f"--stop {stop:g}: give a probability above 0 and below 1, such as 0.99") from None
