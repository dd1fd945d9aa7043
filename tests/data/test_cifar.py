"""The four official layouts, read from files made here byte by byte; damaged and foreign files."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from ftbc.data import NORMALISATIONS, read_cifar
from ftbc.errors import FileError, InputError

from .conftest import LAYOUTS, make_records, python2_pickle


@pytest.mark.parametrize("folder", LAYOUTS)
@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("inside", [True, False])
def test_reads_every_layout(make_cifar, folder, split, inside):
    root, expected = make_cifar(folder)
    images = read_cifar(root if inside else root.parent, split)
    pixels, labels = expected[split]
    assert images.images.shape == (len(labels), 3, 32, 32)
    assert np.array_equal(images.images.numpy().reshape(-1, 3072), pixels)
    assert images.labels.tolist() == labels
    name = "cifar10" if "cifar-10-" in folder else "cifar100"
    assert images.normalise == NORMALISATIONS[name] and images.name == f"{name} {split}"
    next(iter(images))


@pytest.mark.parametrize("folder", LAYOUTS)
@pytest.mark.parametrize("keep", [0, 1, 1000, -1])
def test_truncated_files_are_refused_by_name(make_cifar, folder, keep):
    root, _ = make_cifar(folder)
    name = LAYOUTS[folder][1][0]
    (root / name).write_bytes((root / name).read_bytes()[:keep])
    with pytest.raises(FileError, match=name) as caught:
        read_cifar(root, "test")
    assert "\n" not in str(caught.value)
    read_cifar(root, "train")


@pytest.mark.parametrize("folder", LAYOUTS)
def test_labels_out_of_range_are_refused(make_cifar, folder):
    root, _ = make_cifar(folder)
    pixels, _ = make_records(2, 10, 0)
    if folder.endswith(("py", "python")):
        key = "labels" if folder == "cifar-10-batches-py" else "fine_labels"
        content = python2_pickle(pixels, [0, 100], key)
    else:
        head = bytes([100]) if folder == "cifar-10-batches-bin" else bytes([0, 100])
        content = head + pixels[0].tobytes()
    (root / LAYOUTS[folder][1][0]).write_bytes(content)
    with pytest.raises(FileError, match="label"):
        read_cifar(root, "test")


@pytest.mark.parametrize(
    "content",
    [
        python2_pickle(*make_records(3, 10, 0), "fine_labels"),
        python2_pickle(make_records(3, 10, 0)[0][:, :100], [0, 1, 2], "labels"),
        python2_pickle(make_records(3, 10, 0)[0], [0, 1], "labels"),
        b"\x80\x02]q\x00.",
        b"GIF89a this is a picture",
    ],
)
def test_foreign_batches_are_refused(make_cifar, content):
    root, _ = make_cifar("cifar-10-batches-py")
    (root / "test_batch").write_bytes(content)
    with pytest.raises(FileError, match="test_batch"):
        read_cifar(root, "test")


def test_a_missing_batch_is_named(make_cifar):
    root, _ = make_cifar("cifar-10-batches-py")
    (root / "data_batch_3").unlink()
    with pytest.raises(FileError, match="lacks data_batch_3:"):
        read_cifar(root, "train")
    read_cifar(root, "test")


def test_both_data_sets_in_one_place_are_ambiguous(make_cifar):
    root, _ = make_cifar("cifar-10-batches-py")
    make_cifar("cifar-100-binary")
    with pytest.raises(FileError, match="both"):
        read_cifar(root.parent, "train")
    shutil.rmtree(root)
    assert read_cifar(root.parent, "train").name == "cifar100 train"


def test_other_folders_and_splits_are_refused(tmp_path):
    with pytest.raises(FileError, match="no CIFAR files"):
        read_cifar(tmp_path, "train")
    with pytest.raises(InputError, match="'validation'"):
        read_cifar(tmp_path, "validation")  # type: ignore[arg-type]
