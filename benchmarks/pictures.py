"""The plot of docs/speed.md: speed against density."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.speed_tables import NAMES
from ftbc.atomic import replacing

COLOURS = {"layerwise": "#7f7f7f", "stepwise": "#b8b8b8", "event": "#1f77b4", "event-int16": "#d62728"}


def speed_against_density(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Image-steps a second over the ANN's images a second against the share of neurons that fire, a panel a network."""
    found = [row for row in rows if row["growth"] == "density"]
    networks = list(dict.fromkeys(row["network"] for row in found))
    figure = Figure(figsize=(4.6 * len(networks), 4.4))
    panels = figure.subplots(1, len(networks), sharey=True, squeeze=False)[0]
    for panel, network in zip(panels, networks, strict=True):
        own = [row for row in found if row["network"] == network]
        _draw(panel, own)
        panel.set_title(f"{network}, T = {own[0]['steps']}", loc="left", fontsize=11)
    low, high = panels[0].get_ylim()  # all panels share it
    ticks = [2.0**power for power in range(-6, 9) if low <= 2.0**power <= high]
    panels[0].set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    panels[0].set_ylabel("image-steps/s over the ANN's images/s")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=len(labels), frameon=False, bbox_to_anchor=(0.5, -0.07))
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=150, bbox_inches="tight")


def _draw(panel: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    shares = sorted({100 * row["wanted_density"] for row in rows})
    steps = rows[0]["steps"]
    for level, words, place, above in (
        (1, "a step costs as much as the ANN", "left", 24),  # the dense engines lie about there
        (steps, f"{steps} steps cost as much as the ANN", "right", 4),
    ):
        panel.axhline(level, color="0.3", linestyle="--", linewidth=1)
        panel.annotate(
            words, (shares[0] if place == "left" else shares[-1], level), xytext=(0, above), textcoords="offset points",
            color="0.3", fontsize=8, ha=place,
        )  # fmt: skip
    for engine, label in NAMES.items():
        own = sorted((row for row in rows if row["engine"] == engine), key=lambda row: row["wanted_density"])
        x = [100 * row["wanted_density"] for row in own]
        spreads = [row["steps_over_ann"] for row in own]
        low, high = [spread["low"] for spread in spreads], [spread["high"] for spread in spreads]
        panel.fill_between(x, low, high, color=COLOURS[engine], alpha=0.15, linewidth=0)
        panel.plot(
            x, [spread["median"] for spread in spreads], marker="o", markersize=4, linewidth=2, label=label,
            color=COLOURS[engine],
        )  # fmt: skip
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xticks(shares, [f"{share:g}" for share in shares])
    panel.minorticks_off()
    panel.set_xlabel("neurons that fire at a step, %")
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)
