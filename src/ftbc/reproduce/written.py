"""The files of a reproduction: CSV, LaTeX, a page in Markdown, and the drawing as PNG and SVG."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from ftbc.atomic import make_folder, replacing
from ftbc.protocol.rows import DIGITS
from ftbc.report.latex import escaped
from ftbc.report.paper_plots import Curves, Measured, paper_and_here
from ftbc.reproduce.experiment import Part
from ftbc.reproduce.page import as_markdown, columns
from ftbc.reproduce.result import Reproduction
from ftbc.reproduce.table import Line

_COLUMNS = (
    "experiment", "source", "scale", "part", "method", "steps", "paper", "here", "spread", "difference", "paper_ann",
    "ann", "seeds", "network", "data", "test_images", "calibration_images", "energy", "calibrate", "reason",
)  # fmt: skip
_DRAWINGS = (".png", ".svg")


def write(found: Reproduction, folder: Path) -> list[Path]:
    """Write all files of a reproduction into a folder; they are called after the experiment."""
    make_folder(folder)
    name, paths = found.experiment.name, []
    for suffix in _DRAWINGS:
        paths.append(folder / f"{name}{suffix}")
        _draw(found, paths[-1])
    for suffix, text in (".csv", as_csv(found)), (".tex", as_latex(found)), (".md", as_markdown(found)):
        paths.append(folder / f"{name}{suffix}")
        with replacing(paths[-1]) as file:
            file.write(text.encode())
    return paths


def as_csv(found: Reproduction) -> str:
    """A line for each method and T of a table, paper's and here; or the rows of a figure."""
    text = io.StringIO(newline="")
    rows = list(found.figure.rows) if found.figure is not None else _rows(found)
    lines = csv.DictWriter(text, list(rows[0]) if found.figure is not None else _COLUMNS, lineterminator="\n")
    lines.writeheader()
    lines.writerows(rows)
    return text.getvalue()


def as_latex(found: Reproduction) -> str:
    """A table with the lines of the paper and of here below each other, or a figure; with booktabs or graphicx."""
    experiment, command = found.experiment, " ".join((found.made["command"] or "ftbc.reproduce").split())
    source = f" ({escaped(experiment.source)} of the paper)" if experiment.source else ""
    caption = f"{escaped(experiment.title)}{source}."
    if found.figure is not None:
        return (
            f"% needs \\usepackage{{graphicx}}; made by {command}\n\\begin{{figure}}\n\\centering\n"
            f"\\includegraphics[width=\\linewidth]{{{experiment.name}.png}}\n"
            f"\\caption{{{caption} {escaped(' '.join(found.figure.said))}}}\n\\end{{figure}}\n"
        )
    steps = sorted({t for part in experiment.parts for t in columns(found, part)})
    lines = [_line(["Method", "", "ANN", *(f"$T={t}$" for t in steps)])]
    for part in experiment.parts:
        lines += [r"\midrule", f"\\multicolumn{{{3 + len(steps)}}}{{c}}{{{escaped(part.title)}}} \\\\", r"\midrule"]
        for line in (line for line in found.lines if line.part is part):
            lines += _both(line, steps)
    body = "\n".join(lines)
    return (
        f"% needs \\usepackage{{booktabs}}; made by {command}\n\\begin{{table}}\n\\centering\n"
        f"\\caption{{{caption} Accuracy in \\%: the paper's, and here at scale {found.scale}.}}\n"
        f"\\begin{{tabular}}{{@{{}}ll{'r' * (1 + len(steps))}@{{}}}}\n\\toprule\n{body}\n\\bottomrule\n"
        f"\\end{{tabular}}\n\\end{{table}}\n"
    )


def _both(line: Line, steps: list[int]) -> list[str]:
    paper = [_percent(line.paper.ann), *(_percent(line.paper.paper.get(t)) for t in steps)]
    name = escaped(line.paper.method)
    lines = [_line([name, "paper", *paper])] if line.paper.paper else []
    if line.rows:
        lines.append(
            _line(["" if lines else name, "here", _percent(line.ann), *(_percent(line.here(t)) for t in steps)])
        )
    return lines


def _rows(found: Reproduction) -> list[dict[str, Any]]:
    return [_row(found, line.part, line, t) for line in found.lines for t in columns(found, line.part) if _has(line, t)]


def _has(line: Line, t: int) -> bool:
    return t in line.rows or t in line.paper.paper


def _row(found: Reproduction, part: Part, line: Line, t: int) -> dict[str, Any]:
    here, paper = line.rows.get(t), line.paper
    measured: dict[str, Any] = {}
    if here is not None:
        measured = {
            "here": _rounded(here.accuracy), "spread": _rounded(here.spread), "ann": _rounded(here.ann_accuracy),
            "difference": _rounded(line.difference(t)), "seeds": " ".join(map(str, here.seeds)),
            "test_images": here.test_images, "calibration_images": here.calibration_images,
            "energy": _rounded(here.energy), "calibrate": json.dumps(line.recipe["calibrate"]),
        }  # fmt: skip
    return {
        "experiment": found.experiment.name, "source": found.experiment.source, "scale": found.scale,
        "part": part.title, "method": paper.method, "steps": t, "paper": paper.paper.get(t, ""),
        "paper_ann": "" if paper.ann is None else paper.ann, "network": line.network, "data": line.data,
        "reason": line.reason, **measured,
    }  # fmt: skip


def _draw(found: Reproduction, path: Path) -> None:
    if found.figure is not None:
        found.figure.draw(path)
        return
    title = found.experiment.title
    if any(line.paper.paper for line in found.lines):
        others = ", on other networks" if found.scale == "small" else ""
        title += f": the paper's dashed; drawn through: measured here{others}"
    paper_and_here(path, panels(found), title)


def panels(found: Reproduction) -> dict[str, tuple[Curves, Measured]]:
    """What there is to draw of each part: the paper's figures and those measured, by method and T."""
    drawn = {}
    for part in found.experiment.parts:
        lines = [line for line in found.lines if line.part is part]
        here = {line.paper.method: {t: (row.accuracy, row.spread) for t, row in line.rows.items()} for line in lines}
        if any(here.values()) or any(line.paper.paper for line in lines):
            drawn[part.title] = ({line.paper.method: line.paper.paper for line in lines}, here)
    return drawn


def _rounded(value: float | None) -> float | str:
    return "" if value is None else round(value, 4)


def _percent(value: float | None) -> str:
    return "--" if value is None else f"{value:.{DIGITS}f}"


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
