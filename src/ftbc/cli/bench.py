"""`ftbc bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

import ftbc
from ftbc.cli.options import (
    CalibrationData,
    Classes,
    Data,
    Images_,
    Json,
    Model,
    Normalisation,
    RecipeName,
    Seed,
    Weights,
    find_calibration,
    find_model,
    find_recipe,
    find_steps,
    refuse_beside_snn,
    write_json,
)
from ftbc.cli.outputs import require_outputs
from ftbc.cli.progress import progress_bar
from ftbc.errors import InputError, MissingExtraError
from ftbc.measure.machine import machine
from ftbc.measure.speed import ENGINES, Bench, Engine, Speed
from ftbc.report.table import speed_table


def bench(
    context: typer.Context,
    model: Model,
    snn: Annotated[Path | None, typer.Option(help="Measure this saved spiking network, instead of converting")] = None,
    weights: Weights = None,
    classes: Classes = None,
    data: Data = None,
    calibration: CalibrationData = None,
    normalise: Normalisation = None,
    images: Images_ = 256,
    steps: Annotated[str, typer.Option(help="Time steps, several with commas: each T gets its own calibration")] = "8",
    recipe: RecipeName = "ftbc",
    engines: Annotated[str | None, typer.Option(help=f"Several with commas, of {', '.join(ENGINES)}; else all")] = None,
    batch: Annotated[int, typer.Option(min=1, help="How many images the engines run at once")] = 32,
    threads: Annotated[str, typer.Option(help="Numbers of threads, with commas; 'all' is all that torch uses")] = (
        "1,all"
    ),
    repeats: Annotated[int, typer.Option(min=1, help="How often everything is measured, in turn")] = 5,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Measure how fast each engine runs your network on this machine, beside the network it came from.

    Every figure is a ratio: the median of the rounds, and in brackets the smallest and the largest. The network it
    came from has its BatchNorm folded and the batch and layout that suit it best; one image at a time, it has one, too.

    Example: `ftbc bench resnet20-cifar10 --steps 4,8`
    """
    require_outputs(context, "json")
    if snn is not None:
        refuse_beside_snn(context, "steps", "recipe")
    method, times = find_recipe(recipe), find_steps(steps)
    chosen, left_out = _engines(engines)
    counts = _threads(threads)
    network = find_model(model, weights, classes)
    saved = None if snn is None else ftbc.load(snn)
    pictures = find_calibration(data, calibration, normalise, max(images, batch), seed)
    few = pictures.take(min(images, len(pictures)))
    rows: list[Speed] = []
    with progress_bar() as progress:
        measured = Bench(network, pictures.tensor(), repeats=repeats, progress=progress)
        for t in times if saved is None else [saved.steps]:
            spiking = saved or ftbc.convert(network, few, t, method, seed=seed, progress=progress)
            for count in counts:
                rows += measured.compare(spiking, chosen, batches=(batch, 1), threads=count)
    write_json(
        json,
        {
            "model": model,
            "recipe": (saved.recipe if saved else method).to_dict(),
            "seed": seed,
            "calibration_images": None if saved else len(few),
            "machine": machine(),
            "rows": [row.to_dict() for row in rows],
        },
    )
    typer.echo(_heading(model, str(snn) if saved else f"recipe {method.name}", rows))
    typer.echo(speed_table(rows))
    for name in left_out:
        typer.echo(f"{name} was left out: {MissingExtraError('numba', 'the event engine', 'fast')}")


def _engines(names: str | None) -> tuple[list[Engine], list[str]]:
    """The engines that were asked for, or all that this installation has and the names of the others."""
    if names is None:
        return [e for e in ENGINES.values() if e.usable], [e.name for e in ENGINES.values() if not e.usable]
    for name in names.split(","):
        if name not in ENGINES:
            raise InputError(f"there is no engine '{name}': choose from {', '.join(ENGINES)}")
        if not ENGINES[name].usable:
            raise MissingExtraError("numba", "the event engine", "fast")
    return [ENGINES[name] for name in dict.fromkeys(names.split(","))], []


def _threads(text: str) -> list[int]:
    try:
        counts = [torch.get_num_threads() if part == "all" else int(part) for part in text.split(",")]
    except ValueError:
        counts = [0]
    if min(counts) < 1:
        raise InputError(f"--threads {text}: give whole numbers from 1, or 'all', with commas between, such as 1,all")
    return list(dict.fromkeys(counts))


def _heading(model: str, origin: str, rows: list[Speed]) -> str:
    facts = machine()
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    batch = max(row.batch for row in rows)
    spikes = {row.steps: f"{100 * row.density:.1f} % at T = {row.steps}" for row in rows}
    anns: dict[int, set[str]] = {row.threads: set() for row in rows}
    for row in rows:
        if row.batch == batch:
            anns[row.threads].add(f"batch {row.ann.batch}, {row.ann.layout}")
    best = "; ".join(f"{' or '.join(sorted(found))} (threads: {count})" for count, found in anns.items())
    return (
        f"{model}, {origin}, {batch} images at once, median of {rows[0].repeats} rounds (smallest..largest)\n"
        f"{facts['cpu']}, {facts['cores']} cores; {versions}\n"
        f"spikes per neuron and step: {', '.join(spikes.values())}\n"
        f"the ANN, BatchNorm folded, at its best: {best}\n"
    )
