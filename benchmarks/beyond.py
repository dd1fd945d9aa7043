"""What each piece of the recipe 'best' brings: one after another, measured on training images that none of them saw.

    python -m benchmarks.beyond resnet20-pad --weights resnet20-12fca82f.th --data CIFAR10 --normalise imagenet
    python -m benchmarks.beyond --write

The first writes results/beyond-NAME.json, the second puts the tables of all of these into docs/beyond-ftbc.md. Test
images are not touched: calibration images and those that are measured on are disjoint parts of the training split, so
that settings may be chosen by these figures. A network knows its training images better than others: methods can be
compared on them, but the level is too high.
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import replace
from pathlib import Path

import torch

import ftbc
from benchmarks.speed_tables import table
from ftbc import data
from ftbc.atomic import replacing
from ftbc.calibrate import CorrelationSearch, Gain, QuantileBias, ReadOut, Refit
from ftbc.cli.options import find_model, find_steps
from ftbc.data import Images
from ftbc.data.balance import draw_balanced

FOLDER, PAGE = Path("results"), Path("docs/beyond-ftbc.md")
_BLOCK = re.compile(r"(<!-- table (?P<name>[a-z0-9-]+): [^>]*-->\n).*?(<!-- end -->)", re.DOTALL)
_SPLIT = 1234

_PLAIN = Refit(rounds=0, partial=0.0)
_AWARE = Refit(partial=0.0)
_SEARCH = (QuantileBias(), CorrelationSearch(), Gain())
LADDER = {
    "thresholds alone": (),
    "exact quantile bias": (QuantileBias(),),
    "+ refit of the weights": (_PLAIN, QuantileBias()),
    "+ search and gain": (_PLAIN, *_SEARCH),
    "+ ReLU-aware targets": (_AWARE, *_SEARCH),
    "+ read-out": (replace(_AWARE, last=False), *_SEARCH, ReadOut()),
    "+ partial sums: `best`": ftbc.recipe("best").calibrate,
}
"""Each with all before it; the target of every refit includes the shortcut."""
LEFT_OUT = {
    "without gain": tuple(piece for piece in ftbc.recipe("best").calibrate if not isinstance(piece, Gain)),
    "without search": tuple(
        piece for piece in ftbc.recipe("best").calibrate if not isinstance(piece, CorrelationSearch)
    ),
    "without refit": tuple(piece for piece in ftbc.recipe("best").calibrate if not isinstance(piece, Refit)),
}


def recipes() -> list[ftbc.Recipe]:
    """FTBC, then the ladder, then `best` without single pieces."""
    steps = {**LADDER, **LEFT_OUT}
    return [ftbc.recipe("ftbc"), *(ftbc.Recipe(calibrate=pieces, name=name) for name, pieces in steps.items())]


def halves(train: Images, held: int) -> tuple[Images, Images]:
    """Images to calibrate on and ``held`` images to measure on, which have none in common."""
    chosen = draw_balanced(train.labels, held, _SPLIT)
    rest = torch.ones(len(train), dtype=torch.bool)
    rest[torch.as_tensor(chosen)] = False
    return train.subset(rest.nonzero().flatten()), train.subset(chosen)


def measure(given: argparse.Namespace) -> Path:
    """All recipes at each T."""
    model = find_model(given.model, given.weights, given.classes)
    train = data.read(given.data, "train").with_normalise(data.NORMALISATIONS[given.normalise])
    calibration, held = halves(train, given.held)
    found = ftbc.compare(
        model, calibration, held, recipes(), find_steps(given.steps), seeds=given.seeds, images=given.images,
        engine="event", results=given.results, name=given.model,
        progress=lambda what, done, total: print(f"{what} {done}/{total}", flush=True) if what == "comparing" else None,
    )  # fmt: skip
    path = FOLDER / f"beyond-{given.name or given.model}.json"
    found.to_json(path)
    return path


def block(name: str, folder: Path = FOLDER) -> str:
    """The table of one network: a row for each recipe, a column for each T."""
    content = json.loads((folder / f"beyond-{name}.json").read_text())
    cells: dict[str, dict[int, dict[str, float]]] = {}
    for row in content["rows"]:
        cells.setdefault(row["recipe"], {})[row["steps"]] = row
    steps = content["steps"]
    rows = [[name, *(f"{own[t]['accuracy']:.1f}" for t in steps)] for name, own in cells.items()]
    return table(["", *(f"T = {t}" for t in steps)], rows)


def write(page: Path = PAGE, folder: Path = FOLDER) -> None:
    """Put all tables into the page."""
    text = _BLOCK.sub(lambda match: f"{match[1]}{block(match['name'], folder)}\n{match[3]}", page.read_text())
    with replacing(page) as file:
        file.write(text.encode())


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.beyond", description=__doc__)
    parser.add_argument("model", nargs="?", help="as for ftbc compare")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--classes", type=int)
    parser.add_argument("--data")
    parser.add_argument("--normalise", default="cifar10")
    parser.add_argument("--steps", default="1,4")
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--held", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--name")
    parser.add_argument("--results", type=Path, default=Path("comparison"))
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args(arguments)
    if given.write:
        write()
    else:
        print(measure(given))


if __name__ == "__main__":
    main()
