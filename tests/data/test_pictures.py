"""Pictures that stay in their files: the same labels and centre crops as read into memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ftbc.data import Images, Pictures, open_to_train, read_image_folder, write_npz
from ftbc.errors import FileError

COUNTS = {"train/a": 3, "train/b": 2, "val/b": 2, "val/c": 1}


def test_centre_crops_are_those_read_into_memory(make_folder):
    root = make_folder(COUNTS)
    for split, labels in (("train", [0, 0, 0, 1, 1]), ("val", [1, 1, 2])):
        pictures = Pictures.of(root, split, side=14)
        images = read_image_folder(root, split, resize=16, crop=14)
        assert pictures.labels.tolist() == images.labels.tolist() == labels and len(pictures) == len(labels)
        x, y = (torch.cat(parts) for parts in zip(*pictures, strict=True))
        assert torch.equal(x, images.tensor()) and torch.equal(y, images.labels)
        assert pictures.name == images.name


def test_batches_and_order(make_folder):
    pictures = Pictures.of(make_folder({"train/a": 5}), "train", side=7)
    small = Pictures(pictures.files, pictures.labels, 7, "few", batch=2)
    assert [len(x) for x, _ in small] == [2, 2, 1]
    assert torch.equal(pictures.centres(torch.tensor([4, 0]))[1], pictures.centres(torch.tensor([0]))[0])


def test_unreadable_pictures_are_named(make_folder):
    root = make_folder({"train/a": 2})
    (root / "train" / "a" / "1.JPEG").write_bytes(b"not a picture")
    pictures = Pictures.of(root, "train", side=8)
    for use in (
        lambda: list(pictures),
        lambda: pictures.crops(torch.tensor([1]), torch.tensor([[1.0, 1.0, 0.0, 0.0]])),
    ):
        with pytest.raises(FileError, match=r"1\.JPEG' cannot be read"):
            use()


def test_folders_stay_in_files_and_the_rest_comes_into_memory(make_folder, make_images, tmp_path):
    train, test = open_to_train(make_folder(COUNTS), side=10)
    assert isinstance(train, Pictures) and (len(train), len(test), train.side) == (5, 3, 10)
    for split in ("train", "test"):
        write_npz(tmp_path / f"few_{split}.npz", make_images(6))
    train, test = open_to_train(tmp_path, side=10)
    assert isinstance(train, Images) and train.images.shape == (6, 3, 32, 32)
    assert len(open_to_train("cifar10-sample", 32)[0]) == 512


def test_a_folder_without_a_test_split(make_folder):
    with pytest.raises(FileError, match="no test split"):
        open_to_train(make_folder({"train/a": 1}), side=10)


def test_grey_pictures_of_16_bits_are_not_clipped(make_folder):
    from PIL import Image

    root = make_folder({"train/a": 1})
    grey = np.linspace(0, 65535, 256).astype(np.uint16).reshape(16, 16)
    Image.fromarray(grey).save(root / "train" / "a" / "0.png")
    (root / "train" / "a" / "0.JPEG").unlink()
    images = read_image_folder(root, "train", resize=16, crop=16)
    assert torch.equal(images.images[0, 0].flatten(), torch.arange(256, dtype=torch.uint8))
