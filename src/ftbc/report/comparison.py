"""A comparison of methods as text and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from ftbc.protocol.plan import PROTOCOLS
from ftbc.protocol.rows import DIGITS, Row

if TYPE_CHECKING:
    from ftbc.comparison import Comparison

MARKS = {"best": "*", "best plain": "o", None: " "}
_MEANING = {
    "best": "best at its T, as far as the table shows it",
    "best plain": "best of those with binary spikes that take one step at a time and no extra ones",
}
_SAID_ONCE = ("model", "data", "protocol", "engine")
_LISTS = ("seeds", "accuracies")


def as_text(table: Comparison, width: int | None = None) -> str:
    """The accuracies, a line for each recipe and a column for each T, then what they cost; at most ``width`` wide."""
    marks = [f"{MARKS[mark]} {said}" for mark, said in legend(table).items()]
    parts = [_heading(table), accuracies(table, width), "\n".join(marks + notes(table)), costs(table)]
    return "\n\n".join(part for part in parts if part)


def as_csv(table: Comparison) -> str:
    """A line for each recipe and T, with all that a `Row` has; lists have spaces between."""
    text = io.StringIO(newline="")
    names = [field.name for field in fields(Row)]
    lines = csv.DictWriter(text, [*_SAID_ONCE, *names, "best"], lineterminator="\n")
    lines.writeheader()
    same = {name: getattr(table, name) for name in _SAID_ONCE}
    marks = table.best()
    for row in table.rows:
        values = {name: getattr(row, name) for name in names}
        values |= {name: " ".join(map(str, values[name])) for name in _LISTS}
        lines.writerow({**same, **values, "best": marks.get((row.recipe, row.steps), "")})
    return text.getvalue()


def accuracies(table: Comparison, width: int | None = None) -> str:
    """The table of accuracies; columns that do not fit into the width follow below."""
    marks = table.best()
    lines = [["", *(f"T={t}" for t in table.steps)]]
    for name in table.names:
        rows = [table.row(name, t) for t in table.steps]
        lines.append([name, *(cell(row) + MARKS[marks.get((name, row.steps))] for row in rows)])
    lines.append(["ANN", *("-" if ann is None else f"{ann:.{DIGITS}f}" for ann in table.ann.values())])
    images = [f"{table.row(table.names[0], t).test_images:,}" for t in table.steps]
    if len(set(images)) > 1:
        lines.append(["test images", *images])
    return _in_blocks(lines, width)


def cell(row: Row) -> str:
    """The accuracy of a row and its spread."""
    if row.accuracy is None:
        return "-"
    return f"{row.accuracy:.{DIGITS}f}" + ("" if row.spread is None else f" +-{row.spread:.{DIGITS}f}")


def legend(table: Comparison) -> dict[str, str]:
    """What the marks of the table mean, as far as they are there."""
    found = set(table.best().values())
    return {mark: said for mark, said in _MEANING.items() if mark in found}


def notes(table: Comparison) -> list[str]:
    """What a reader must know of the recipes: what is special about them, what is missing and why."""
    said: dict[str, list[str]] = {}
    for name in table.names:
        rows = [row for row in table.rows if row.recipe == name]
        for fact in (*_special(rows), *_missing(table, rows)):
            said.setdefault(fact, []).append(name)
    lines = [f"{', '.join(names)}: {fact}" for fact, names in said.items()]
    if len(table.made["codes"]) > 1:
        lines.append(f"these figures were made by {len(table.made['codes'])} different states of the code of ftbc")
    return lines


def _special(rows: Sequence[Row]) -> list[str]:
    """What makes the T of a recipe another T than that of others."""
    known = [row for row in rows if row.accuracy is not None]
    facts = [f"{row.levels} spikes" for row in known[:1] if row.levels not in (None, "binary")]
    facts += [f"{extra} steps before the T" for extra in sorted({row.extra_steps or 0 for row in known} - {0})]
    return facts + ["each layer waits for several steps" for row in known[:1] if row.steppable is False]


def _missing(table: Comparison, rows: Sequence[Row]) -> list[str]:
    """Why a recipe lacks figures: once, if it is the same at every T."""
    reasons: dict[str, list[int]] = {}
    for row in rows:
        if row.reason:
            lacking = "" if row.accuracy is None else f" ({len(row.seeds)} of {len(table.seeds)} draws)"
            reasons.setdefault(row.reason + lacking, []).append(row.steps)
    return [
        reason if len(steps) == len(rows) else f"at T = {', '.join(map(str, steps))}: {reason}"
        for reason, steps in reasons.items()
    ]


def costs(table: Comparison) -> str:
    """What each row costs: a line for each recipe and T."""
    known = [row for row in table.rows if row.accuracy is not None]
    if not known:
        return ""
    lines = [
        [
            "", "T", "rate", "spikes/image", "SynOps/image", "energy/image", "calibration", "images", "extra", "spikes",
            "needs",
        ],
        *(
            [
                row.recipe, str(row.steps), f"{row.firing_rate:.4f}", f"{row.spikes:.4g}", f"{row.synops:.4g}",
                f"{row.energy:.4g} uJ", f"{row.calibration_seconds:.3g} s", str(row.calibration_images),
                str(row.extra_steps), row.levels or "?", "?" if row.needs is None else row.needs or "-",
            ]
            for row in known
        ),
        ["ANN", "", "", "", "", f"{known[0].ann_energy:.4g} uJ", "", "", "", "", ""],
    ]  # fmt: skip
    explained = (
        "rate: spikes per neuron and step; energy: 45 nm, 4.6 pJ a MAC, 0.9 pJ an addition; images: of calibration; "
        "extra: steps before the T"
    )
    return f"{_in_blocks(lines, None)}\n{explained}"


def _heading(table: Comparison) -> str:
    seeds = f"seed {table.seeds[0]}" if len(table.seeds) == 1 else f"seeds {', '.join(map(str, table.seeds))}"
    images = sorted({row.calibration_images for row in table.rows if row.calibration_images is not None})
    tests = sorted({row.test_images for row in table.rows}, reverse=True)
    spread = "" if len(table.seeds) == 1 else ": mean +- standard deviation"
    return (
        f"{table.model} on {table.data}, {' or '.join(f'{count:,}' for count in tests)} images\n"
        f"protocol {table.protocol}: {PROTOCOLS[table.protocol]}; {' or '.join(map(str, images)) or 'no'} calibration "
        f"images, {seeds}\naccuracy in %{spread}"
    )


def _in_blocks(lines: Sequence[Sequence[str]], width: int | None) -> str:
    """Lines of cells as text: the first column left, the others right, cut between columns where it is too wide."""
    widths = [max(len(line[index]) for line in lines) for index in range(len(lines[0]))]
    blocks: list[list[int]] = [[]]
    for index in range(1, len(widths)):
        taken = widths[0] + sum(2 + widths[other] for other in blocks[-1])
        if width is not None and blocks[-1] and taken + 2 + widths[index] > width:
            blocks.append([])
        blocks[-1].append(index)
    return "\n\n".join(
        "\n".join(
            (f"{line[0]:{widths[0]}}" + "".join(f"  {line[index]:>{widths[index]}}" for index in block)).rstrip()
            for line in lines
        )
        for block in blocks
    )
