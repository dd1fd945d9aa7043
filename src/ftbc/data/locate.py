"""From a name or a path to images: which reader a file or folder needs."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

from ftbc.data.balance import draw_balanced
from ftbc.data.cifar import find_layout, read_cifar
from ftbc.data.imagenet import read_image_folder
from ftbc.data.images import Images, Split
from ftbc.data.npz import read_npz
from ftbc.data.pictures import Pictures
from ftbc.data.sample import load_sample
from ftbc.errors import FileError, InputError

SAMPLES = {"cifar10-sample": load_sample}
IMAGE_FOLDERS = {"train": ("train",), "test": ("val", "test")}


def load(
    source: str | Path,
    calibration: int | None = None,
    test: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Images, Images]:
    """Load ``(images to calibrate on, images to measure on)`` by name or from a folder that holds both splits.

    The first are the training split, or ``calibration`` images of it, the second the test split or ``test`` images
    of it, each drawn class-balanced under ``seed``.

    >>> calibration, test = load("cifar10-sample", calibration=128)
    >>> len(calibration), len(test)
    (128, 1000)
    """
    if str(source) in SAMPLES:
        first, second = SAMPLES[str(source)]()
        return _drawn(first, calibration, seed), _drawn(second, test, seed)
    path = _existing(source)
    if path.is_file():
        raise InputError(f"'{path}' is one file, not a training and a test split: use ftbc.data.read, or give a folder")
    first, second = read(path, "train", calibration, seed, progress), read(path, "test", test, seed, progress)
    return first.with_normalise(second.normalise), second  # where a file does not say it, both are to have the same


def read(
    path: str | Path,
    split: Split,
    limit: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Images:
    """Read one split from a folder, or a single .npz file whatever the split; ``limit`` draws a balanced subset.

    Folders: an official CIFAR archive, one with ``NAME_train.npz`` and ``NAME_test.npz``, or one with class folders
    of images in ``train/`` and ``val/``.

    ``test = read("~/data/imagenet", "test", limit=5000)``
    """
    if split not in ("train", "test"):
        raise InputError(f"no split '{split}': choose 'train' or 'test'")
    path = _existing(path)
    if path.is_file():
        if path.suffix != ".npz":
            raise FileError(f"'{path}' is not a kind of file that holds images here: give an .npz file or a folder")
        return _drawn(read_npz(path, progress=progress), limit, seed)
    packed = sorted(path.glob(f"*_{split}.npz"))
    if len(packed) > 1:
        raise FileError(f"'{path}' holds {', '.join(p.name for p in packed)}: give the file you mean")
    if packed:
        return _drawn(read_npz(packed[0], progress=progress), limit, seed)
    if find_layout(path):
        return _drawn(read_cifar(path, split), limit, seed)
    for name in IMAGE_FOLDERS[split]:
        if (path / name).is_dir():
            return read_image_folder(path, name, limit=limit, seed=seed, progress=progress)
    raise FileError(
        f"'{path}' holds no {split} split: it needs the official CIFAR files, a NAME_{split}.npz, "
        f"or class folders in {' or '.join(IMAGE_FOLDERS[split])}"
    )


def open_to_train(
    path: str | Path, side: int, progress: Callable[[int, int], None] | None = None
) -> tuple[Images | Pictures, Images | Pictures]:
    """``(training images, test images)``: image folders stay in their files, with crops of ``side``; else in memory."""
    if str(path) in SAMPLES:
        return load(path)
    folder = _existing(path)
    splits = [next((name for name in names if (folder / name).is_dir()), None) for names in IMAGE_FOLDERS.values()]
    packed = find_layout(folder) or any(folder.glob("*_train.npz")) if folder.is_dir() else True
    if packed or splits[0] is None or splits[1] is None:
        return load(folder, progress=progress)
    return Pictures.of(folder, splits[0], side), Pictures.of(folder, splits[1], side)


def _existing(source: str | Path) -> Path:
    path = Path(source).expanduser()
    if path.exists():
        return path
    if len(path.parts) > 1 or path.suffix:
        raise FileError(f"'{path}' does not exist: check the path")
    near = difflib.get_close_matches(str(source), SAMPLES, n=1, cutoff=0.0)
    raise InputError(
        f"no data set '{source}': the nearest known name is '{near[0]}', for others give the path of a folder"
    )


def _drawn(images: Images, limit: int | None, seed: int) -> Images:
    return images if limit is None else images.subset(draw_balanced(images.labels, limit, seed))
