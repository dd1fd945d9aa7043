"""`ftbc search`."""

from __future__ import annotations

import csv
import io
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ftbc.atomic import replacing
from ftbc.cli.options import (
    Classes,
    Data,
    Engine,
    Images_,
    Json,
    Model,
    Normalisation,
    Seed,
    Weights,
    find_held_out,
    find_model,
    write_json,
)
from ftbc.cli.outputs import require_outputs
from ftbc.cli.progress import progress_bar
from ftbc.errors import FtbcError, MissingExtraError
from ftbc.protocol.results_folder import ResultsFolder
from ftbc.report import search_plot
from ftbc.search.space import read_space
from ftbc.search.study import Search, Trial
from ftbc.simulate import require_engine


def search(
    context: typer.Context,
    model: Model,
    space: Annotated[Path, typer.Option(help="A TOML file: a recipe, the T that count, and where settings may lie")],
    trials: Annotated[int, typer.Option(min=1, help="Stop when there are so many, of all workers together")] = 50,
    held_out: Annotated[
        int, typer.Option(min=1, help="Measure on so many training images, none to calibrate on")
    ] = 256,
    seeds: Annotated[int, typer.Option(min=1, help="Draws of calibration images for each trial")] = 1,
    weights: Weights = None,
    classes: Classes = None,
    data: Data = None,
    normalise: Normalisation = None,
    images: Images_ = 256,
    engine: Engine = "layerwise",
    results: Annotated[Path, typer.Option(help="Folder for trials, measurements, best.toml and pictures")] = Path(
        "search"
    ),
    storage: Annotated[
        str | None,
        typer.Option(help="An address of Optuna's, such as sqlite:///search.db; else a journal in --results"),
    ] = None,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Search for the settings of a recipe that are best on held-out training images; test images are never read.

    Run the same command several times at once, also on machines that share the folder, and they share the work; after a
    kill, run it again, and it goes on. The best recipe is written to best.toml, which `ftbc convert --recipe` takes.

    Example: `ftbc search resnet20-cifar10 --space experiments/search/ftbc.toml --trials 40`
    """
    require_outputs(context, "json")
    require_engine(engine)
    wanted = read_space(space)
    network = find_model(model, weights, classes)
    divided = find_held_out(data, normalise, images, held_out, seed)
    folder = ResultsFolder(results)
    try:
        with progress_bar(share="searching") as progress:
            found = Search(network, wanted, divided, folder, seeds, seed, engine, storage, progress)
            found.run(trials)
    except FtbcError:
        raise
    except BaseException:  # an interrupt, also one that torch has swallowed and stumbled over
        sys.stderr.write(f"ftbc: all trials that ended are kept in '{results}': the same command goes on from there\n")
        raise
    recipe, accuracy = found.best()
    found.write_best(recipe)
    ended, shares = found.trials(), found.importance()
    pictures = _draw(results, ended, shares, f"{model}: search from {wanted.base.name}")
    _write_trials(results / "trials.csv", ended)
    result = {"best": recipe.to_dict(), "accuracy": accuracy, "importance": shares}
    write_json(
        json, {"model": model, "data": divided.pool.name, **result, "trials": [asdict(trial) for trial in ended]}
    )
    for trial in sorted((trial for trial in ended if trial.value is not None), key=lambda trial: -(trial.value or 0))[
        :5
    ]:
        typer.echo(f"{trial.value:7.2f}%  {_settings(trial)}")
    typer.echo(
        f"\n{len(ended)} trials on {held_out} held-out training images; the best, {accuracy:.2f}%, is in "
        f"{results / 'best.toml'}{pictures}"
    )


def _settings(trial: Trial) -> str:
    return ", ".join(f"{name} = {value:.4g}" if type(value) is float else f"{name} = {value}"
                     for name, value in trial.settings.items())  # fmt: skip


def _write_trials(path: Path, trials: list[Trial]) -> None:
    text = io.StringIO(newline="")
    names = list(dict.fromkeys(name for trial in trials for name in trial.settings))
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["trial", "accuracy", *names, "reason"])
    for trial in trials:
        rows.writerow([trial.number, trial.value, *(trial.settings.get(name) for name in names), trial.reason])
    with replacing(path) as file:
        file.write(text.getvalue().encode())


def _draw(results: Path, trials: list[Trial], shares: dict[str, float], title: str) -> str:
    try:
        search_plot.history(results / "history.png", [(trial.number, trial.value) for trial in trials], title)
        if shares:
            search_plot.importance(results / "importance.png", shares, title)
    except MissingExtraError as error:
        return f" (no pictures: {error})"
    return ", the pictures beside it"
