"""The shipped sample, and how it is drawn."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pytest
import torch

from ftbc.data import NORMALISATIONS, load_sample, make_sample, read_npz
from ftbc.errors import InputError


def test_shipped_sample_is_small_balanced_and_cifar10():
    calibration, test = load_sample()
    assert calibration.images.shape == (512, 3, 32, 32) and test.images.shape == (1000, 3, 32, 32)
    assert set(calibration.labels.bincount().tolist()) == {51, 52}
    assert test.labels.bincount().tolist() == [100] * 10
    assert calibration.normalise == test.normalise == NORMALISATIONS["cifar10"]
    for images in (calibration, test):
        x = images.tensor()
        assert x.mean((0, 2, 3)).abs().max() < 0.1 and (x.std((0, 2, 3)) - 1).abs().max() < 0.1
        assert len(images.images.flatten(1).unique(dim=0)) == len(images)
    packed = (files("ftbc.data") / "cifar10_sample.npz").read_bytes()
    assert len(packed) < 5_000_000


def test_calibration_and_test_share_no_image():
    calibration, test = load_sample()
    both = torch.cat([calibration.images, test.images]).flatten(1)
    assert len(both.unique(dim=0)) == 1512


def test_drawn_images_are_those_at_the_indices(tmp_path, make_images):
    train, test = make_images(1100, side=8), make_images(1200, side=8, seed=1)
    path = make_sample(train, test, tmp_path / "s.npz", seed=5)
    arrays = np.load(path)
    assert set(arrays) == {f"{s}_{k}" for s in ("calibration", "test") for k in ("images", "labels", "indices")}
    for split, source, count in (("calibration", train, 512), ("test", test, 1000)):
        drawn = read_npz(path, f"{split}_")
        indices = torch.from_numpy(arrays[f"{split}_indices"])
        assert len(drawn) == count == len(indices.unique())
        assert torch.equal(drawn.images, source.images[indices]) and torch.equal(drawn.labels, source.labels[indices])
    again = make_sample(train, test, tmp_path / "again.npz", seed=5)
    assert again.read_bytes() == path.read_bytes()
    other = np.load(make_sample(train, test, tmp_path / "other.npz", seed=6))
    assert not any(np.array_equal(arrays[f"{s}_indices"], other[f"{s}_indices"]) for s in ("calibration", "test"))


def test_too_few_images_leave_no_file(tmp_path, make_images):
    with pytest.raises(InputError, match="cannot draw 1000 of 999"):
        make_sample(make_images(600, side=2), make_images(999, side=2), tmp_path / "s.npz")
    assert not list(tmp_path.iterdir())
