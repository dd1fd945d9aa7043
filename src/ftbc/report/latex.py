"""A comparison of methods as a LaTeX table, with the package booktabs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ftbc.protocol.plan import PROTOCOLS
from ftbc.protocol.rows import DIGITS, Row
from ftbc.report.comparison import legend, notes

if TYPE_CHECKING:
    from ftbc.comparison import Comparison

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}",
}  # fmt: skip
_WORDS = {"best": "Bold", "best plain": "Underlined"}
_STYLES = {"best": r"\textbf{%s}", "best plain": r"\underline{%s}", None: "%s"}


def escaped(text: str) -> str:
    r"""Any text as LaTeX that shows it.

    >>> escaped("resnet_20 50%")
    'resnet\\_20 50\\%'
    """
    return "".join(_SPECIAL.get(letter, letter if letter.isprintable() else " ") for letter in text)


def as_latex(table: Comparison) -> str:
    """A table environment: a line for each recipe, a column for each T, the best in bold, as in the paper."""
    marks = table.best()
    columns = len(table.steps)
    images = [f"{table.row(table.names[0], t).test_images:,}" for t in table.steps]
    lines = [_line("Method", [f"$T={t}$" for t in table.steps]), r"\midrule"]
    lines.append(_line("ANN", ["--" if ann is None else f"{ann:.{DIGITS}f}" for ann in table.ann.values()]))
    if len(set(images)) > 1:
        lines.append(_line("test images", images))
    lines.append(r"\midrule")
    for name in table.names:
        rows = [table.row(name, t) for t in table.steps]
        lines.append(_line(escaped(name), [_cell(row, marks.get((name, row.steps))) for row in rows]))
    body = "\n".join(lines)
    said = [f"{_WORDS[mark]}: {escaped(meaning)}." for mark, meaning in legend(table).items()]
    said += [f"{escaped(note)}." for note in notes(table)]
    below = "".join(f"\n\\par\\footnotesize {line}" for line in said)
    command = " ".join((table.made["command"] or "ftbc.compare").split())
    return (
        f"% needs \\usepackage{{booktabs}}; made by {command}\n"
        f"\\begin{{table}}\n\\centering\n\\caption{{{_caption(table)}}}\n"
        f"\\begin{{tabular}}{{@{{}}l{'r' * columns}@{{}}}}\n\\toprule\n{body}\n\\bottomrule\n\\end{{tabular}}"
        f"{below}\n\\end{{table}}\n"
    )


def _caption(table: Comparison) -> str:
    count = len(table.seeds)
    draws = "one calibration" if count == 1 else f"mean $\\pm$ standard deviation over {count} calibrations"
    tests = sorted({row.test_images for row in table.rows}, reverse=True)
    return (
        f"Accuracy in \\% of {escaped(table.model)} on {escaped(table.data)} "
        f"({' or '.join(f'{number:,}' for number in tests)} images), {draws}. "
        f"Protocol {escaped(table.protocol)}: {escaped(PROTOCOLS[table.protocol])}."
    )


def _cell(row: Row, mark: str | None) -> str:
    if row.accuracy is None:
        return "--"
    spread = "" if row.spread is None else f" {{\\scriptsize $\\pm$ {row.spread:.{DIGITS}f}}}"
    return _STYLES[mark] % f"{row.accuracy:.{DIGITS}f}" + spread


def _line(name: str, cells: list[str]) -> str:
    return " & ".join([name, *cells]) + r" \\"
