"""Images in .npz files: plain pixels, JPEG blobs, round trips, damage."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch

from ftbc.data import NORMALISATIONS, Images, Normalise, read_npz, write_npz
from ftbc.errors import FileError, MissingExtraError


def test_round_trip_keeps_everything(tmp_path, make_images):
    images = make_images(12, side=9).with_normalise(Normalise((0.1, 0.2, 0.3), (0.4, 0.5, 0.6)))
    write_npz(tmp_path / "made.npz", images)
    back = read_npz(tmp_path / "made.npz")
    assert torch.equal(back.images, images.images) and torch.equal(back.labels, images.labels)
    assert back.normalise == images.normalise and back.name == "made"
    assert np.load(tmp_path / "made.npz")["images"].shape == (12, 9, 9, 3)
    assert [p.name for p in tmp_path.iterdir()] == ["made.npz"]
    assert read_npz(tmp_path / "made.npz", normalise=NORMALISATIONS["unit"]).normalise == NORMALISATIONS["unit"]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("first", [True, False])
def test_both_orders_of_axes(tmp_path, channels, first):
    pixels = np.random.default_rng(0).integers(0, 256, (5, channels, 6, 7), dtype=np.uint8)
    np.savez(tmp_path / "a.npz", images=pixels if first else pixels.transpose(0, 2, 3, 1), labels=np.arange(5))
    images = read_npz(tmp_path / "a.npz")
    assert np.array_equal(images.images.numpy(), pixels) and images.labels.tolist() == [0, 1, 2, 3, 4]
    assert images.tensor().max() <= 1


@pytest.mark.parametrize(
    ("side", "label", "name"), [(32, 9, "cifar10"), (32, 99, "cifar100"), (224, 999, "imagenet"), (28, 9, "unit")]
)
def test_usual_normalisation(tmp_path, side, label, name):
    np.savez(tmp_path / "a.npz", images=np.zeros((1, side, side, 3), np.uint8), labels=np.array([label]))
    assert read_npz(tmp_path / "a.npz").normalise == NORMALISATIONS[name]


def test_prefix_chooses_a_set(tmp_path):
    white = np.full((2, 4, 4, 3), 255, np.uint8)
    np.savez(
        tmp_path / "a.npz", test_images=white, test_labels=np.zeros(2, int), images=white[:1], labels=np.ones(1, int)
    )
    assert len(read_npz(tmp_path / "a.npz", "test_")) == 2
    assert read_npz(tmp_path / "a.npz").labels.tolist() == [1]
    assert read_npz(tmp_path / "a.npz", "test_").name == "a test"


def blob_of(pictures: list[bytes]) -> dict[str, Any]:
    """Lay encoded pictures end to end."""
    offsets = np.cumsum([0, *map(len, pictures)])
    return {"blob": np.frombuffer(b"".join(pictures), np.uint8), "offsets": offsets, "labels": np.arange(len(pictures))}


def test_blobs_are_decoded_in_order(tmp_path, picture):
    np.savez(tmp_path / "a.npz", **blob_of([picture((i * 40, 7, 200), (6, 5), "JPEG") for i in range(4)]))
    seen = []
    images = read_npz(tmp_path / "a.npz", progress=lambda done, total: seen.append((done, total)))
    assert images.images.shape == (4, 3, 5, 6) and images.labels.tolist() == [0, 1, 2, 3]
    expected = torch.tensor([[i * 40.0, 7, 200] for i in range(4)])
    assert (images.images.float().mean((2, 3)) - expected).abs().max() < 4
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_bad_blobs_are_refused(tmp_path, picture):
    good = blob_of([picture((0, 0, 0)), picture((9, 9, 9))])
    bad = [
        (good | {"offsets": good["offsets"][::-1]}, "offsets"),
        (good | {"offsets": good["offsets"] + 1}, "offsets"),
        (good | {"offsets": good["offsets"].astype(float)}, "offsets"),
        (good | {"offsets": good["offsets"][:1]}, "offsets"),
        (good | {"labels": np.arange(3)}, "labels"),
        (good | {"blob": np.zeros_like(good["blob"])}, "image 0"),
        (blob_of([picture((0, 0, 0)), picture((0, 0, 0), (4, 4))]), "one size"),
        ({"blob": good["blob"], "labels": good["labels"]}, "needs 'labels'"),
    ]
    for arrays, message in bad:
        np.savez(tmp_path / "a.npz", **arrays)
        with pytest.raises(FileError, match=message) as caught:
            read_npz(tmp_path / "a.npz")
        assert "a.npz" in str(caught.value) and "\n" not in str(caught.value)


def test_absent_pillow_names_the_extra(tmp_path, picture, monkeypatch):
    np.savez(tmp_path / "a.npz", **blob_of([picture((0, 0, 0))]))
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtraError, match=r"ftbc\[images\]"):
        read_npz(tmp_path / "a.npz")


PIXELS, LABELS = np.zeros((2, 4, 4, 3), np.uint8), np.array([0, 1])


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"images": PIXELS},
        {"labels": LABELS},
        {"images": PIXELS.astype(np.float32), "labels": LABELS},
        {"images": PIXELS[0], "labels": LABELS},
        {"images": PIXELS[:0], "labels": LABELS[:0]},
        {"images": PIXELS[:, :0], "labels": LABELS},
        {"images": np.zeros((2, 4, 4, 2), np.uint8), "labels": LABELS},
        {"images": PIXELS, "labels": LABELS[:1]},
        {"images": PIXELS, "labels": LABELS - 1},
        {"images": PIXELS, "labels": LABELS.astype(float)},
        {"images": PIXELS, "labels": np.array([{}, {}], dtype=object)},
        {"images": PIXELS, "labels": LABELS, "mean": np.zeros(3), "std": np.zeros(3)},
        {"images": PIXELS, "labels": LABELS, "mean": np.array(["x"]), "std": np.ones(1)},
    ],
)
def test_wrong_contents_are_refused(tmp_path, arrays):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(FileError, match=r"a\.npz") as caught:
        read_npz(tmp_path / "a.npz")
    assert "\n" not in str(caught.value)


def test_damaged_and_foreign_files_are_refused(tmp_path, make_images):
    write_npz(tmp_path / "a.npz", make_images(3))
    whole = (tmp_path / "a.npz").read_bytes()
    np.save(tmp_path / "b.npy", np.zeros(3))
    flipped = whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:]
    for content in (b"", b"hello", whole[:100], whole[:-30], flipped, (tmp_path / "b.npy").read_bytes()):
        (tmp_path / "a.npz").write_bytes(content)
        with pytest.raises(FileError, match=r"a\.npz"):
            read_npz(tmp_path / "a.npz")
    for missing in (tmp_path / "none.npz", tmp_path):
        with pytest.raises(FileError, match="does not exist"):
            read_npz(missing)


class Hostile:
    """Pickles as a call that makes a file."""

    def __init__(self, victim):
        self.victim = victim

    def __reduce__(self):
        return type(self.victim).touch, (self.victim,)


def test_pickles_inside_run_nothing(tmp_path):
    victim = tmp_path / "victim"
    np.savez(tmp_path / "a.npz", images=PIXELS, labels=np.array([Hostile(victim)], dtype=object))
    with pytest.raises(FileError, match="plain arrays"):
        read_npz(tmp_path / "a.npz")
    assert not victim.exists()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, make_images, monkeypatch):
    write_npz(tmp_path / "a.npz", make_images(3))

    def half(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(FileError, match="No space left"):
        write_npz(tmp_path / "a.npz", make_images(4))
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"] and len(read_npz(tmp_path / "a.npz")) == 3


def test_unwritable_places_are_named(tmp_path, make_images):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for target in (tmp_path / "none" / "a.npz", tmp_path / "file" / "a.npz", tmp_path / "folder"):
        with pytest.raises(FileError, match="cannot write"):
            write_npz(target, make_images(1))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]


def test_images_made_from_views_are_written_whole(tmp_path):
    pixels = torch.arange(48, dtype=torch.uint8).view(1, 4, 4, 3).permute(0, 3, 1, 2)
    write_npz(tmp_path / "a.npz", Images(pixels, torch.tensor([0]), NORMALISATIONS["unit"], "view"))
    assert torch.equal(read_npz(tmp_path / "a.npz").images, pixels)
