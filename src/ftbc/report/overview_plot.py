"""The overview of FTBC: its rule as a scheme, beside what it does in a layer of a real network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ftbc.report.plot import literal, new_figure, save_figure

_BOX = {"boxstyle": "round,pad=0.5", "linewidth": 1.2}


def method_overview(path: Path, found: Mapping[str, Any], title: str) -> None:
    """The scheme, the mean outputs over t of the channel that FTBC moves most, and b[t] of all channels."""
    figure, (scheme, means, biases) = new_figure(14.5, 4.4, 1, 3)
    _scheme(scheme)
    steps = range(1, len(found["without"]) + 1)
    channel = _most_moved(found)
    means.axhline(found["activation"][channel], color="0.3", linestyle="--", label="mean activation of the ANN")
    for which, label, colour in (("without", "mean spikes, no b[t]", "C1"), ("with", "mean spikes, with b[t]", "C0")):
        means.plot(steps, [row[channel] for row in found[which]], color=colour, marker="o", linewidth=2, label=label)
    means.set_title(f"channel {channel}, the one that b[t] moves most", loc="left", fontsize=10)
    means.set_ylabel("mean output")
    means.set_xlabel("step t")
    means.set_xticks(list(steps))
    means.set_ylim(bottom=0)
    means.spines[["top", "right"]].set_visible(False)
    means.legend(frameon=False, fontsize=8)
    largest = max(abs(value) for row in found["bias"] for value in row) or 1.0
    image = biases.imshow(found["bias"], cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto")
    biases.set_title("b[t] in thresholds", loc="left", fontsize=10)
    biases.set_xlabel("channel")
    biases.set_ylabel("step t")
    biases.set_yticks(range(len(found["bias"])), [str(t) for t in steps])
    figure.colorbar(image, ax=biases)
    figure.suptitle(literal(title), fontsize=11)
    save_figure(figure, path)


def _most_moved(found: Mapping[str, Any]) -> int:
    """The channel in which the distance to the activation shrinks most."""

    def gap(which: str, channel: int) -> float:
        return sum(abs(row[channel] - found["activation"][channel]) for row in found[which])

    channels = range(len(found["activation"]))
    return max(channels, key=lambda channel: gap("without", channel) - gap("with", channel))


def _scheme(axes: Any) -> None:
    """Boxes and arrows: the ANN's mean on top, the spiking layer below, and the rule between them."""
    axes.set_xlim(0, 10)
    axes.set_ylim(0, 10)
    axes.set_axis_off()
    for x, y, text, colour in (
        (5, 9.0, "ANN layer:  mean activation  E[a]\nof each channel, once", "#dce9f7"),
        (5, 5.5, "b[t] <- b[t] + alpha (E[a] - E[s[t]])\neach channel, t = 1 ... T, then fire again", "#fdf1d8"),
        (
            5,
            1.6,
            "spiking layer at step t:\nv <- v + W s + b[t];  s[t] = theta [v >= theta];  v <- v - s[t]",
            "#e3f3e3",
        ),
    ):
        axes.text(
            x, y, text, ha="center", va="center", fontsize=8.5,
            bbox={**_BOX, "facecolor": colour, "edgecolor": "0.5"},
        )  # fmt: skip
    arrow = {"arrowstyle": "-|>", "color": "0.3", "linewidth": 1.3}
    axes.annotate("", (5, 6.6), (5, 8.1), arrowprops=arrow)
    axes.annotate("", (4, 4.5), (4, 2.9), arrowprops=arrow)
    axes.annotate("", (6, 2.9), (6, 4.5), arrowprops=arrow)
    axes.text(3.8, 3.7, "E[s[t]]", ha="right", va="center", fontsize=8.5)
    axes.text(6.2, 3.7, "b[t]", ha="left", va="center", fontsize=8.5)
