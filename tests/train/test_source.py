"""Batches: parts that are shared out are the whole, in memory and in files, and inputs are what normalisation gives."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from ftbc.data import NORMALISATIONS, Images, Pictures
from ftbc.train import TrainSettings
from ftbc.train.ahead import ahead
from ftbc.train.source import Source, source_of

from .pictures import write_pictures

STILL = TrainSettings(padding=0, flip=False)


def _images(count: int = 30, side: int = 12) -> Images:
    pixels = torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8)
    return Images(pixels, torch.arange(count) % 3, NORMALISATIONS["cifar10"], "made")


def _sources(folder: Path, settings: TrainSettings) -> list[Source]:
    write_pictures(folder, {"train/a": 12, "train/b": 18})
    return [source_of(_images(), settings), source_of(Pictures.of(folder, "train", side=12), settings)]


@pytest.mark.parametrize("settings", [TrainSettings(), TrainSettings(cutout=4, flip=False), STILL], ids=str)
def test_parts_are_the_whole(settings: TrainSettings, tmp_path: Path) -> None:
    for source in _sources(tmp_path, settings):
        chosen = torch.randperm(30)[:8]

        def batch(part: slice, source: Source = source, chosen: Tensor = chosen) -> Tensor:
            return source.batch(chosen, part, torch.Generator().manual_seed(5))

        whole = batch(slice(0, 8))
        assert whole.shape == (8, 3, 12, 12) and whole.dtype == torch.float32
        assert whole.is_contiguous(memory_format=torch.channels_last)
        assert torch.equal(torch.cat([batch(slice(0, 4)), batch(slice(4, 8))]), whole)


def test_still_images_are_the_normalised_ones() -> None:
    images = _images()
    chosen = torch.tensor([4, 1, 7])
    found = source_of(images, STILL).batch(chosen, slice(0, 3), torch.Generator())
    assert torch.equal(found, images.normalise(images.images[chosen]))


def test_cutout_blanks_to_the_mean() -> None:
    images = _images()
    chosen = torch.arange(10)
    found = source_of(images, TrainSettings(padding=0, flip=False, cutout=4)).batch(
        chosen, slice(0, 10), torch.Generator()
    )
    blank = found == 0
    assert torch.equal(found[~blank], images.normalise(images.images[chosen])[~blank])
    assert all(4 <= count <= 16 for count in blank.all(1).flatten(1).sum(1).tolist())


def test_examples_are_spread_over_the_classes(tmp_path: Path) -> None:
    memory, files = _sources(tmp_path, TrainSettings())
    assert memory.examples(4).shape == files.examples(4).shape == (4, 3, 12, 12)
    assert len(memory.examples(1000)) == 30
    pictures = Pictures.of(tmp_path, "train", side=12)
    assert torch.equal(files.examples(30)[-1], next(iter(pictures))[0][-1])


def test_crops_of_pictures_are_parts_of_them(tmp_path: Path) -> None:
    """The picture is a ramp from left to right and another from top to bottom."""
    from PIL import Image

    (tmp_path / "train" / "a").mkdir(parents=True)
    across, down = torch.arange(200).repeat(100, 1), torch.arange(100).repeat(200, 1).T
    ramp = torch.stack([across, 2 * down, torch.zeros_like(down)], 2).to(torch.uint8)
    Image.fromarray(ramp.numpy()).save(tmp_path / "train" / "a" / "x.png")
    pictures = Pictures.of(tmp_path, "train", side=10)
    # A quarter of the area twice as wide as high is 100 x 50, at the left and at the bottom.
    crop = pictures.crops(torch.tensor([0]), torch.tensor([[0.25, 2.0, 0.0, 1.0]]))[0].float()
    assert crop[0, 0].tolist() == pytest.approx([10 * k + 4.5 for k in range(10)], abs=1.5)
    assert crop[1, :, 0].tolist() == pytest.approx([2 * (50 + 5 * k + 2) for k in range(10)], abs=2.5)
    # What would be higher than the picture is as high as it.
    tall = pictures.crops(torch.tensor([0]), torch.tensor([[1.0, 0.75, 0.5, 0.5]]))[0].float()
    assert tall[1, 0, 0] < 12 and tall[1, -1, 0] > 185


def test_ahead_gives_the_same_and_raises_what_goes_wrong() -> None:
    assert list(ahead(iter(range(100)))) == list(range(100)) and list(ahead(iter([]))) == []

    def broken():
        yield 1
        raise ValueError("here")

    items = ahead(broken())
    assert next(items) == 1
    with pytest.raises(ValueError, match="here"):
        next(items)
