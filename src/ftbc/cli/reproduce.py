"""`ftbc reproduce`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ftbc.atomic import make_folder
from ftbc.cli.options import Device, Engine, Json, typed, write_json
from ftbc.cli.outputs import require_outputs
from ftbc.cli.progress import progress_bar
from ftbc.data.locate import SAMPLES
from ftbc.errors import FtbcError, InputError
from ftbc.processes import leads, team
from ftbc.report.plot import require_plot
from ftbc.reproduce.duration import in_words
from ftbc.reproduce.experiment import DATA, SCALES
from ftbc.reproduce.files import experiments, find_experiment
from ftbc.reproduce.listing import Standing, standings
from ftbc.reproduce.material import Material
from ftbc.reproduce.result import Reproduction
from ftbc.reproduce.run import reproduce as run
from ftbc.reproduce.setting import Setting, scale_of, usual_engine
from ftbc.reproduce.written import write
from ftbc.simulate import require_engine

LIST = "list"
MEASUREMENTS = "measurements"


def reproduce(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help=f"A table or figure of the paper by name, '{LIST}', or a .toml file")],
    scale: Annotated[
        str, typer.Option(help="full: the settings of the paper; small: what one machine can do")
    ] = "full",
    data: Annotated[
        list[str] | None,
        typer.Option(help="NAME=PATH of cifar10, cifar100, imagenet, NAME-train; or a folder with such folders"),
    ] = None,
    weights: Annotated[Path | None, typer.Option(help="Folder with weights that are not in the zoo")] = None,
    to: Annotated[Path, typer.Option(help="Folder for the files")] = Path("reproduced"),
    results: Annotated[
        Path | None, typer.Option(help=f"Folder that keeps every measurement; else {MEASUREMENTS} in --to")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many draws of calibration images")] = None,
    test_images: Annotated[int | None, typer.Option(min=1, help="Measure on so many test images at every T")] = None,
    most_steps: Annotated[int | None, typer.Option(min=1, help="Leave out larger T")] = None,
    engine: Engine = "",
    device: Device = "cpu",
    only_kept: Annotated[bool, typer.Option("--only-kept", help="Measure nothing: show what is kept")] = False,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="The first of the seeds")] = 0,
    json: Json = None,
) -> None:
    """Make a table or figure of the paper anew, and put the paper's figures and ours side by side.

    Writes NAME.csv, NAME.tex, NAME.png, NAME.svg and NAME.md. `ftbc reproduce list` tells what each needs, what of it
    is there, and how long it takes here. Every measurement is kept: after a kill the same command goes on. In several
    processes, which share the measurements of a table: `torchrun --nproc-per-node 2 -m ftbc reproduce ...`

    Example: `ftbc reproduce cifar10 --scale small --data cifar10=data/cifar10`
    """
    if leads():  # others may be on machines without these folders
        require_outputs(context, "json")
    places = find_places(data or [])
    if weights is not None and not weights.is_dir():
        raise InputError(f"--weights {weights} is not a folder: name the one that holds the files")
    if name == LIST:
        if not leads():
            return
        found = list(standings(experiments().values(), lambda at: Material(places, weights, at == "small")))
        typer.echo("\n".join(_listed(found)))
        plain = [{**asdict(each), "experiment": each.experiment.name} for each in found]
        write_json(json, plain)
        return
    experiment = find_experiment(name)
    chosen = scale_of(experiment, scale, seeds, test_images, most_steps)
    engine = engine or usual_engine()
    require_engine(engine)
    require_plot(to / f"{experiment.name}.png")
    if leads():
        make_folder(to)
    folder = results or to / MEASUREMENTS
    setting = Setting(
        experiment, scale, Material(places, weights, scale == "small"), folder, chosen, engine, seed, not only_kept,
        typed(),
    )  # fmt: skip
    try:
        with team(device) as own, progress_bar(shown=own.leads, share="comparing") as progress:
            setting.progress, setting.team = progress, own
            made = run(setting)
    except FtbcError:
        raise
    except BaseException:
        if leads():
            sys.stderr.write(f"ftbc: what was measured is kept in '{folder}': the same command goes on from there\n")
        raise
    if made is None:
        return
    paths = write(made, to)
    write_json(json, _plain(made))
    typer.echo(_summary(made))
    typer.echo(f"{made.measured} measured now, {made.kept} taken from {folder}")
    typer.echo(f"written: {', '.join(str(path) for path in paths)}")


def find_places(given: Sequence[str]) -> dict[str, str]:
    """Places of data sets by name, of what a user typed."""
    places: dict[str, str] = {}
    for entry in given:
        name, sign, path = entry.partition("=")
        if not sign:
            inside = {known: str(Path(entry).expanduser() / known) for known in DATA}
            found = {known: place for known, place in inside.items() if Path(place).is_dir()}
            if not found:
                raise InputError(f"--data {entry} holds no folder {', '.join(DATA)}: give NAME=PATH")
            places |= found
        elif path not in SAMPLES and not Path(path).expanduser().exists():
            raise InputError(f"--data {entry}: '{path}' does not exist; check the path")
        else:
            places[name] = path
    return places


def _listed(found: Sequence[Standing]) -> list[str]:
    lines: list[str] = []
    for each in found:
        if each.scale == SCALES[0]:
            lines += [*([""] if lines else []), f"{each.experiment.name}: {each.experiment.heading}"]
        state = "ready" if not each.lacking else "in part" if each.runs else "not yet"
        duration = in_words(each.seconds if each.runs else each.whole)
        lines.append(f"  {each.scale:5}  {state:7}  {duration}{'' if each.runs else ' if all were there'}")
        if each.networks:
            lines.append(f"         there: {', '.join((*each.networks, *each.data))}")
        lines += [f"         lacks: {text}" for text in each.lacking]
    return lines


def _summary(found: Reproduction) -> str:
    experiment = found.experiment
    lines = [f"{experiment.heading}, scale {found.scale}"]
    if found.figure is not None:
        lines += found.figure.said
    for line in found.lines:
        if line.rows:
            cells = [f"T={t} {line.here(t):.2f}{_against(line.difference(t))}" for t in line.rows]
            lines.append(f"  {line.part.title}, {line.paper.method}: ANN {line.ann:.2f}; {', '.join(cells)}")
    lines += [f"  not measured: {', '.join(methods)}: {reason}" for reason, methods in found.lacking().items()]
    return "\n".join(lines)


def _against(difference: float | None) -> str:
    return "" if difference is None else f" ({difference:+.2f})"


def _plain(found: Reproduction) -> dict[str, object]:
    figure = None if found.figure is None else {"rows": list(found.figure.rows), "said": list(found.figure.said)}
    lines = [
        {
            "part": line.part.title, "method": line.paper.method, "network": line.network, "data": line.data,
            "paper": dict(line.paper.paper), "paper_ann": line.paper.ann, "ann": line.ann, "reason": line.reason,
            "rows": [asdict(row) for row in line.rows.values()],
        }
        for line in found.lines
    ]  # fmt: skip
    return {
        "experiment": found.experiment.name, "source": found.experiment.source, "scale": found.scale,
        "made": dict(found.made), "lines": lines, "figure": figure,
    }  # fmt: skip
