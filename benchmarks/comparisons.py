"""The tables of docs/comparison.md: methods side by side, most on networks that others trained, and claims about them.

    ftbc compare ... --csv results/compare/NAME.csv      # the commands are on the page
    python -m benchmarks.comparisons --write

The second makes the tables and checks each claim at each T against what the first measured. What another run measured,
with the same options for other recipes or T, is added to the file, or lies beside it as NAME.PART.csv.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.page import fill
from benchmarks.speed_tables import table

FOLDER = Path("results/compare")
REPRODUCED = Path("results/reproduce")
PAGE = Path("docs/comparison.md")
NETWORKS = {
    "resnet20": "ResNet-20 on CIFAR-10",
    "resnet32": "ResNet-32 on CIFAR-100",
    "mobilenet": "MobileNet v1 0.25 on ImageNet",
    "vgg16-cifar10": "own VGG-16 on CIFAR-10",
    "mobilenet-cifar10": "own MobileNet on CIFAR-10",
    "resnet20-qcfs4-cifar10": "own ResNet-20 with QCFS on CIFAR-10",
    "vgg16-qcfs4-cifar10": "own VGG-16 with QCFS on CIFAR-10",
    "resnet20-trelu-cifar10": "own ResNet-20 with a clipped ReLU on CIFAR-10",
    "resnet20-sliprelu-cifar10": "own ResNet-20 with SlipReLU on CIFAR-10",
    "resnet20-ratenorm-cifar10": "own ResNet-20 with rate-norm layers on CIFAR-10",
}
OURS = ("best", "best-sharpened", "best-anytime")
OWN_NETWORKS = (
    ("cifar-snnc", "FTBC", "SNNC-AP", False),
    ("cifar10", "FTBC (+QCFS)", "QCFS", True),
    ("cifar100", "FTBC (+QCFS)", "QCFS", True),
    ("cifar-rts", "FTBC (+RTS)", "RTS", True),
)
"""Experiments of `ftbc reproduce` on networks of the package, and which of two methods the paper finds better."""

Figures = dict[tuple[str, int], float]
"""Accuracy by method and T."""


@dataclass(frozen=True)
class Measured:
    """What one file of ``ftbc compare --csv`` says."""

    figures: Figures
    plain: frozenset[str]
    spikes: dict[str, str]
    ann: dict[int, float]
    images: dict[int, int]
    calibration: int

    @property
    def methods(self) -> list[str]:
        """In the order of the file."""
        return list(self.spikes)

    @property
    def steps(self) -> list[int]:
        """Every T that something was measured at."""
        return sorted({t for _, t in self.figures})


def files(folder: Path, name: str) -> list[Path]:
    """What was measured on a network, in one run or several."""
    return [*folder.glob(f"{name}.csv"), *sorted(folder.glob(f"{name}.*.csv"))]


def read(*paths: Path) -> Measured:
    """Read what was measured; methods without a figure are left out.

    plain: methods with binary spikes, one step at a time and no extra ones, which can be compared at the same T.
    """
    rows = []
    for path in paths:
        with path.open(newline="") as file:
            rows += [row for row in csv.DictReader(file) if row["accuracy"]]
    cells = Counter((row["recipe"], row["steps"]) for row in rows)
    if twice := [f"{recipe} at T = {t}" for (recipe, t), times in cells.items() if times > 1]:
        raise ValueError(f"measured twice: {', '.join(twice)}; keep one row of each in {paths[0].parent}")
    by_step = {int(row["steps"]): row for row in reversed(rows)}  # the ANN as the first run has it, to the last image
    alike = [r for r in rows if r["levels"] == "binary" and r["extra_steps"] == "0" and r["steppable"] == "True"]
    return Measured(
        {(row["recipe"], int(row["steps"])): float(row["accuracy"]) for row in rows},
        frozenset(row["recipe"] for row in alike),
        {row["recipe"]: row["levels"] for row in rows},
        {t: float(row["ann_accuracy"]) for t, row in by_step.items()},
        {t: int(row["test_images"]) for t, row in by_step.items()},
        max((int(row["calibration_images"]) for row in rows), default=0),
    )


def accuracies(name: str, folder: Path = FOLDER) -> str:
    """The table of one network: the best of several methods that can be compared is bold at each T."""
    paths = files(folder, name)
    if not paths:
        return f"*Not measured yet: there is no `results/compare/{name}.csv`.*"
    found = read(*paths)
    figures = found.figures
    alike = {t: [figures[method, t] for method in found.plain if (method, t) in figures] for t in found.steps}

    def cell(method: str, t: int) -> str:
        figure = figures.get((method, t))
        if figure is None:
            return "-"
        marked = method in found.plain and len(alike[t]) > 1 and figure == max(alike[t])
        return f"**{figure:.2f}**" if marked else f"{figure:.2f}"

    rows = [[f"`{method}`", found.spikes[method], *(cell(method, t) for t in found.steps)] for method in found.methods]
    rows.append(["the ANN", "", *(f"{found.ann[t]:.2f}" for t in found.steps)])
    rows.append(["test images", "", *(f"{found.images[t]:,}" for t in found.steps)])
    head = f"**{NETWORKS[name]}**, accuracy in %, a draw of {found.calibration:,} calibration images at most."
    return head + "\n\n" + table(["method", "spikes", *(f"T = {t}" for t in found.steps)], rows)


def claims(folder: Path = FOLDER, reproduced: Path = REPRODUCED) -> str:
    """Each claim on each network: where it holds, and with what figures it does not."""
    lines = []
    for name, title in NETWORKS.items():
        if paths := files(folder, name):
            found = read(*paths)
            lines += [
                _claim("FTBC is at least SNNC-LP", title, found.figures, "ftbc", "snnc-lp", strict=False),
                _claim("FTBC is at least SNNC-AP", title, found.figures, "ftbc", "snnc-ap", strict=False),
                _claim("FTBC on QCFS is above QCFS", title, found.figures, "ftbc-qcfs", "qcfs", strict=True),
                _claim("FTBC on RTS is above RTS", title, found.figures, "ftbc-rts", "rts", strict=True),
                _claim("`best` is above FTBC", title, found.figures, "best", "ftbc", strict=True),
                _best(title, found),
            ]
    for experiment, first, second, strict in OWN_NETWORKS:
        words = f"{first} is {'above' if strict else 'at least'} {second}"
        for part, figures in _reproduced(reproduced / f"{experiment}.csv").items():
            lines.append(_claim(words, f"own {part}", figures, first, second, strict))
    kept = [line for line in lines if line is not None]
    if not kept:
        return "*Not measured yet.*"
    return table(["claim", "network", "holds at T =", "does not at T ="], kept)


def _claim(words: str, network: str, figures: Figures, first: str, second: str, strict: bool) -> list[str] | None:
    both = sorted(t for method, t in figures if method == first and (second, t) in figures)
    pairs = {t: (figures[first, t], figures[second, t]) for t in both}
    if not pairs:
        return None
    holds = [t for t, (a, b) in pairs.items() if a > b or (a == b and not strict)]
    fails = [f"{t} ({a:.2f} against {b:.2f})" for t, (a, b) in pairs.items() if t not in holds]
    return [words, network, ", ".join(map(str, holds)) or "-", ", ".join(fails) or "-"]


def _best(network: str, found: Measured) -> list[str] | None:
    """Whether `best` is above every other method that can be compared with it.

    That it is can be said only where all of them were measured; that it is not, wherever one of them is above it.
    Beside a single method it is no claim at all.
    """
    figures = dict(found.figures)
    others = found.plain - set(OURS)
    if len(others) < 2:
        return None
    for t in found.steps:
        measured = [figures[method, t] for method in others if (method, t) in figures]
        if measured and (len(measured) == len(others) or max(measured) >= figures.get(("best", t), 0.0)):
            figures["any other", t] = max(measured)
    words = "`best` is above every other method with binary spikes and no extra steps"
    return _claim(words, network, figures, "best", "any other", strict=True)


def _reproduced(path: Path) -> dict[str, Figures]:
    """Accuracies by part of an experiment of `ftbc reproduce`."""
    found: dict[str, Figures] = {}
    if path.exists():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                if row["here"]:
                    found.setdefault(row["part"], {})[row["method"], int(row["steps"])] = float(row["here"])
    return found


def blocks(folder: Path = FOLDER, reproduced: Path = REPRODUCED) -> dict[str, Callable[[], str]]:
    """The blocks of the page by name."""
    tables = {name: (lambda name=name: accuracies(name, folder)) for name in NETWORKS}
    return {**tables, "claims": lambda: claims(folder, reproduced)}


def main() -> None:
    """Fill the page, or print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparisons", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE}")
    if parser.parse_args().write:
        fill(PAGE, blocks())
    else:
        print("\n\n".join(make() for make in blocks().values()))


if __name__ == "__main__":
    main()
