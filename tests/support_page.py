"""docs/support.md, made of what the tests convert and refuse: python -m tests.support_page --write"""

from __future__ import annotations

import sys
from pathlib import Path

from ftbc.graph.remedies import remedy_for
from tests.graph.architectures import ARCHITECTURES
from tests.graph.table import TABLE, Entry
from tests.graph.test_refusals import FUNCTIONS

PAGE = Path(__file__).parents[1] / "docs" / "support.md"
TITLES = {
    "weights": "Layers with weights",
    "activations": "Activations",
    "normalisation": "Normalisation",
    "pooling": "Pooling",
    "arithmetic": "Sums, factors, constants",
    "shapes": "Joining, slicing, shapes",
    "in_place": "Writing in place",
    "heads": "At the very end",
    "tracing": "Forwards in Python",
}


def page() -> str:
    """The whole page."""
    groups: dict[str, list[str]] = {}
    for name, entry in TABLE.items():
        groups.setdefault(concept(entry), []).append(name + ("" if "fx" in entry.routes else " (by torch.export)"))
    blocks = [
        "# What converts",
        "<!-- made by python -m tests.support_page --write -->",
        f"{len(TABLE)} constructions, each a small network in `tests/graph/table/`. The tests trace each with\n"
        "torch.fx and torch.export, clean its graph, and compare its output with the network's own to 1e-9. In\n"
        f"miniature they convert and run {', '.join(ARCHITECTURES)}.\n"
        "`ftbc check` tells the same of your network. What is not here may convert as well: most operations that are\n"
        "linear do, under other names.",
    ]
    for group, title in TITLES.items():
        blocks += [f"## {title}", _table(groups.pop(group))]
    assert not groups, groups
    refusals = sorted({name.partition(",")[0] for name in FUNCTIONS})
    by_remedy: dict[str, list[str]] = {}
    for name in refusals:
        by_remedy.setdefault(remedy_for(name), []).append(f"`{name}`")
    others = by_remedy.pop(remedy_for(""))
    rows = [f"| {', '.join(names)} | {remedy} |" for remedy, names in by_remedy.items()]
    blocks += [
        "## What is refused",
        "Each by name, with the layer, your source line and what to do about it; all that is found is told at once.\n"
        "The tests refuse these:",
        "\n".join(["| operation | what is said |", "|---|---|", *rows]),
        "Others are refused where they mix the images of a batch, or in forms that are not linear: "
        f"{', '.join(others)}.",
    ]
    return "\n\n".join(blocks) + "\n"


def _table(names: list[str]) -> str:
    """A line for each thing, with the forms of it that are tested."""
    forms: dict[str, list[str]] = {}
    for name in names:
        thing, _, form = name.partition(", ")
        if "(" in thing and ")" not in thing:
            thing, form = name, ""
        forms.setdefault(thing, []).extend([form] if form else [])
    alone = ", ".join(_code(thing) for thing, own in forms.items() if not own)
    rows = [f"| {_code(thing)} | {'; '.join(own)} |" for thing, own in forms.items() if own]
    table = "\n".join(["| construction | forms |", "|---|---|", *rows]) if rows else ""
    return "\n\n".join(part for part in (alone, table) if part)


def concept(entry: Entry) -> str:
    """The file of the table that an entry is in."""
    return Path(entry.model.run.__code__.co_filename).stem  # type: ignore[union-attr]


def _code(name: str) -> str:
    """As code, if it looks like it."""
    plain, mark, how = name.partition(" (by ")
    return (f"`{plain}`" if any(letter in plain for letter in "._(=") else plain) + mark + how


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page())
    else:
        sys.stdout.write(page())
