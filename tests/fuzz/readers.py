"""Every reader of files, a real file or two for each, and what must hold whatever the bytes are."""

from __future__ import annotations

import functools
import pickle
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import ftbc
from ftbc.data import Images, Normalise, read_cifar, write_npz
from ftbc.errors import FileError, FtbcError
from ftbc.export.integer_file import read_integers
from ftbc.protocol.results_folder import ResultsFolder
from ftbc.search.space import read_space
from ftbc.train import TrainSettings
from ftbc.train.checkpoint import Checkpoint
from ftbc.train.plan import merged, plan_of, read_plan
from ftbc.zoo import Blueprint, blueprint_of, load_weights
from ftbc.zoo.blueprint import save_weights
from tests.data.conftest import make_records, python2_pickle
from tests.networks import INPUT_SHAPE, depthwise


@dataclass(frozen=True)
class Reader:
    """name: of the file that is read; real: some files as they should be; read: what a user would call."""

    name: str
    real: Callable[[Path], list[bytes]]
    read: Callable[[Path], Any]


class Ran(BaseException):
    """A file has made Python do what no reader does."""


_WATCHED = ("os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "subprocess.Popen", "socket.connect",
            "socket.__new__", "ctypes.dlopen", "shutil.rmtree", "os.remove", "os.rename", "pty.spawn")  # fmt: skip
_armed = [False]


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _armed[0] and event in _WATCHED:
        raise Ran(f"{event} {arguments!r:.200}")


@functools.cache
def watching() -> None:
    """From now on a reader that does what is watched for fails."""
    sys.addaudithook(_watch)


def check(reader: Reader, content: bytes, folder: Path) -> bool:
    """Read a file of these bytes: it is read, or refused by one line. Whether it was read."""
    watching()
    path = folder / reader.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    _armed[0] = True
    try:
        reader.read(path)
    except FtbcError as error:
        text = str(error)
        assert len(text.splitlines()) == 1 and text.isprintable() and len(text) <= 2000, text
        return False
    finally:
        _armed[0] = False
    return True


def _network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2)).eval()


def _snn(folder: Path) -> list[bytes]:
    torch.manual_seed(0)
    small = ftbc.convert(_network(), torch.rand(8, 4), 2, "mean-square")
    quick = ftbc.recipe("ftbc", calibrate=(ftbc.FTBC(iterations=1),))
    joined = ftbc.convert(depthwise().float(), torch.rand(4, *INPUT_SHAPE), 2, quick)
    found = []
    for snn in (small, joined):
        snn.save(folder / "net.snn")
        found.append((folder / "net.snn").read_bytes())
    return found


def _recipes(folder: Path) -> list[bytes]:
    return [ftbc.recipe(name).to_toml().encode() for name in ("ftbc", "snnc-ap", "differential", "ltb")]


def _space(folder: Path) -> list[bytes]:
    return [
        b'base = "ftbc"\nsteps = [4, 8]\n[space]\n"calibrate.0.alpha" = { low = 0.01, high = 1.0, log = true }\n'
        b'"threshold" = { choices = [{ type = "MeanSquare" }, { type = "Percentile", percent = 99.9 }] }\n'
    ]


def _plan(folder: Path) -> list[bytes]:
    return [b'data = "x"\n[network]\narchitecture = "resnet20"\nactivation = "qcfs"\nlevels = 4\n[train]\nepochs = 3\n']


def _cifar_pickle(folder: Path) -> list[bytes]:
    pixels, labels = make_records(2, 10, 0)
    new = {"data": pixels, "labels": labels, "batch_label": "testing batch 1 of 1", "filenames": ["a", "b"]}
    return [python2_pickle(pixels, labels, "labels"), *(pickle.dumps(new, protocol) for protocol in (2, 3, 4))]


def _cifar_binary(folder: Path) -> list[bytes]:
    pixels, labels = make_records(3, 10, 0)
    return [b"".join(bytes([label]) + row.tobytes() for row, label in zip(pixels, labels, strict=True))]


