"""Plots, drawn with matplotlib without a screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftbc.atomic import replacing
from ftbc.errors import FileError, MissingExtraError

if TYPE_CHECKING:
    from ftbc.comparison import Comparison
    from ftbc.train.log import Epoch

FORMATS = (".png", ".svg", ".pdf")
_LINES, _SIGNS = ("-", "--", ":"), ("o", "s", "^")


def accuracy_curves(
    path: str | Path, steps: Sequence[int], curves: Mapping[str, Sequence[float]], reference: float, title: str
) -> None:
    """Accuracy against the number of time steps, one line a method, the ANN as a level line; PNG or SVG by suffix."""
    figure, axes = new_figure()
    axes.axhline(reference, color="0.4", linestyle="--", linewidth=1)
    axes.annotate(
        f"ANN {reference:.1f} %", (steps[0], reference), xytext=(0, 5), textcoords="offset points", color="0.3"
    )
    for label, accuracies in curves.items():
        (line,) = axes.plot(steps, accuracies, marker="o", markersize=5, linewidth=2, label=label)
        for index, (t, accuracy) in enumerate(zip(steps, accuracies, strict=True)):
            best = accuracy == max(curve[index] for curve in curves.values())
            axes.annotate(
                f"{accuracy:.0f}", (t, accuracy), xytext=(0, 6 if best else -13), textcoords="offset points",
                ha="center", fontsize=8, color=line.get_color(),
            )  # fmt: skip
    axes.set_title(title, loc="left")
    steps_axis(axes, steps)
    axes.legend(frameon=False, loc="lower right")
    save_figure(figure, Path(path))


def compared_curves(path: str | Path, table: Comparison) -> None:
    """Accuracy against T, one line a recipe with a band of one standard deviation, the ANN dashed; by suffix."""
    require_plot(path)
    figure, axes = new_figure(width=7.2)
    anns = [(t, ann) for t, ann in table.ann.items() if ann is not None]
    if anns:
        # A level for each T: above a number of steps it may be that of fewer test images.
        axes.plot(*zip(*anns, strict=True), color="0.4", linestyle="--", linewidth=1, label="ANN")
    for index, name in enumerate(table.names):
        rows = [row for row in table.rows if row.recipe == name and row.accuracy is not None]
        if not rows:
            continue
        steps, means = [row.steps for row in rows], [row.accuracy or 0.0 for row in rows]
        style = line_style(index)
        axes.plot(steps, means, markersize=4, linewidth=1.8, label=literal(name), **style)
        low = [mean - (row.spread or 0.0) for mean, row in zip(means, rows, strict=True)]
        high = [mean + (row.spread or 0.0) for mean, row in zip(means, rows, strict=True)]
        axes.fill_between(steps, low, high, color=style["color"], alpha=0.15, linewidth=0)
    title = f"{table.model} on {table.data}, protocol {table.protocol}"
    axes.set_title(literal(title), loc="left", fontsize=10)
    steps_axis(axes, table.steps)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8)
    save_figure(figure, Path(path))


def energy_curves(path: str | Path, table: Comparison) -> None:
    """Accuracy against microjoules an image at 45 nm, a line for each recipe over its T, the ANN a diamond."""
    require_plot(path)
    figure, axes = new_figure(width=7.2)
    for index, name in enumerate(table.names):
        rows = [row for row in table.rows if row.recipe == name and row.accuracy is not None and row.energy is not None]
        if rows:
            style = line_style(index)
            points = [(row.energy or 0.0, row.accuracy or 0.0) for row in rows]
            axes.plot(*zip(*points, strict=True), markersize=4, linewidth=1.8, label=literal(name), **style)
            for row, place in zip(rows, points, strict=True):
                axes.annotate(
                    f"{row.steps}", place, xytext=(0, 5), textcoords="offset points", ha="center", fontsize=7,
                    color=style["color"],
                )  # fmt: skip
    anns = [(row.ann_energy, row.ann_accuracy) for row in table.rows if row.ann_energy and row.ann_accuracy is not None]
    if anns:
        axes.plot(*anns[0], marker="D", color="0.2", linestyle="none", label="ANN")
    axes.set_title(literal(f"{table.model} on {table.data}; numbers are T"), loc="left", fontsize=10)
    axes.set_xscale("log")
    axes.set_xlabel("microjoules an image (45 nm: 4.6 pJ a MAC, 0.9 pJ an addition)")
    percent_axis(axes)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8)
    save_figure(figure, Path(path))


def require_plot(path: str | Path) -> None:
    """Raise before the work what drawing would raise after it: an unknown format, or a missing package."""
    if Path(path).suffix not in FORMATS:
        raise FileError(f"cannot draw '{path}': name a file that ends in {', '.join(FORMATS)}")
    new_figure()


def literal(text: str) -> str:
    """Text that is not taken for a formula."""
    return text.replace("$", r"\$")


def line_style(index: int) -> dict[str, str]:
    """Ten colours, then the same ten with other lines and signs."""
    return {"color": f"C{index % 10}", "linestyle": _LINES[index // 10 % 3], "marker": _SIGNS[index // 10 % 3]}


def steps_axis(axes: Any, steps: Sequence[int]) -> None:
    """Time steps to the right, in powers of two, and percents upwards."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(steps), [str(t) for t in steps])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("time steps T")
    percent_axis(axes)


def percent_axis(axes: Any) -> None:
    """Percents upwards, from 0 on."""
    axes.set_ylim(0, 103)
    axes.set_ylabel("accuracy, %")
    axes.grid(axis="y", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def training_curves(path: str | Path, epochs: Sequence[Epoch], title: str) -> None:
    """Loss and training accuracy against epochs, each with an axis of its own; PNG or SVG by suffix."""
    figure, axes = new_figure()
    numbers = [epoch.epoch for epoch in epochs]
    beside = axes.twinx()
    for side, values, label, colour in (
        (axes, [epoch.loss for epoch in epochs], "loss", "tab:blue"),
        (beside, [epoch.accuracy for epoch in epochs], "training accuracy, %", "tab:orange"),
    ):
        side.plot(numbers, values, color=colour, linewidth=2, marker="o" if len(numbers) < 30 else None, markersize=4)
        side.set_ylabel(label, color=colour)
        side.spines["top"].set_visible(False)
    axes.set_ylim(bottom=0)
    beside.set_ylim(0, 103)
    axes.set_xlabel("epoch")
    axes.set_title(title, loc="left")
    axes.grid(axis="y", alpha=0.25)
    save_figure(figure, Path(path))


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure whole or not at all, as its suffix says."""
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix.removeprefix(".") or "png", dpi=150, bbox_inches="tight")


def new_figure(width: float = 6.4, height: float = 4.2, rows: int = 1, columns: int = 1) -> tuple[Any, Any]:
    """A figure of so many inches, and its axes: one, or an array of them."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtraError("matplotlib", "drawing a plot", "report") from error
    figure = Figure(figsize=(width, height), layout=None if rows * columns == 1 else "constrained")
    return figure, figure.subplots(rows, columns)
