"""The page of the trained networks: python -m benchmarks.trained fills the tables of docs/networks.md.

What each network is, and how good, stands in `ftbc.zoo.entries`; how it was trained in results/train/NAME.json, which
`ftbc train --json` wrote; what it does as a spiking network in results/train/NAME.RECIPE.json, from
`ftbc evaluate NAME --recipe RECIPE --json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from benchmarks.page import fill
from benchmarks.speed_tables import table
from ftbc import zoo

FOLDER, PAGE = Path("results/train"), Path("docs/networks.md")
STEPS = (1, 2, 4, 8, 16, 32)


def architectures() -> str:
    """A row for each architecture."""
    rows = [[f"`{name}`", f"{kind.side} x {kind.side}", kind.summary] for name, kind in zoo.architectures().items()]
    return table(["name", "images", "what it is"], rows)


def networks(folder: Path = FOLDER) -> str:
    """A row for each network of the package."""
    rows = []
    for entry in zoo.entries().values():
        file = resources.files("ftbc.zoo").joinpath("files", f"{entry.name}.safetensors")
        parameters = sum(values.numel() for values in zoo.load(entry.name).parameters())
        size = f"{len(file.read_bytes()) / 1e6:.1f} MB"
        minutes = _minutes(folder / f"{entry.name}.json")
        rows.append([f"`{entry.name}`", f"{entry.accuracy:.2f}", f"{parameters:,}", size, str(entry.epochs), minutes])
    return table(["network", "accuracy, %", "parameters", "file", "epochs", "minutes"], rows)


def _minutes(path: Path) -> str:
    if not path.is_file():
        return "-"
    epochs = json.loads(path.read_text())["epochs"]
    return f"{sum(_IMAGES / epoch['images_per_second'] for epoch in epochs) / 60:.0f}"


_IMAGES = 50_000


def commands() -> str:
    """How each network was made."""
    lines = (f"- `{entry.name}`: `{entry.command}`" for entry in zoo.entries().values())
    return "\n".join(lines)


def spiking(folder: Path = FOLDER) -> str:
    """The accuracy of the converted networks at each T, beside that of the ANN."""
    rows = [
        [f"`{name}`", recipe, f"{result['reference_accuracy']:.2f}", *cells]
        for name, recipe, result, cells in _converted(folder)
    ]
    if not rows:
        return "*Not measured yet: `ftbc evaluate NAME --recipe RECIPE --steps 32 --json results/train/...`.*"
    return table(["network", "recipe", "ANN", *(f"T = {t}" for t in STEPS)], rows)


def _converted(folder: Path) -> Iterator[tuple[str, str, dict[str, Any], list[str]]]:
    for name in zoo.entries():
        for path in sorted(folder.glob(f"{name}.*.json")):
            found = {row["steps"]: row for row in json.loads(path.read_text())["results"]}
            longest = found[max(found)]
            # One run shows all steps before its last: `qcfs` and its like are the same network at every T.
            cells = [f"{found.get(t, longest)['accuracy'][t - 1]:.2f}" if t <= max(found) else "-" for t in STEPS]
            yield name, path.stem.removeprefix(f"{name}."), longest, cells


BLOCKS = {"architectures": architectures, "networks": networks, "commands": commands, "spiking": spiking}

if __name__ == "__main__":
    fill(PAGE, BLOCKS)
