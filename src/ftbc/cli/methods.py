"""`ftbc methods`."""

from __future__ import annotations

from typing import Annotated

import typer

import ftbc
from ftbc.atomic import require_writable
from ftbc.cli.options import Json, write_json


def methods(
    name: Annotated[str | None, typer.Argument(help="Show this recipe in full, as TOML")] = None, json: Json = None
) -> None:
    """List every conversion method by name; with a name, show its settings.

    Example: `ftbc methods ftbc > my-recipe.toml`
    """
    require_writable(json)
    shown = list(ftbc.recipes().values()) if name is None else [ftbc.recipe(name)]
    for entry in shown:
        typer.echo(f"{entry.name:16} {entry.summary}" if name is None else entry.to_toml().rstrip())
    write_json(json, [entry.to_dict() for entry in shown])
