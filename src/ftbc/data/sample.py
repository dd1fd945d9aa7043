"""The small part of CIFAR-10 that ships with the package: enough to calibrate and to measure."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from ftbc.atomic import replacing
from ftbc.data.balance import draw_balanced
from ftbc.data.images import NORMALISATIONS, Images
from ftbc.data.npz import read_npz

FILE = "cifar10_sample.npz"
CALIBRATION, TEST = 512, 1000


def make_sample(train: Images, test: Images, path: str | Path, seed: int = 0) -> Path:
    """Draw 512 training and 1,000 test images, balanced over the classes, and write them to one .npz.

    Keys: ``calibration_`` and ``test_`` ``images`` [N, H, W, C], ``labels`` and ``indices`` (positions in the split
    they were drawn from).

    ``make_sample(read_cifar(folder, "train"), read_cifar(folder, "test"), "cifar10_sample.npz")``
    """
    path = Path(path).expanduser()
    calibration = _drawn("calibration", train, draw_balanced(train.labels, CALIBRATION, seed))
    measured = _drawn("test", test, draw_balanced(test.labels, TEST, seed))
    with replacing(path) as file:
        np.savez_compressed(file, **calibration, **measured)
    return path


def load_sample() -> tuple[Images, Images]:
    """Load the shipped sample: 512 calibration images and 1,000 test images of CIFAR-10.

    >>> calibration, test = load_sample()
    >>> len(calibration), len(test)
    (512, 1000)
    """
    with as_file(files("ftbc.data") / FILE) as path:
        calibration, test = (read_npz(path, prefix, NORMALISATIONS["cifar10"]) for prefix in ("calibration_", "test_"))
    return calibration, test


def _drawn(prefix: str, images: Images, indices: Tensor) -> dict[str, Any]:
    chosen = images.subset(indices)
    return {
        f"{prefix}_images": chosen.images.permute(0, 2, 3, 1).contiguous().numpy(),
        f"{prefix}_labels": chosen.labels.numpy(),
        f"{prefix}_indices": indices.numpy(),
    }
