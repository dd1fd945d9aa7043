"""`ftbc methods`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

import ftbc
from ftbc.cli.options import Json, write_json
from ftbc.cli.outputs import require_outputs

_COLUMNS = "{:20} {:12} {:>5}  {:9} {:7}  {:8}  {}"


def methods(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="Show this recipe in full, as TOML")] = None,
    json: Json = None,
) -> None:
    """List every conversion method by name, with what it needs; with a name, show its settings.

    spikes: of one size (binary), also negative (ternary), or of several sizes (multi-level); extra: steps that are
    taken before the T that count; gradients: whether calibration needs them; trained: whether the network must have
    been trained for the method; stepwise: whether it can go step by step, and so stop early.

    Example: `ftbc methods ftbc > my-recipe.toml`
    """
    require_outputs(context, "json")
    shown = list(ftbc.recipes().values()) if name is None else [ftbc.recipe(name)]
    if name is None:
        typer.echo(_COLUMNS.format("method", "spikes", "extra", "gradients", "trained", "stepwise", ""))
    for entry in shown:
        facts = entry.facts
        needs = ["yes" if fact else "no" for fact in (facts.gradients, facts.trained, facts.steppable)]
        row = _COLUMNS.format(entry.name, facts.spikes, facts.extra_steps, *needs, entry.summary)
        typer.echo(row if name is None else entry.to_toml().rstrip())
    write_json(json, [{**entry.to_dict(), "facts": asdict(entry.facts)} for entry in shown])
