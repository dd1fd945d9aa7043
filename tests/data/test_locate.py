"""Names and paths: which reader they reach, and what is said when they reach none."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from ftbc.data import load, read, write_npz
from ftbc.errors import FileError, InputError

from .conftest import LAYOUTS


def test_the_sample_is_found_by_name():
    calibration, test = load("cifar10-sample")
    assert (len(calibration), len(test)) == (512, 1000)
    calibration, test = load("cifar10-sample", calibration=20, test=30, seed=1)
    assert calibration.labels.bincount().tolist() == [2] * 10 and test.labels.bincount().tolist() == [3] * 10


@pytest.mark.parametrize("folder", LAYOUTS)
def test_official_folders_give_both_splits(make_cifar, folder):
    root, expected = make_cifar(folder)
    for place in (root, str(root.parent)):
        train, test = load(place)
        assert train.labels.tolist() == expected["train"][1] and test.labels.tolist() == expected["test"][1]


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_npz_folders_and_files(tmp_path, make_images, name):
    write_npz(tmp_path / f"{name}_train.npz", make_images(40))
    write_npz(tmp_path / f"{name}_test.npz", make_images(20, seed=1))
    train, test = load(tmp_path, calibration=10)
    assert (len(train), len(test), train.name, test.name) == (10, 20, f"{name}_train", f"{name}_test")
    for split in ("train", "test"):
        assert torch.equal(read(tmp_path / f"{name}_test.npz", split).images, test.images)
    with pytest.raises(InputError, match="one file"):
        load(tmp_path / f"{name}_test.npz")


def test_image_folders(make_folder):
    root = make_folder({"train/a": 3, "train/b": 3, "val/b": 2})
    train, test = load(root, calibration=4)
    assert train.labels.bincount().tolist() == [2, 2] and test.labels.tolist() == [1, 1]
    assert train.images.shape == (4, 3, 224, 224)


def test_several_files_of_a_split_are_ambiguous(tmp_path, make_images):
    for name in ("cifar10_train.npz", "cifar100_train.npz"):
        write_npz(tmp_path / name, make_images(2))
    with pytest.raises(FileError, match=r"cifar100_train\.npz, cifar10_train\.npz"):
        read(tmp_path, "train")


@pytest.mark.parametrize("name", ["cifar10", "cifar10_sample", "CIFAR10-sample", "x"])
def test_unknown_names_get_the_nearest(name):
    with pytest.raises(InputError, match=f"'{name}'.*'cifar10-sample'"):
        load(name)


def test_paths_that_hold_nothing_are_refused(tmp_path):
    with pytest.raises(FileError, match="does not exist"):
        load(tmp_path / "none")
    with pytest.raises(FileError, match="does not exist"):
        read("none.npz", "test")
    with pytest.raises(FileError, match="holds no train split"):
        load(tmp_path)
    with pytest.raises(InputError, match="'validation'"):
        read(tmp_path, "validation")  # type: ignore[arg-type]
    (tmp_path / "cifar-10-python.tar.gz").write_bytes(b"")
    with pytest.raises(FileError, match=r"tar\.gz' is not a kind of file"):
        read(tmp_path / "cifar-10-python.tar.gz", "test")


def test_import_is_lean():
    code = (
        "import sys, ftbc.data; print([m for m in ('PIL', 'matplotlib', 'torchvision', 'typer') if m in sys.modules])"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert run.stdout.strip() == "[]"


def test_both_splits_have_one_normalisation_also_where_it_is_guessed(tmp_path):
    """Each file alone looks like another data set."""
    pixels = np.zeros((20, 32, 32, 3), np.uint8)
    for split, classes in (("train", 20), ("test", 10)):
        np.savez(tmp_path / f"x_{split}.npz", images=pixels, labels=np.arange(20) % classes)
    train, test = load(tmp_path)
    assert train.normalise == test.normalise
