"""Pictures of a search: what each trial was worth, and which settings mattered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ftbc.report.plot import literal, new_figure, require_plot, save_figure


def history(path: str | Path, trials: Sequence[tuple[int, float | None]], title: str) -> None:
    """The accuracy of each trial, by its number, and the best up to it; crosses below for those given up early."""
    require_plot(path)
    figure, axes = new_figure(width=7.2)
    ended = [(number, value) for number, value in trials if value is not None]
    best: list[float] = []
    for _, value in ended:
        best.append(max([value, *best[-1:]]))
    if ended:
        numbers = [number for number, _ in ended]
        axes.plot(numbers, [value for _, value in ended], "o", markersize=4, color="C0", label="trial")
        axes.step(numbers, best, where="post", color="C1", linewidth=1.8, label="best so far")
    given_up = [number for number, value in trials if value is None]
    if given_up:
        floor = min((value for _, value in ended), default=0.0)
        axes.plot(given_up, [floor] * len(given_up), "x", markersize=5, color="0.6", label="given up early")
    axes.set_xlabel("trial")
    axes.set_ylabel("accuracy on held-out training images (%)")
    axes.set_title(literal(title), loc="left")
    axes.legend(frameon=False, loc="lower right")
    save_figure(figure, Path(path))


def importance(path: str | Path, shares: Mapping[str, float], title: str) -> None:
    """How much of the difference between good and bad trials each setting explains, as bars."""
    require_plot(path)
    figure, axes = new_figure(width=7.2)
    names = sorted(shares, key=lambda name: shares[name])
    axes.barh([literal(name) for name in names], [shares[name] for name in names], color="C0")
    axes.set_xlabel("share of the difference between good and bad trials")
    axes.set_title(literal(title), loc="left")
    save_figure(figure, Path(path))
