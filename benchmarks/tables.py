"""Tables and the plot of README and docs, from results/: python -m benchmarks.tables --write puts them there."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import results
from benchmarks.accuracy_tables import anytime, network_table, tables
from benchmarks.page import fill
from benchmarks.speed_tables import BLOCKS, PLOT, block, headline

PAGE = Path("docs/speed.md")
Blocks = dict[str, Callable[[], str]]


def blocks(folder: Path) -> Blocks:
    """The blocks of the page of speed."""
    return {name: partial(block, name, folder) for name in BLOCKS}


def pages(folder: Path) -> dict[Path, Blocks]:
    """Every page that is made of results, with its blocks."""
    ours = ("ftbc", "best")
    return {
        PAGE: blocks(folder),
        Path("README.md"): {"accuracy": partial(tables, folder), "headline": partial(headline, folder)},
        Path("docs/beyond-ftbc.md"): {
            "best-cifar10": partial(network_table, folder, "resnet20-cifar10", ours),
            "best-cifar100": partial(network_table, folder, "resnet32-cifar100", ours),
            "best-anytime": partial(anytime, folder),
        },
    }


def write(folder: Path = Path("results"), root: Path = Path()) -> None:
    """Make the blocks of all pages and the plot anew."""
    for page, made in pages(folder).items():
        fill(root / page, made)
    content = results.read(folder, "growth")
    if content is not None and any(row["growth"] == "density" for row in content["rows"]):
        from benchmarks.pictures import speed_against_density

        speed_against_density(content["rows"], (root / PAGE).parent / PLOT)


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put all tables and the plot into README and docs/")
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the results")
    given = parser.parse_args()
    if given.write:
        write(given.results)
    else:
        print(tables(given.results))


if __name__ == "__main__":
    main()