def _weights(folder: Path) -> list[bytes]:
    found = []
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        torch.save(_network().state_dict(), folder / "net.pt", **options)
        found.append((folder / "net.pt").read_bytes())
    torch.save({"state_dict": _network().state_dict(), "epoch": 3}, folder / "net.pt")
    return [*found, (folder / "net.pt").read_bytes()]


def _safe_weights(folder: Path) -> list[bytes]:
    save_weights(_network(), folder / "net.safetensors", Blueprint("resnet20", classes=10))
    return [(folder / "net.safetensors").read_bytes()]


def _read_safe_weights(path: Path) -> None:
    blueprint_of(path)
    load_weights(_network(), path)


def _state(path: Path) -> tuple[Checkpoint, nn.Module, torch.optim.Optimizer]:
    model = _network()
    return Checkpoint(path, TrainSettings(epochs=2), 4, {}), model, torch.optim.SGD(model.parameters(), 0.1)


def _checkpoint(folder: Path) -> list[bytes]:
    state, model, optimiser = _state(folder / "net.checkpoint")
    state.keep(model, optimiser, [])
    return [(folder / "net.checkpoint").read_bytes()]


def _read_checkpoint(path: Path) -> None:
    state, model, optimiser = _state(path)
    state.resume(model, optimiser)


def _npz(folder: Path) -> list[bytes]:
    pixels = torch.randint(0, 256, (4, 3, 5, 5), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    write_npz(folder / "images.npz", Images(pixels, torch.arange(4), Normalise((0.5,) * 3, (0.2,) * 3), "noise"))
    packed = folder / "packed.npz"
    np.savez_compressed(packed, images=pixels.numpy(), labels=np.arange(4))
    return [(folder / "images.npz").read_bytes(), packed.read_bytes()]


def _integers(folder: Path) -> list[bytes]:
    snn = ftbc.convert(_network(), torch.rand(8, 4), 2, "mean-square")
    ftbc.export.weights(snn, folder / "net.npz", torch.rand(8, 4))
    return [(folder / "net.npz").read_bytes()]


_KEY = {"what": "kept", "steps": 4}


def _kept(folder: Path) -> list[bytes]:
    place = ResultsFolder(folder / "kept")
    place.prepare()
    place.write(_KEY, {"accuracy": [1.0, 2.5]}, {"command": "ftbc compare"})
    return [place.place(_KEY).read_bytes()]


def _read_kept(path: Path) -> None:
    """What is damaged is named in the log and measured again."""
    if ResultsFolder(path.parent).read(_KEY) is None:
        raise FileError("it is measured again")


def _nir(folder: Path) -> list[bytes]:
    ftbc.export.nir(ftbc.convert(_network(), torch.rand(8, 4), 2, "mean-square"), folder / "net.nir")
    return [(folder / "net.nir").read_bytes()]


READERS = {
    "snn": Reader("net.snn", _snn, ftbc.load),
    "recipe": Reader("recipe.toml", _recipes, ftbc.read_recipe),
    "space": Reader("space.toml", _space, read_space),
    "plan": Reader("plan.toml", _plan, lambda path: plan_of(merged(read_plan(path)))),
    "cifar pickle": Reader("pickle/test_batch", _cifar_pickle, lambda path: read_cifar(path.parent, "test")),
    "cifar binary": Reader("binary/test_batch.bin", _cifar_binary, lambda path: read_cifar(path.parent, "test")),
    "weights": Reader("net.pt", _weights, lambda path: load_weights(_network(), path)),
    "safe weights": Reader("net.safetensors", _safe_weights, _read_safe_weights),
    "checkpoint": Reader("net.checkpoint", _checkpoint, _read_checkpoint),
    "npz": Reader("images.npz", _npz, lambda path: ftbc.data.read_npz(path)),
    "integers": Reader("net.npz", _integers, read_integers),
    "kept": Reader(ResultsFolder("kept").place(_KEY).as_posix(), _kept, _read_kept),
    "nir": Reader("net.nir", _nir, lambda path: ftbc.export.read_nir(path)),
}


@functools.cache
def real_files(name: str) -> list[bytes]:
    """Files as they should be, of one reader."""
    with tempfile.TemporaryDirectory() as folder:
        return READERS[name].real(Path(folder))
