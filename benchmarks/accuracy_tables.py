"""Tables of accuracy as Markdown, from results/: what `ftbc evaluate --json` wrote, and what `ftbc compare` keeps."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.speed_tables import table

STEPS = (1, 2, 4, 8, 16, 32, 64, 128)
RECIPES = {"maximum": "largest activation", "mean-square": "least square error", "ftbc": "FTBC", "best": "`best`"}
NETWORKS = {
    "resnet20-cifar10": "ResNet-20 on CIFAR-10 (`resnet20-pad`, public weights)",
    "resnet32-cifar100": "ResNet-32 on CIFAR-100 (`resnet32`, public weights)",
    "mobilenet-imagenet": "MobileNet v1 0.25 on ImageNet (`mobilenet-v1-0.25`, public weights)",
}
"""Networks by the names of their files in results/, and what they are."""
ANYTIME = "best-anytime"
_KEPT = {
    "resnet20-pad with resnet20-12fca82f.th": "resnet20-cifar10",
    "resnet32 with resnet32_cifar100_fhempcnn.pt": "resnet32-cifar100",
}
"""Networks of results/beyond/, by the name that `ftbc compare` gave them."""


@dataclass(frozen=True)
class Measured:
    """One conversion: its accuracy at each t, on so many test images, beside the ANN's."""

    network: str
    recipe: str
    accuracy: Sequence[float]
    images: int
    ann: float | None = None

    @property
    def steps(self) -> int:
        """What it was converted for."""
        return len(self.accuracy)


def tables(folder: Path = Path("results")) -> str:
    """For each network a row a method, a column a T; a cell with fewer images than the most says so."""
    measured = {one.network for one in _measured(folder)}
    return "\n\n".join(network_table(folder, name) for name in NETWORKS if name in measured)


def network_table(folder: Path, network: str, recipes: Sequence[str] = tuple(RECIPES)) -> str:
    """The table of one network."""
    cells: dict[str, dict[int, Measured]] = defaultdict(dict)
    own = [one for one in _measured(folder) if one.network == network]
    for one in own:
        # Thresholds at the maximum do not depend on T: the steps of one run are the runs for each T.
        for t in (t for t in STEPS if t <= one.steps) if one.recipe == "maximum" else (one.steps,):
            other = cells[one.recipe].get(t)
            if other is not None and other.images == one.images:
                twice = f"{one.recipe} at T = {t} was measured twice"
                raise ValueError(f"{network}: {twice}; keep one file of it in {folder}")
            if other is None or one.images > other.images:
                cells[one.recipe][t] = one
    steps = [t for t in STEPS if any(t in cells[recipe] for recipe in recipes)]
    most = max((one for one in own if one.ann is not None), key=lambda one: one.images)
    rows = [
        [RECIPES[recipe], *(_cell(cells[recipe].get(t), t, most.images) for t in steps)]
        for recipe in recipes
        if recipe in cells
    ]
    header = ["thresholds, calibration", *(f"T={t}" for t in steps)]
    return f"**{NETWORKS[network]}**, ANN {most.ann:.2f} % ({most.images:,} test images)\n\n{table(header, rows)}"


def anytime(folder: Path) -> str:
    """One calibration that is read at several t."""
    (one,) = [one for one in _measured(folder) if one.recipe == ANYTIME]
    steps = [t for t in STEPS if 4 <= t <= one.steps]
    return table(["", *(f"t = {t}" for t in steps)], [[f"`{ANYTIME}`", *(f"{one.accuracy[t - 1]:.2f}" for t in steps)]])


def _cell(one: Measured | None, t: int, most: int) -> str:
    if one is None:
        return "-"
    return f"{one.accuracy[t - 1]:.2f}" + (f" ({one.images:,})" if one.images != most else "")


def _measured(folder: Path) -> Iterator[Measured]:
    for path in sorted(folder.glob("*.json")):
        for row in _read(path).get("results", ()):
            recipe = row["recipe"]["name"]
            yield Measured(
                path.stem.split(".")[0], recipe, row["accuracy"], row["images"], ann=row["reference_accuracy"]
            )
    for path in sorted((folder / "beyond").glob("t*.json")):
        content = _read(path)
        made, result = content["made"], content["result"]
        yield Measured(_KEPT[made["model"]], made["recipe"], result["accuracy"], result["images"])


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())
