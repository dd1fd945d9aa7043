"""NIR files in the programs they were written for: each reads them, runs them, and does what we say it does.

The programs are in environments of their own, which ``make test-interop`` makes; FTBC_INTEROP names the folder.
Spikes and outputs are compared with those that `ftbc.export.semantics` predicts, and with our own network's.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import ftbc
from ftbc.export import DIALECTS
from ftbc.export.agreement import Agreement, Spikes, agreement, recorded
from ftbc.export.clock import ticks
from ftbc.export.semantics import SOFT, Semantics
from ftbc.network import Layer
from tests.export.networks import STEPS, converted
from tests.export.test_real_networks import NETWORKS as WHOLE
from tests.export.test_real_networks import RECIPE as FEW

FOLDER = os.environ.get("FTBC_INTEROP")
PEERS = Path(__file__).parent / "peers"
pytestmark = pytest.mark.skipif(FOLDER is None, reason="run by make test-interop, which makes the environments")

# (program, further arguments, its neurons, the environment it is in)
PROGRAMS = {
    "SpikingJelly": ("spikingjelly", (), DIALECTS["spikingjelly"].semantics, ".venv-interop"),
    "snnTorch": ("snntorch", (), DIALECTS["snntorch"].semantics, ".venv-interop"),
    "Norse": ("norse", (), DIALECTS["norse"].semantics, ".venv-interop"),
    "Norse, reset_subtract": ("norse", ("subtract",), SOFT, ".venv-interop"),
    "sinabs": ("sinabs", (), DIALECTS["sinabs"].semantics, ".venv-interop-old"),
}
CASES = [
    (program, name, bias)
    for program, (dialect, *_) in PROGRAMS.items()
    for name in ("hidden", "plain", "mobile", "residual", "joined", "waves")
    for bias in ("clock", "mean")
    if DIALECTS[dialect].joins or name in ("hidden", "plain", "mobile")
]


@pytest.mark.parametrize(("program", "name", "bias"), CASES)
def test_programs_do_what_is_predicted(program: str, name: str, bias: str, tmp_path: Path) -> None:
    snn, images = converted(name)
    predicted, ours = _compared(program, snn.float(), images.float(), bias, tmp_path)
    assert predicted.equal and predicted.largest < 1e-5, predicted
    assert ours.equal == (PROGRAMS[program][2] is SOFT and bias == "clock"), ours
    _note(program, name, bias, predicted, ours)


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("SpikingJelly", "resnet20"),
        ("snnTorch", "resnet20"),
        ("Norse, reset_subtract", "vgg16"),
        ("Norse, reset_subtract", "mobilenet-v1"),
    ],
)
def test_whole_networks(program: str, name: str, tmp_path: Path) -> None:
    calibration, test = ftbc.data.load("cifar10-sample", calibration=32, test=10)
    snn = ftbc.convert(WHOLE[name]().eval(), calibration, STEPS, FEW)
    predicted, ours = _compared(program, snn, test.tensor()[:2], "clock", tmp_path)
    assert predicted.share > 0.9999 and ours.spikes > 10_000, predicted
    assert (ours.share > 0.9999) == (PROGRAMS[program][2] is SOFT), ours
    _note(program, name, "clock", predicted, ours)


def _compared(
    program: str, snn: ftbc.SpikingNetwork, images: Tensor, bias: str, folder: Path
) -> tuple[Agreement, Agreement]:
    """What a program does beside what is predicted, and beside our network."""
    dialect, arguments, semantics, environment = PROGRAMS[program]
    ftbc.export.nir(snn, folder / "net.nir", dialect=dialect, bias=bias)
    back = ftbc.export.read_nir(folder / "net.nir")
    _run(dialect, arguments, environment, folder, _over_time(images, bias), [row.name for row in snn.layers()])
    predicted = _agreement(back, snn.layers(), images, semantics, folder)
    return predicted, _agreement(snn, snn.layers(), images, SOFT, folder)


def _over_time(images: Tensor, bias: str) -> Tensor:
    x = images.expand(STEPS, *images.shape)
    if bias == "mean":
        return x
    return torch.cat([x, ticks(STEPS, len(images), tuple(images.shape[2:]), images)], 2)


def _run(dialect: str, arguments: tuple[str, ...], environment: str, folder: Path, x: Tensor, names: list[str]) -> None:
    np.savez(folder / "in.npz", x=x.numpy(), names=np.array(names))
    python = Path(str(FOLDER)).resolve() / environment / "bin" / "python"
    files = [folder / name for name in ("net.nir", "in.npz", "out.npz")]
    result = subprocess.run(
        [python, PEERS / f"with_{dialect}.py", *files, *arguments],
        env={"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr[-2000:]


def _agreement(
    snn: ftbc.SpikingNetwork, layers: list[Layer], images: Tensor, semantics: Semantics, folder: Path
) -> Agreement:
    def found() -> Iterator[tuple[Tensor, Spikes]]:
        with np.load(folder / "out.npz") as file:
            arrays = {name: torch.from_numpy(file[name]) for name in file.files}
        outputs = arrays.pop("outputs")
        for t, output in enumerate(outputs):
            spikes = {name.removeprefix("spikes:"): array[t] for name, array in arrays.items()}
            for row in layers:  # neurons that pass the clock on stand behind those of the network
                wide = spikes[row.name]
                spikes[row.name], spikes[f"{row.name}_clock"] = wide[:, : row.shape[0]], wide[:, row.shape[0] :]
            yield output, spikes

    return agreement(recorded(snn.graph, images, STEPS, semantics.cell()), found())


def _note(program: str, name: str, bias: str, predicted: Agreement, ours: Agreement) -> None:
    """Add a row to the table of the documentation, which ``make test-interop`` makes."""
    target = os.environ.get("FTBC_INTEROP_TABLE")
    if target is not None:
        row = {"program": program, "network": name, "bias": bias, "predicted": predicted.share, "ours": ours.share}
        with Path(target).open("a") as file:
            file.write(json.dumps(row) + "\n")
