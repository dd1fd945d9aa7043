"""Plots of what `ftbc reproduce` measures: the paper's tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ftbc.report.plot import line_style, literal, new_figure, percent_axis, save_figure, steps_axis

Curves = Mapping[str, Mapping[int, float]]
Measured = Mapping[str, Mapping[int, tuple[float | None, float | None]]]

_MOST_INSIDE = 10
"""Longer legends would hide the curves."""


def paper_and_here(path: Path, panels: Mapping[str, tuple[Curves, Measured]], title: str) -> None:
    """A panel for each part of a table: accuracy against T, the paper's dashed, what was measured drawn through."""
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure, grid = new_figure(6.4 * columns, 3.9 * rows, rows, columns)
    every = [grid] if rows * columns == 1 else list(grid.flat)
    for axes, (name, (paper, here)) in zip(every, panels.items(), strict=False):
        steps = sorted({t for curves in (paper, here) for curve in curves.values() for t in curve})
        for index, method in enumerate(paper):
            style = line_style(index)
            if paper[method]:
                faint = {**style, "linestyle": "--", "alpha": 0.55, "linewidth": 1.2, "markersize": 3}
                axes.plot(*_pairs(paper[method]), **faint, label=None if here[method] else literal(method))
            known = {t: (mean, spread or 0.0) for t, (mean, spread) in here[method].items() if mean is not None}
            if known:
                means = {t: mean for t, (mean, _) in known.items()}
                axes.plot(*_pairs(means), **{**style, "linestyle": "-"}, linewidth=2, label=literal(method))
                low, high = ([mean + sign * spread for mean, spread in known.values()] for sign in (-1, 1))
                axes.fill_between(list(known), low, high, color=style["color"], alpha=0.15, linewidth=0)
        axes.set_title(literal(name), loc="left", fontsize=10)
        steps_axis(axes, steps)
        if len(paper) > _MOST_INSIDE:
            axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        else:
            axes.legend(frameon=False, fontsize=7, loc="best")
    for axes in every[len(panels) :]:
        axes.set_axis_off()
    figure.suptitle(literal(title), fontsize=11)
    save_figure(figure, path)


def _pairs(curve: Mapping[int, float]) -> tuple[list[int], list[float]]:
    return list(curve), list(curve.values())


def stability_curves(path: Path, curves: Mapping[float, Mapping[int, Sequence[float]]], title: str) -> None:
    """A panel for each alpha: accuracy at each t against the batches seen, the first point before calibration."""
    figure, grid = new_figure(5.2 * len(curves), 4.2, 1, len(curves))
    every = [grid] if len(curves) == 1 else list(grid.flat)
    for axes, (alpha, by_step) in zip(every, curves.items(), strict=True):
        for index, (t, course) in enumerate(by_step.items()):
            colour = line_style(index)["color"]
            axes.plot(range(len(course)), course, linewidth=1.8, color=colour, label=f"t = {t}")
        axes.set_title(f"alpha = {alpha:g}", loc="left", fontsize=10)
        axes.set_xlabel("batches that FTBC has seen")
        percent_axis(axes)
    every[-1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
    figure.suptitle(literal(title), fontsize=11)
    save_figure(figure, path)


def membrane_histograms(path: Path, panels: Sequence[Mapping[str, Any]], title: str) -> None:
    """A panel for each layer and step: how often which potential occurs, the threshold, and the threshold less b*."""
    figure, grid = new_figure(5.2 * len(panels), 4.0, 1, len(panels))
    every = [grid] if len(panels) == 1 else list(grid.flat)
    for axes, panel in zip(every, panels, strict=True):
        axes.hist(panel["potentials"], bins=50, color="tab:blue", alpha=0.75)
        theta = panel["threshold"]
        axes.axvline(theta, color="tab:red", label="threshold")
        axes.axvline(
            theta - panel["correction"], color="tab:red", linestyle="--", label=f"less b* = {panel['correction']:+.3f}"
        )
        axes.set_title(f"layer {panel['layer']}, t = {panel['step']}", loc="left", fontsize=10)
        axes.set_xlabel("membrane potential before firing")
        axes.set_ylabel("images")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    figure.suptitle(literal(title), fontsize=11)
    save_figure(figure, path)


def search_of_bias(
    path: Path,
    density: Sequence[tuple[float, float]],
    courses: Mapping[float, Sequence[float]],
    exact: float,
    share: float,
) -> None:
    """The density with the share above the threshold less b*, and b from batch to batch for several rates."""
    figure, (left, right) = new_figure(10.4, 4.0, 1, 2)
    x, y = zip(*density, strict=True)
    left.plot(x, y, color="0.3")
    edge = 1 - exact
    left.fill_between(x, 0, y, where=[value >= edge for value in x], color="tab:orange", alpha=0.5)
    left.fill_between(x, 0, y, where=[value >= 1 for value in x], color="tab:red", alpha=0.5)
    left.axvline(1, color="tab:red", label="threshold: fires without a bias")
    left.axvline(edge, color="tab:orange", linestyle="--", label=f"1 - b*: {100 * share:g} % fire")
    left.set_xlabel("membrane potential")
    left.set_ylabel("density")
    left.set_ylim(0, 1.35 * max(y))
    for index, (rate, course) in enumerate(courses.items()):
        right.plot(range(len(course)), course, color=f"C{index}", linewidth=1.8, label=f"c = {rate:g}")
    right.axhline(exact, color="0.4", linestyle="--", linewidth=1, label="b*, exact")
    right.set_xlabel("batches")
    right.set_ylabel("b")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    save_figure(figure, path)
