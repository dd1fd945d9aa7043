"""Image folders: labels, geometry, limits and damage."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from ftbc.data import NORMALISATIONS, read_image_folder
from ftbc.errors import FileError, InputError, MissingExtraError


def read_small(folder, split=None, **options):
    """Read with a small geometry, to be quick."""
    return read_image_folder(folder, split, resize=8, crop=6, **options)


def test_sorted_classes_give_the_labels(make_folder):
    root = make_folder({"n02": 2, "n01": 3, ".hidden": 1})
    images = read_small(root)
    assert images.labels.tolist() == [0, 0, 0, 1, 1]
    assert images.images[:, 0, 0, 0].tolist() == [10, 10, 10, 0, 0]  # n01 was made second: red is 10
    assert images.images[:3, 1, 0, 0].tolist() == [0, 10, 20]
    assert images.normalise == NORMALISATIONS["imagenet"] and images.images.shape == (5, 3, 6, 6)


def test_splits_number_their_classes_alike(make_folder):
    root = make_folder({"train/a": 1, "train/b": 1, "train/c": 1, "val/c": 2, "val/d": 1})
    assert read_small(root, "val").labels.tolist() == [2, 2, 3]
    assert read_small(root, "train").labels.tolist() == [0, 1, 2]
    assert read_small(root, "val").name == "pictures val"


def test_geometry(tmp_path):
    from PIL import Image

    (tmp_path / "a").mkdir()
    ramp = np.zeros((100, 200, 3), np.uint8)
    ramp[..., 0] = np.arange(200)
    ramp[..., 1] = 2 * np.arange(100)[:, None]
    Image.fromarray(ramp).save(tmp_path / "a" / "x.png")
    image = read_image_folder(tmp_path, resize=50, crop=40).images[0].float()
    # Shorter side 100 -> 50 halves both; the crop keeps columns 30..69 of 100 and rows 5..44 of 50.
    assert (image[0].mean(0) - (torch.arange(40) + 30) * 2 - 0.5).abs().max() <= 1
    assert (image[1].mean(1) - (torch.arange(40) + 5) * 4 - 1).abs().max() <= 1
    (tmp_path / "a" / "x.png").unlink()
    Image.fromarray(ramp.transpose(1, 0, 2)).convert("L").save(tmp_path / "a" / "y.JPG")
    assert read_image_folder(tmp_path).images.shape == (1, 3, 224, 224)


def test_limit_is_balanced_random_and_repeatable(make_folder):
    root = make_folder({"a": 6, "b": 6, "c": 1})
    images = read_small(root, limit=7, seed=1)
    assert images.labels.bincount().tolist() == [3, 3, 1]
    assert torch.equal(images.images, read_small(root, limit=7, seed=1).images)
    assert not torch.equal(images.images, read_small(root, limit=7, seed=2).images)
    with pytest.raises(InputError, match="1 to 13"):
        read_small(root, limit=14)


def test_only_the_limit_is_decoded_and_reported(make_folder):
    root = make_folder({"a": 5, "b": 5})
    seen = []
    read_small(root, limit=4, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("damage", [b"", b"not a picture", None])
def test_unreadable_images_are_named(make_folder, damage):
    root = make_folder({"a": 2})
    bad = root / "a" / "1.JPEG"
    bad.write_bytes(bad.read_bytes()[:60] if damage is None else damage)
    with pytest.raises(FileError, match=r"1\.JPEG' cannot be read") as caught:
        read_small(root)
    assert "\n" not in str(caught.value)


def test_folders_without_images_are_refused(tmp_path, make_folder):
    (tmp_path / "empty").mkdir()
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "notes.txt").write_text("")
    root = make_folder({"train/a": 1})
    for folder, split in ((tmp_path / "empty", None), (tmp_path / "flat", None), (root, "val"), (root, None)):
        with pytest.raises(FileError, match="no class folders with images"):
            read_small(folder, split)


@pytest.mark.parametrize(("resize", "crop"), [(10, 11), (10, 0)])
def test_impossible_geometry_is_refused(make_folder, resize, crop):
    with pytest.raises(InputError, match="crop"):
        read_image_folder(make_folder({"a": 1}), resize=resize, crop=crop)


def test_more_images_than_memory_ask_for_a_limit(make_folder):
    with pytest.raises(InputError, match="set a limit"):
        read_image_folder(make_folder({"a": 1}), resize=1 << 27, crop=1 << 27)


def test_absent_pillow_names_the_extra(make_folder, monkeypatch):
    root = make_folder({"a": 1})
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtraError, match=r"ftbc\[images\]"):
        read_small(root)
