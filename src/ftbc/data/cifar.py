"""CIFAR-10 and CIFAR-100 in the layouts of the official archives, python (pickles) and binary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ftbc.data.images import NORMALISATIONS, Images, Split
from ftbc.data.unpickle import read_batch
from ftbc.errors import FileError, InputError

PIXELS = 3 * 32 * 32
Records = tuple[np.ndarray, np.ndarray]  # pixels uint8 [N, 3072] and labels int64 [N]


@dataclass(frozen=True)
class Layout:
    """The names of one archive and how its files are read."""

    folder: str
    classes: int
    train: tuple[str, ...]
    test: tuple[str, ...]
    read: Callable[[Path, int], Records]

    def files(self, split: Split) -> tuple[str, ...]:
        """Name the files of a split, in order."""
        return self.train if split == "train" else self.test


def _read_python(path: Path, classes: int) -> Records:
    batch = read_batch(path)
    pixels, labels = batch.get("data"), batch.get("labels" if classes == 10 else "fine_labels")
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 2 or pixels.shape[1] != PIXELS:
        raise FileError(f"'{path}' holds no uint8 'data' of {PIXELS} values an image: it is not a CIFAR batch")
    if not isinstance(labels, list) or not all(isinstance(label, int) for label in labels):
        raise FileError(f"'{path}' holds no list of labels of CIFAR-{classes}: fetch the data set again")
    return pixels, _checked(labels, len(pixels), classes, path)


def _read_binary(path: Path, classes: int) -> Records:
    header = 1 if classes == 10 else 2  # CIFAR-100 puts the coarse label before the fine one
    try:
        content = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise FileError(f"cannot read '{path}' ({error.strerror or error}): check its permissions") from error
    if not len(content) or len(content) % (header + PIXELS):
        raise FileError(
            f"'{path}' has {len(content)} bytes, which is no whole number of {header + PIXELS}-byte records: "
            "it is truncated or not a CIFAR file, fetch the data set again"
        )
    records = content.reshape(-1, header + PIXELS)
    return records[:, header:], _checked(records[:, header - 1], len(records), classes, path)


def _checked(labels: list[int] | np.ndarray, images: int, classes: int, path: Path) -> np.ndarray:
    if not images or len(labels) != images or min(labels) < 0 or max(labels) >= classes:
        raise FileError(f"'{path}' does not hold one label of 0..{classes - 1} an image: fetch the data set again")
    return np.asarray(labels, dtype=np.int64)


_TEN = tuple(f"data_batch_{i}" for i in range(1, 6))
LAYOUTS = (
    Layout("cifar-10-batches-py", 10, _TEN, ("test_batch",), _read_python),
    Layout("cifar-100-python", 100, ("train",), ("test",), _read_python),
    Layout("cifar-10-batches-bin", 10, tuple(f"{name}.bin" for name in _TEN), ("test_batch.bin",), _read_binary),
    Layout("cifar-100-binary", 100, ("train.bin",), ("test.bin",), _read_binary),
)


def find_layout(folder: Path) -> tuple[Layout, Path] | None:
    """Tell which layout ``folder``, or the archive's own folder inside it, has; None if it has none of them."""
    found = [
        (layout, place)
        for layout in LAYOUTS
        for place in (folder, folder / layout.folder)
        if any((place / name).is_file() for name in layout.train + layout.test)
    ]
    if len({layout.classes for layout, _ in found}) > 1:
        raise FileError(f"'{folder}' holds both CIFAR-10 and CIFAR-100: name the folder of one of them")
    return found[0] if found else None


def read_cifar(folder: str | Path, split: Split) -> Images:
    """Read one split of CIFAR-10 or CIFAR-100 from an unpacked official archive, or from the folder around it.

    The result holds uint8 ``[N, 3, 32, 32]``, fine labels, and the usual normalisation of the data set.

    ``test = read_cifar("~/data/cifar-10-batches-py", "test")``
    """
    if split not in ("train", "test"):
        raise InputError(f"CIFAR has no split '{split}': choose 'train' or 'test'")
    folder = Path(folder).expanduser()
    found = find_layout(folder)
    if found is None:
        raise FileError(f"'{folder}' holds no CIFAR files (data_batch_1, train.bin ...): unpack the archive there")
    layout, place = found
    missing = [name for name in layout.files(split) if not (place / name).is_file()]
    if missing:
        raise FileError(f"'{place}' lacks {', '.join(missing)}: delete it and fetch the data set again")
    pixels, labels = zip(*(layout.read(place / name, layout.classes) for name in layout.files(split)), strict=True)
    images = torch.from_numpy(np.concatenate(pixels).reshape(-1, 3, 32, 32))
    name = f"cifar{layout.classes}"
    return Images(images, torch.from_numpy(np.concatenate(labels)), NORMALISATIONS[name], f"{name} {split}")
