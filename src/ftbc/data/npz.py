"""Images in one .npz file: plain pixels, or a row of JPEGs end to end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from ftbc.atomic import is_file, replacing
from ftbc.data.decode import open_rgb
from ftbc.data.images import NORMALISATIONS, Images, Normalise
from ftbc.errors import FileError, InputError

KEYS = ("images", "blob", "offsets", "labels", "mean", "std")


def read_npz(
    path: str | Path,
    prefix: str = "",
    normalise: Normalise | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Images:
    """Read an .npz that holds ``labels`` [N] and either ``images`` or ``blob`` and ``offsets``.

    ``images`` is uint8 ``[N, H, W, C]`` or ``[N, C, H, W]`` with 1 or 3 channels. ``blob`` is uint8 bytes and
    ``offsets`` [N+1]: image i is the JPEG ``blob[offsets[i]:offsets[i+1]]``, all of one size. With a ``prefix``
    the keys are ``prefix + "images"`` and so on, for files of several sets.

    Without ``normalise`` it is the file's own ``mean`` and ``std``, else the usual one for what the images look
    like: CIFAR for 32 x 32 (10 or 100 by the labels), ImageNet for 64 x 64 and more, else plain 0..1.

    ``test = read_npz("cifar10_test.npz")``
    """
    path = Path(path).expanduser()
    arrays = _arrays(path, prefix)
    if "labels" not in arrays or not ("images" in arrays or {"blob", "offsets"} <= arrays.keys()):
        raise FileError(
            f"'{path}' holds {sorted(arrays) or 'no known key'}: it needs '{prefix}labels' and '{prefix}images', "
            f"or '{prefix}blob' and '{prefix}offsets'"
        )
    pixels = _channels_first(arrays["images"], path) if "images" in arrays else _decoded(arrays, path, progress)
    labels = arrays["labels"]
    if labels.shape != pixels.shape[:1] or labels.dtype.kind not in "iu":
        raise FileError(
            f"'{path}' has labels {labels.dtype} {list(labels.shape)} for {len(pixels)} images: "
            "it needs one whole number an image"
        )
    labels = labels.astype(np.int64)
    try:
        chosen = normalise or _stored_normalise(arrays) or _usual_normalise(pixels, labels)
        return Images(torch.from_numpy(pixels), torch.from_numpy(labels), chosen, f"{path.stem} {prefix}".rstrip(" _"))
    except (InputError, ValueError) as error:
        raise FileError(f"'{path}' does not hold a set of images: {error}") from error


def write_npz(path: str | Path, images: Images) -> None:
    """Write images as ``[N, H, W, C]``, labels and normalisation, for ``read_npz`` to read back the same."""
    pixels = images.images.permute(0, 2, 3, 1).contiguous().numpy()
    mean, std = np.array(images.normalise.mean), np.array(images.normalise.std)
    with replacing(Path(path).expanduser()) as file:
        np.savez(file, images=pixels, labels=images.labels.numpy(), mean=mean, std=std)


def _arrays(path: Path, prefix: str) -> dict[str, np.ndarray]:
    if not is_file(path):
        raise FileError(f"'{path}' does not exist or is not a file: check the path")
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return {key: file[prefix + key] for key in KEYS if prefix + key in file.files}
    except Exception as error:  # a damaged archive makes zipfile and numpy raise nearly anything
        raise FileError(f"'{path}' is truncated or not an .npz of plain arrays: make or fetch it again") from error


def _channels_first(pixels: np.ndarray, path: Path) -> np.ndarray:
    if pixels.dtype == np.uint8 and pixels.ndim == 4 and len(pixels):
        if pixels.shape[3] in (1, 3):
            return np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
        if pixels.shape[1] in (1, 3):
            return np.ascontiguousarray(pixels)
    raise FileError(
        f"'{path}' has images {pixels.dtype} {list(pixels.shape)}: it needs uint8 [N, H, W, C] or [N, C, H, W] "
        "with 1 or 3 channels"
    )


def _decoded(arrays: dict[str, np.ndarray], path: Path, progress: Callable[[int, int], None] | None) -> np.ndarray:
    blob, offsets = arrays["blob"], arrays["offsets"]
    whole = blob.dtype == np.uint8 and blob.ndim == 1 and offsets.dtype.kind in "iu" and offsets.ndim == 1
    if not whole or len(offsets) < 2 or offsets[0] < 0 or offsets[-1] > len(blob) or (offsets[1:] < offsets[:-1]).any():
        raise FileError(f"'{path}' has offsets that do not cut its blob into images: it needs rising offsets [N+1]")
    total = len(offsets) - 1
    pixels = np.empty(0, np.uint8)
    for i in range(total):
        picture = np.asarray(open_rgb(blob[offsets[i] : offsets[i + 1]].tobytes(), f"'{path}', image {i}"))
        if i == 0:
            pixels = np.empty((total, 3, *picture.shape[:2]), np.uint8)
        if picture.shape[:2] != pixels.shape[2:]:
            raise FileError(
                f"'{path}', image {i} is {picture.shape[:2]} but the first {pixels.shape[2:]}: all need one size"
            )
        pixels[i] = picture.transpose(2, 0, 1)
        if progress:
            progress(i + 1, total)
    return pixels


def _stored_normalise(arrays: dict[str, np.ndarray]) -> Normalise | None:
    if "mean" not in arrays or "std" not in arrays:
        return None
    return Normalise(tuple(map(float, arrays["mean"].ravel())), tuple(map(float, arrays["std"].ravel())))


def _usual_normalise(pixels: np.ndarray, labels: np.ndarray) -> Normalise:
    channels, height, width = pixels.shape[1:]
    if channels == 3 and (height, width) == (32, 32) and labels.max() < 100:
        return NORMALISATIONS["cifar10" if labels.max() < 10 else "cifar100"]
    if channels == 3 and min(height, width) >= 64:
        return NORMALISATIONS["imagenet"]
    return Normalise((0.0,) * channels, (1.0,) * channels)
