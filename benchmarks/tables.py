"""Tables from results/: python -m benchmarks.tables prints those of accuracy, which README shows, and with --write
puts those of speed, and the plot, into docs/speed.md."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import results
from benchmarks.page import fill
from benchmarks.speed_tables import BLOCKS, PLOT, block

STEPS = (1, 2, 4, 8, 16, 32, 64, 128)
PAGE = Path("docs/speed.md")
RECIPES = {"maximum": "largest activation", "mean-square": "least square error", "ftbc": "FTBC"}


def tables(folder: Path = Path("results")) -> str:
    """Markdown: for each network a row a method, a column a T; a cell with fewer images than the first says so."""
    found: dict[str, dict[str, dict[int, tuple[float, int]]]] = defaultdict(lambda: defaultdict(dict))
    reference: dict[str, tuple[float, int]] = {}
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text())
        if "results" not in content:
            continue
        network = path.stem.split(".")[0]
        for row in content["results"]:
            images = row["images"]
            if images >= reference.get(network, (0.0, 0))[1]:
                reference[network] = (row["reference_accuracy"], images)
            cells = found[network][row["recipe"]["name"]]
            # Thresholds at the maximum do not depend on T: the steps of one run are the runs for each T.
            read = STEPS if row["recipe"]["name"] == "maximum" else (row["steps"],)
            for t in (t for t in read if t <= row["steps"]):
                if images >= cells.get(t, (0.0, 0))[1]:
                    cells[t] = (row["accuracy"][t - 1], images)
    return "\n\n".join(_table(network, found[network], *reference[network]) for network in found)


def _table(network: str, methods: dict[str, dict[int, tuple[float, int]]], ann: float, most: int) -> str:
    steps = [t for t in STEPS if any(t in cells for cells in methods.values())]
    lines = [
        f"**{network}**, ANN {ann:.2f} % ({most:,} test images)\n",
        "| thresholds, calibration | " + " | ".join(f"T={t}" for t in steps) + " |",
        "|---|" + "---|" * len(steps),
    ]
    for recipe, label in RECIPES.items():
        if recipe in methods:
            cells = [_cell(*methods[recipe].get(t, (None, 0)), most) for t in steps]
            lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(accuracy: float | None, images: int, most: int) -> str:
    if accuracy is None:
        return "-"
    return f"{accuracy:.2f}" + (f" ({images:,})" if images != most else "")


def blocks(folder: Path) -> dict[str, Callable[[], str]]:
    """The blocks of the page of speed."""
    return {name: partial(block, name, folder) for name in BLOCKS}


def write(folder: Path = Path("results"), page: Path = PAGE) -> None:
    """Make the blocks and the plot of the page anew."""
    fill(page, blocks(folder))
    content = results.read(folder, "growth")
    if content is not None and any(row["growth"] == "density" for row in content["rows"]):
        from benchmarks.pictures import speed_against_density

        speed_against_density(content["rows"], page.parent / PLOT)


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the tables of speed and the plot into docs/")
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the results")
    given = parser.parse_args()
    if given.write:
        write(given.results)
    else:
        print(tables(given.results))


if __name__ == "__main__":
    main()
