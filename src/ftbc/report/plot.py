"""Plots, drawn with matplotlib without a screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftbc.atomic import replacing
from ftbc.errors import MissingExtraError

if TYPE_CHECKING:
    from ftbc.train.log import Epoch


def accuracy_curves(
    path: str | Path, steps: Sequence[int], curves: Mapping[str, Sequence[float]], reference: float, title: str
) -> None:
    """Accuracy against the number of time steps, one line a method, the ANN as a level line; PNG or SVG by suffix."""
    figure, axes = _figure()
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
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(steps), [str(t) for t in steps])
    axes.set_ylim(0, 103)
    axes.set_xlabel("time steps T")
    axes.set_ylabel("accuracy, %")
    axes.set_title(title, loc="left")
    axes.grid(axis="y", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
    _save(figure, Path(path))


def training_curves(path: str | Path, epochs: Sequence[Epoch], title: str) -> None:
    """Loss and training accuracy against epochs, each with an axis of its own; PNG or SVG by suffix."""
    figure, axes = _figure()
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
    _save(figure, Path(path))


def _save(figure: Any, path: Path) -> None:
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix.removeprefix(".") or "png", dpi=150, bbox_inches="tight")


def _figure() -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtraError("matplotlib", "drawing a plot", "report") from error
    figure = Figure(figsize=(6.4, 4.2))
    return figure, figure.subplots()
