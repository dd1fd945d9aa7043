"""How faithful exported files are: every format, at several T, read again and run on test images.

    python -m benchmarks.exports resnet20-cifar10 --steps 4,8,32 --test-images 500
    python -m benchmarks.exports --write

The first writes results/exports/NAME.json, the second puts the tables of all of these, and of what other programs did
with our files (`make test-interop`), into docs/export.md.
"""

from __future__ import annotations

import argparse
import copy
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ftbc
from benchmarks.page import fill
from benchmarks.speed_tables import table
from ftbc.atomic import make_folder, replacing
from ftbc.cli.options import find_calibration, find_model, find_steps, find_test
from ftbc.data import Images
from ftbc.measure.machine import machine

FOLDER = Path("results/exports")
INTEROP = FOLDER / "interop.jsonl"
PAGE = Path("docs/export.md")

Write = Callable[[ftbc.SpikingNetwork, Path, Images], Any]
FORMATS: dict[str, tuple[str, Write]] = {
    "NIR, clock": ("net.nir", lambda snn, path, _: ftbc.export.nir(snn, path)),
    "NIR, mean bias": ("net.nir", lambda snn, path, _: ftbc.export.nir(snn, path, bias="mean")),
    "NIR, clock, double": ("net.nir", lambda snn, path, _: ftbc.export.nir(snn.double(), path)),
    "ONNX, one step": ("net.onnx", lambda snn, path, _: ftbc.export.onnx(snn, path)),
    "ONNX, all steps": ("net.onnx", lambda snn, path, _: ftbc.export.onnx(snn, path, all_at_once=True)),
    "integers, 8 bits": ("net.npz", lambda snn, path, some: ftbc.export.weights(snn, path, some.tensor())),
    "integers, 6 bits": ("net.npz", lambda snn, path, some: ftbc.export.weights(snn, path, some.tensor(), bits=6)),
    "integers, 4 bits": ("net.npz", lambda snn, path, some: ftbc.export.weights(snn, path, some.tensor(), bits=4)),
}


def measure(given: argparse.Namespace) -> Path:
    """Convert a network for each T, write every format, and verify each file."""
    model = find_model(given.model, given.weights, None)
    test = find_test(given.data, given.normalise, given.test_images, 0)
    some = find_calibration(given.data, given.calibration, given.normalise, given.images, 0)
    some = some.with_normalise(test.normalise)
    rows = []
    for steps in find_steps(given.steps):
        snn = ftbc.convert(model, some, steps, given.recipe)
        for name in FORMATS:
            row = {"format": name, "steps": steps, **_row(snn, name, some.take(16), test)}
            rows.append(row)
            print(f"T = {steps:3}  {name:20} {row.get('refused') or row['line']}", flush=True)
    content = {"model": given.model, "data": test.name, "images": len(test), "recipe": given.recipe, "rows": rows}
    content["machine"] = machine()
    make_folder(FOLDER)
    path = FOLDER / f"{given.name or Path(given.model).stem}.json"
    with replacing(path) as file:
        file.write((json.dumps(content, indent=1) + "\n").encode())
    return path


def _row(snn: ftbc.SpikingNetwork, name: str, some: Images, test: Images) -> dict[str, Any]:
    ending, write = FORMATS[name]
    double = "double" in name
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ending
        try:
            write(copy.deepcopy(snn), path, some)
        except ftbc.errors.UnsupportedError as error:
            return {"refused": str(error)}
        network = copy.deepcopy(snn).double() if double else snn
        data = ((x.double(), y) if double else (x, y) for x, y in test)
        found = ftbc.export.verify(path, network, data).to_dict()
    accuracy = {key: values[-1] for key, values in found["score"]["others"].items()}
    line = f"{100 * found['share']:.4f} % of spikes, {accuracy['file']:.2f} % of {found['score']['network'][-1]:.2f} %"
    return {
        "line": line,
        "share": found["share"],
        "different": found["agreement"]["different"],
        "spikes": found["agreement"]["spikes"],
        "bytes": found["bytes"],
        "network": found["score"]["network"][-1],
        "accuracy": accuracy,
    }


def exports(folder: Path = FOLDER) -> str:
    """A table for each network: a row a format, its spikes, accuracies and size."""
    parts = []
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text())
        steps = list(dict.fromkeys(row["steps"] for row in content["rows"]))
        ours = {row["steps"]: row["network"] for row in content["rows"] if "network" in row}
        header = ["format", *(f"T = {t}: spikes equal" for t in steps), *(f"T = {t}: accuracy" for t in steps), "MB"]
        rows = [["the network", *["-"] * len(steps), *(f"{ours[t]:.2f}" for t in steps), "-"]]
        for name in dict.fromkeys(row["format"] for row in content["rows"]):
            own = {row["steps"]: row for row in content["rows"] if row["format"] == name}
            if any("refused" in row for row in own.values()):
                rows.append([name, "cannot be written", *[""] * (2 * len(steps))])
                continue
            spikes = ["all" if not own[t]["different"] else f"{100 * own[t]['share']:.4f} %" for t in steps]
            files = [f"{own[t]['accuracy']['file']:.2f}" for t in steps]
            rows.append([name, *spikes, *files, f"{own[steps[0]]['bytes'] / 1e6:.2f}"])
        programs = [row for row in content["rows"] if row["format"] == "NIR, clock" and "accuracy" in row]
        for program in [key for key in programs[0]["accuracy"] if key != "file"] if programs else []:
            told = {row["steps"]: row["accuracy"][program] for row in programs}
            rows.append([f"predicted for {program}", *["-"] * len(steps), *(f"{told[t]:.2f}" for t in steps), "-"])
        parts.append(
            f"**{content['model']}**, recipe {content['recipe']}, {content['images']:,} test images of "
            f"{content['data']}\n\n{table(header, rows)}\n\n"
            f"*`python -m benchmarks.exports`, `results/exports/{path.name}`.*"
        )
    return "\n\n".join(parts) or "*Not measured yet: `python -m benchmarks.exports NETWORK`.*"


def interop(path: Path = INTEROP) -> str:
    """A row for each program: which networks it read and ran, and how many spikes were as predicted, and as ours."""
    if not path.is_file():
        return "*Not measured yet: `make test-interop`.*"
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        rows.setdefault((row["program"], row["bias"]), []).append(row)
    cells = [
        [
            program,
            bias,
            ", ".join(row["network"] for row in found),
            f"{100 * min(row['predicted'] for row in found):.2f} %",
            f"{100 * min(row['ours'] for row in found):.2f} to {100 * max(row['ours'] for row in found):.2f} %",
        ]
        for (program, bias), found in rows.items()
    ]
    header = ["program", "bias", "reads and runs", "neuron-steps as predicted", "neuron-steps as in our network"]
    return table(header, cells) + "\n\n*`make test-interop`, `results/exports/interop.jsonl`.*"


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exports", description=__doc__)
    parser.add_argument("model", nargs="?", help="a network, as for ftbc convert")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/export.md")
    parser.add_argument("--name", help="of the result's file")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--data")
    parser.add_argument("--calibration")
    parser.add_argument("--normalise")
    parser.add_argument("--recipe", default="ftbc")
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--test-images", type=int, default=500)
    parser.add_argument("--steps", default="4,8,32")
    given = parser.parse_args()
    if given.model is not None:
        print(f"written to {measure(given)}")
    if given.write:
        fill(PAGE, {"exports": exports, "interop": interop})


if __name__ == "__main__":
    main()
