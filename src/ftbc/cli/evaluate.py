"""`ftbc evaluate`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

import ftbc
from ftbc.cli.options import (
    CalibrationData, Classes, Data, Images_, Json, Model, Normalisation, Seed, TestImages, Weights,
    find_data, find_model, find_recipe, write_json,
)  # fmt: skip
from ftbc.cli.progress import progress_bar
from ftbc.errors import InputError


def evaluate(
    model: Model,
    snn: Annotated[Path | None, typer.Option(help="Measure this saved spiking network, instead of converting")] = None,
    weights: Weights = None,
    classes: Classes = None,
    data: Data = "cifar10-sample",
    calibration: CalibrationData = None,
    normalise: Normalisation = None,
    images: Images_ = 256,
    test_images: TestImages = None,
    steps: Annotated[str, typer.Option(help="Time steps, several with commas: each T gets its own calibration")] = "8",
    recipe: Annotated[str, typer.Option(help="Methods by name, several with commas, or .toml files")] = "ftbc",
    layers: Annotated[bool, typer.Option(help="Also show the firing rate of each layer")] = False,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Measure accuracy at each time step, beside the network it came from.

    Example: `ftbc evaluate resnet20-cifar10 --recipe mean-square,ftbc --steps 1,2,4,8`
    """
    network = find_model(model, weights, classes)
    chosen, test = find_data(data, calibration, normalise, images, test_images, seed)
    saved = ftbc.load(snn) if snn is not None else None
    methods = [] if saved else [find_recipe(name) for name in recipe.split(",")]
    rows = []
    with progress_bar() as progress:
        for method in methods or [None]:
            for t in _numbers(steps) if method else [0]:
                begun = time.perf_counter()
                spiking = saved or ftbc.convert(network, chosen, t, method, seed=seed, progress=progress)
                seconds = time.perf_counter() - begun
                result = ftbc.evaluate(spiking, test, reference=network, progress=progress)
                typer.echo(f"{spiking.recipe.name}, T = {spiking.steps}, {len(chosen)} calibration images, seed {seed}")
                typer.echo(f"{result}\n")
                if layers:
                    for name, rate in result.firing_rate.items():
                        typer.echo(f"{name:24} {rate:.4f}")
                rows.append(
                    {
                        "recipe": spiking.recipe.to_dict(),
                        "steps": spiking.steps,
                        "seed": seed,
                        "calibration_images": len(chosen),
                        "conversion_seconds": seconds,
                        **result.to_dict(),
                    }
                )
    write_json(json, {"model": model, "data": test.name, "results": rows})


def _numbers(steps: str) -> list[int]:
    try:
        return [int(part) for part in steps.split(",")]
    except ValueError:
        raise InputError(f"--steps {steps}: give whole numbers with commas between, such as 1,2,4,8") from None
