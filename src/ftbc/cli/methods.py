"""`ftbc methods`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

import ftbc
from ftbc.atomic import require_writable
from ftbc.cli.options import Json, write_json

_COLUMNS = "{:20} {:12} {:>5}  {:9} {:7}  {}"


def methods(
    name: Annotated[str | None, typer.Argument(help="Show this recipe in full, as TOML")] = None, json: Json = None
) -> None:
    """List every conversion method by name, with what it needs; with a name, show its settings.

    spikes: of one size (binary), also negative (ternary), or of several sizes (multi-level). extra: steps before the T
    that count. gradients: whether calibration needs them. trained: whether the network must be trained for the method.

    Example: `ftbc methods ftbc > my-recipe.toml`
    """
    require_writable(json)
    shown = list(ftbc.recipes().values()) if name is None else [ftbc.recipe(name)]
    if name is None:
        typer.echo(_COLUMNS.format("method", "spikes", "extra", "gradients", "trained", ""))
    for entry in shown:
        facts = entry.facts
        needs = ("yes" if facts.gradients else "no", "yes" if facts.trained else "no")
        row = _COLUMNS.format(entry.name, facts.spikes, facts.extra_steps, *needs, entry.summary)
        typer.echo(row if name is None else entry.to_toml().rstrip())
    write_json(json, [{**entry.to_dict(), "facts": asdict(entry.facts)} for entry in shown])
