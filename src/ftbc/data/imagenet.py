"""Image folders as ImageNet comes: one folder a class, pictures of any size."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from ftbc.data.balance import draw_balanced
from ftbc.data.decode import open_rgb, pillow, pixels_of
from ftbc.data.images import NORMALISATIONS, Images
from ftbc.errors import FileError, InputError

SUFFIXES = {".jpeg", ".jpg", ".png", ".bmp", ".webp"}
SPLITS = ("train", "val", "test")


def read_image_folder(
    folder: str | Path,
    split: str | None = None,
    resize: int = 256,
    crop: int = 224,
    limit: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Images:
    """Read ``folder/CLASS/*.JPEG``, or ``folder/SPLIT/CLASS/*.JPEG``, as uint8 ``[N, 3, crop, crop]``.

    Each picture is resized (bicubic) until its shorter side is ``resize`` and cut at its centre. The sorted class
    names give the labels; with a ``split`` those of all splits together, so that all number alike even if
    one lacks a class. ``limit`` keeps a class-balanced random subset, and only that is decoded.

    ``calibration = read_image_folder("imagenet", "train", limit=1000, seed=0)``
    """
    if not 1 <= crop <= resize:
        raise InputError(f"crop {crop} does not fit in resize {resize}: give 1 <= crop <= resize")
    folder = Path(folder).expanduser()
    files, labels = list_image_folder(folder, split)
    if limit is not None:
        chosen = draw_balanced(labels, limit, seed)
        files, labels = [files[i] for i in chosen.tolist()], labels[chosen]
    pixels = _room(len(files), crop, folder / (split or ""))
    for i, path in enumerate(files):
        pixels[i] = read_centre(path, resize, crop)
        if progress:
            progress(i + 1, len(files))
    return Images(pixels, labels, NORMALISATIONS["imagenet"], f"{folder.name} {split or ''}".rstrip())


def list_image_folder(folder: Path, split: str | None = None) -> tuple[list[Path], Tensor]:
    """The files of a folder or of its split, class by class, and their labels ``[N]``, numbered as above."""
    root = folder / split if split else folder
    places = [folder / name for name in (split, *SPLITS)] if split else [folder]
    classes = sorted({name for place in places for name in _classes(place)})
    files = [(path, label) for label, name in enumerate(classes) for path in _pictures(root / name)]
    if not files:
        raise FileError(f"'{root}' holds no class folders with images: give the folder that does, or its split")
    return [path for path, _ in files], torch.tensor([label for _, label in files])


def _classes(root: Path) -> list[str]:
    if not root.is_dir():
        return []
    return [path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")]


def _pictures(root: Path) -> list[Path]:
    if not root.is_dir():
        return []
    return sorted(p for p in root.iterdir() if p.suffix.lower() in SUFFIXES and not p.name.startswith("."))


def _room(count: int, side: int, root: Path) -> Tensor:
    try:
        return torch.empty(count, 3, side, side, dtype=torch.uint8)
    except RuntimeError as error:
        size = count * 3 * side**2 / 1e9
        raise InputError(f"'{root}' needs {size:.0f} GB for {count} images: set a limit to draw fewer") from error


def read_centre(path: Path, resize: int, crop: int) -> Tensor:
    """Resize and cut one picture to uint8 ``[3, crop, crop]``; rounding as torchvision's Resize and CenterCrop."""
    image = open_rgb(path, f"'{path}'")
    shorter = min(image.size)
    width, height = (int(resize * side / shorter) for side in image.size)
    image = image.resize((width, height), pillow().Resampling.BICUBIC)
    left, top = round((width - crop) / 2), round((height - crop) / 2)
    return pixels_of(image.crop((left, top, left + crop, top + crop)))
