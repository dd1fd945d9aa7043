"""`ftbc evaluate`."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from torch import nn

import ftbc
from ftbc.calibration_data import placed
from ftbc.cli.options import (
    CalibrationData,
    Classes,
    Data,
    Device,
    Engine,
    Images_,
    Json,
    Mirrored,
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
    refuse_beside_snn,
    rounded,
    typed,
    write_json,
)
from ftbc.cli.outputs import require_outputs
from ftbc.cli.progress import progress_bar
from ftbc.data import Images
from ftbc.errors import FtbcError, InputError, RecipeError
from ftbc.measure.inside import look_inside
from ftbc.measure.stages import Stage, stages
from ftbc.processes import Team, leads, team
from ftbc.progress import Progress
from ftbc.protocol.fingerprint import of_bytes
from ftbc.protocol.kept_evaluation import KeptEvaluations
from ftbc.protocol.plan import methods_of
from ftbc.report.table import accuracy_table, energy_table, error_table, piece_table
from ftbc.simulate import require_engine

_LOOKED_INTO = 32
"""Images on which the errors of layers are measured."""


def evaluate(
    context: typer.Context,
    model: Model,
    snn: Annotated[Path | None, typer.Option(help="Measure this saved spiking network, instead of converting")] = None,
    weights: Weights = None,
    classes: Classes = None,
    data: Data = None,
    calibration: CalibrationData = None,
    normalise: Normalisation = None,
    images: Images_ = 256,
    mirrored: Mirrored = False,
    test_images: TestImages = None,
    steps: Annotated[str, typer.Option(help="Time steps, several with commas: each T gets its own calibration")] = "8",
    recipe: Annotated[
        str, typer.Option(help="Recipes, with commas: names (see: ftbc methods), .toml files, or file.py:recipe")
    ] = "ftbc",
    stop: Annotated[float | None, typer.Option(help="Also show what stopping at this confidence does: 0.99")] = None,
    engine: Engine = "layerwise",
    whole: Rounded = False,
    layers: Annotated[bool, typer.Option(help="Also show firing rates and errors of each layer")] = False,
    pieces: Annotated[
        bool, typer.Option(help="Also show what each piece of a recipe removes; converts once for each")
    ] = False,
    energy: Annotated[bool, typer.Option(help="Also show the energy under every model, at each step")] = False,
    results: Annotated[
        Path | None, typer.Option(help="Folder that keeps networks and counts: run again after a kill, it goes on")
    ] = None,
    device: Device = "cpu",
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Measure accuracy at each time step, beside the network it came from, and the error of its outputs.

    The error is the mean square error of its outputs over their variance: 0 is equal, 1 no better than a constant.
    It is all that is shown of a network that is no classifier, such as one that gives a map or a number.

    In several processes, each with a part of the images: `torchrun --nproc-per-node 2 -m ftbc evaluate ...`

    Example: `ftbc evaluate resnet20-cifar10 --recipe mean-square,ftbc --steps 1,2,4,8`
    """
    if leads():  # others may be on machines without that folder
        require_outputs(context, "json")
    require_engine(engine)
    if snn is not None and whole:
        raise InputError("--rounded belongs to the conversion: use ftbc convert --rounded, then measure its file")
    if snn is not None and pieces:
        raise InputError("--pieces converts with one piece of a recipe after another: leave --snn out")
    if snn is not None:
        refuse_beside_snn(context, "steps", "recipe", "images", "mirrored", "calibration")
    methods, times = methods_of([find_recipe(name) for name in recipe.split(",")]), find_steps(steps)
    rule = _rule(stop)
    network = find_model(model, weights, classes)
    test = find_test(data, normalise, test_images, seed)
    saved = None if snn is None else ftbc.load(snn)
    chosen = None
    if saved is None:
        chosen = find_calibration(data, calibration, normalise, images, seed, mirrored).with_normalise(test.normalise)
    rows: list[dict[str, Any]] = []
    with team(device) as own, _told_what_is_kept(results):
        network = network.to(own.device)
        few = test.take(min(_LOOKED_INTO, len(test))).tensor().to(own.device)
        kept = KeptEvaluations(results, network, test, typed(), own)
        for method, t in itertools.product(methods, times) if chosen is not None else [(None, 0)]:
            with progress_bar(shown=own.leads) as progress:
                if saved is not None:
                    assert snn is not None
                    spiking, seconds, key = saved.to(own.device), None, {"file": of_bytes(snn.read_bytes())}
                else:
                    assert chosen is not None and method is not None
                    make = functools.partial(_convert, network, chosen, t, method, seed, whole, progress, own)
                    spiking, seconds, key = kept.network(chosen, method, t, whole, seed, make)
                counts = kept.counts(key, engine=engine, stop=stop)
                shown = test if _classifies(spiking) or rule is not None else (x for x, _ in test)
                result = ftbc.evaluate(
                    spiking, shown, network, stop=rule, engine=engine, progress=progress, team=own, kept=counts
                )
                course: list[Stage] = []
                if pieces and chosen is not None and method is not None:
                    done = None if whole else spiking
                    given = placed(chosen, own)
                    course = list(
                        stages(network, given, few, t, method, seed=seed, progress=progress, team=own, whole=done)
                    )
            if not own.leads:
                continue
            origin = f"from {snn}" if chosen is None else f"{len(chosen)} calibration images, seed {seed}"
            typer.echo(f"{spiking.recipe.name}, T = {spiking.steps}, {origin}\n{result}\n")
            if energy:
                typer.echo(f"{energy_table(result)}\n")
            errors = {}
            if layers:
                inside = look_inside(spiking, few, network)
                typer.echo(f"in percent, on {inside.images} images:\n{error_table(inside.layers)}\n")
                errors = {layer.name: layer.split.to_dict() for layer in inside.layers if layer.split is not None}
            if course:
                typer.echo(f"after each piece, in percent:\n{piece_table(course)}\n")
            rows.append(
                {
                    "recipe": spiking.recipe.to_dict(),
                    "steps": spiking.steps,
                    "rounded": whole,
                    "engine": engine,
                    "seed": seed,
                    "calibration_images": None if chosen is None else len(chosen),
                    "conversion_seconds": seconds,
                    **result.to_dict(),
                    **({"errors": errors} if layers else {}),
                    **({"pieces": [stage.to_dict() for stage in course]} if pieces else {}),
                    "energies": result.energies(),
                    "reference_energies": result.reference_energies(),
                }
            )
    if not own.leads:
        return
    if len(rows) > 1 and rows[0]["accuracy"]:
        columns = {
            method.name: {row["steps"]: row["accuracy"][-1] for row in rows if row["recipe"]["name"] == method.name}
            for method in methods
        }
        typer.echo("Each T with a calibration of its own:")
        typer.echo(accuracy_table(times, columns, rows[0]["reference_accuracy"]))
    write_json(json, {"model": model, "data": test.name, "results": rows})


def _classifies(snn: ftbc.SpikingNetwork) -> bool:
    """Whether its outputs are scores of classes, so that labels have a meaning."""
    shape = snn.graph.shape(snn.graph.output)
    return len(shape) == 1 and shape[0] > 1


def _convert(
    network: nn.Module,
    images: Images,
    steps: int,
    method: ftbc.Recipe,
    seed: int,
    whole: bool,
    progress: Progress,
    own: Team,
) -> ftbc.SpikingNetwork:
    given = placed(images, own)
    snn = ftbc.convert(network, given, steps, method, seed=seed, progress=progress, team=own)
    return rounded(snn, images) if whole else snn


@contextmanager
def _told_what_is_kept(results: Path | None) -> Iterator[None]:
    try:
        yield
    except FtbcError:
        raise
    except BaseException:  # an interrupt, also one that torch has swallowed and stumbled over
        if results is not None and leads():
            sys.stderr.write(f"ftbc: what is done is kept in '{results}': the same command goes on from there\n")
        raise


def _rule(stop: float | None) -> ftbc.Confidence | None:
    try:
        return None if stop is None else ftbc.Confidence(stop)
    except RecipeError:
        raise InputError(f"--stop {stop:g}: give a probability above 0 and below 1, such as 0.99") from None
