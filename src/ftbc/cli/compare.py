"""`ftbc compare`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

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
    TestImages,
    Weights,
    find_draws,
    find_held_out,
    find_model,
    find_recipe,
    find_steps,
    find_test,
    require_classifier,
    typed,
)
from ftbc.cli.outputs import require_outputs
from ftbc.cli.progress import progress_bar
from ftbc.errors import FtbcError, InputError
from ftbc.processes import leads, team
from ftbc.protocol.plan import PROTOCOLS, plan_of
from ftbc.protocol.results_folder import ResultsFolder
from ftbc.protocol.shards import Shard
from ftbc.report.comparison import as_text
from ftbc.report.plot import require_plot
from ftbc.simulate import require_engine


def compare(
    context: typer.Context,
    model: Model,
    recipes: Annotated[
        str, typer.Option(help="Recipes, with commas: names (see: ftbc methods), .toml files, or file.py:recipe")
    ] = "mean-square,ftbc",
    steps: Annotated[str, typer.Option(help="Time steps T, with commas")] = "1,2,4,8,16,32",
    protocol: Annotated[
        str, typer.Option(help="; ".join(f"{name}: {meaning}" for name, meaning in PROTOCOLS.items()))
    ] = "per-t",
    seeds: Annotated[int, typer.Option(min=1, help="How many draws of calibration images")] = 3,
    weights: Weights = None,
    classes: Classes = None,
    data: Data = None,
    calibration: CalibrationData = None,
    normalise: Normalisation = None,
    images: Images_ = 256,
    mirrored: Mirrored = False,
    test_images: TestImages = None,
    held_out: Annotated[
        int | None,
        typer.Option(
            min=1, help="Measure on this many training images, set aside from calibration: to choose settings by"
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Number of test images above --full-up-to")] = None,
    full_up_to: Annotated[int | None, typer.Option(min=0, help="--limit holds only above this T")] = None,
    engine: Engine = "layerwise",
    results: Annotated[Path, typer.Option(help="Folder that keeps every measurement")] = Path("comparison"),
    only_kept: Annotated[bool, typer.Option("--only-kept", help="Measure nothing: show what --results holds")] = False,
    csv: Annotated[Path | None, typer.Option(help="Also write a line for each method and T to this file")] = None,
    latex: Annotated[Path | None, typer.Option(help="Also write the table of accuracies, with booktabs")] = None,
    plot: Annotated[Path | None, typer.Option(help="Also draw accuracy against T: .png, .svg or .pdf")] = None,
    energy_plot: Annotated[Path | None, typer.Option(help="Also draw accuracy against energy")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a page with curves and energy: .html")] = None,
    shard: Annotated[
        str | None, typer.Option(help="Measure a part of it, such as 1/3, for machines that share nothing")
    ] = None,
    merge: Annotated[
        list[Path] | None,
        typer.Option(help="The --results of a shard, once for each: put them together, measure nothing"),
    ] = None,
    device: Device = "cpu",
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="The first of the --seeds")] = 0,
    json: Json = None,
) -> None:
    """Compare methods on one network: accuracy at each T over several calibrations, and what it costs.

    Each seed draws calibration images of its own; the test images are the same for all. Every measurement is kept at
    once: run the same command again after a kill, or beside itself, and it goes on. Several processes can make each
    measurement together, `torchrun --nproc-per-node 2 -m ftbc compare ...`; machines that are not connected can
    each make a part, with `--shard 1/2` and `--shard 2/2`, and `--merge` the folders afterwards. To choose
    between settings, give --held-out: accuracy on test images by which something was chosen means nothing.

    Example: `ftbc compare resnet20-cifar10 --recipes maximum,mean-square,ftbc --steps 1,2,4,8 --latex table.tex`
    """
    if leads():  # others may be on machines without these folders
        require_outputs(context, "csv", "json", "latex", "plot", "energy_plot", "report")
    require_engine(engine)
    for drawing in (plot, energy_plot):
        if drawing is not None:
            require_plot(drawing)
    if (limit is None) != (full_up_to is None):
        raise InputError("--limit and --full-up-to belong together: so many test images above so many steps; give both")
    methods, times = [find_recipe(name) for name in recipes.split(",")], find_steps(steps)
    numbers = range(seed, seed + seeds)
    plan_of(methods, times, numbers, protocol, limit, full_up_to)  # wrong options are found before anything is read
    if held_out is not None and test_images is not None:
        raise InputError("--held-out measures on training images, --test-images on others: give one of them")
    if shard is not None and (merge or only_kept):
        raise InputError("--shard measures, --merge and --only-kept do not: give one of them")
    if shard is not None:
        Shard.of(shard)
    folder = ResultsFolder(results)
    network = find_model(model, weights, classes)
    if held_out is None:
        test = find_test(data, normalise, test_images, 0)
        draws = find_draws(data, calibration, test.normalise, images, mirrored)
    else:
        divided = find_held_out(data, normalise, images, held_out, seed, calibration, mirrored)
        test, draws = divided.held_out, divided.draw
    require_classifier(network, test)
    try:
        with team(device) as own, progress_bar(shown=own.leads, share="comparing") as progress:
            table = ftbc.compare(
                network.to(own.device), lambda seed: placed(draws(seed), own), test, methods, times,
                protocol=protocol, seeds=numbers, limit=limit, full_up_to=full_up_to, engine=engine, results=folder,
                measure=not only_kept, name=_name(model, weights), command=typed(),
                progress=progress, team=own, shard=shard, merged=merge or (),
            )  # fmt: skip
    except FtbcError:
        raise
    except BaseException:  # an interrupt, also one that torch has swallowed and stumbled over
        if leads():
            sys.stderr.write(
                f"ftbc: {len(folder.used)} measurements are kept in '{results}': the same command goes on from there, "
                "and with --only-kept it shows what there is\n"
            )
        raise
    if not own.leads:
        return
    written = (
        (csv, table.to_csv), (json, table.to_json), (latex, table.to_latex), (plot, table.plot),
        (energy_plot, table.plot_energy), (report, table.to_html),
    )  # fmt: skip
    for path, write in written:
        if path is not None:
            write(path)
    typer.echo(as_text(table, shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else None))
    typer.echo(f"\n{table.measured} measured now, {table.kept} taken from {results}")


def _name(model: str, weights: Path | None) -> str:
    return model if weights is None else f"{model} with {weights.name}"
