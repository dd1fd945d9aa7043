"""`ftbc methods`."""

from __future__ import annotations

from typing import Annotated

import typer

import ftbc
from ftbc.cli.options import Json, write_json


def methods(
    name: Annotated[str | None, typer.Argument(help="Show this recipe in full, as TOML")] = None, json: Json = None
) -> None:
    """List every conversion method by name; with a name, show its settings.

    Example: `ftbc methods ftbc > my-recipe.toml`
    """
    if name is not None:
        typer.echo(ftbc.recipe(name).to_toml(), nl=False)
    else:
        for entry in ftbc.recipes().values():
            typer.echo(f"{entry.name:16} {entry.summary}")
    write_json(json, [entry.to_dict() for entry in ftbc.recipes().values()])
