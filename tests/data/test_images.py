"""Images and Normalise: the arithmetic, the batches, and what is refused."""

from __future__ import annotations

import doctest
import importlib

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ftbc.data import NORMALISATIONS, Images, Normalise
from ftbc.errors import InputError


@pytest.mark.parametrize("name", NORMALISATIONS)
def test_presets_follow_the_equation(name):
    normalise = NORMALISATIONS[name]
    x = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16).repeat(2, 3, 1, 1)
    y = normalise(x)
    mean = torch.tensor(normalise.mean, dtype=torch.float64)[:, None, None]
    std = torch.tensor(normalise.std, dtype=torch.float64)[:, None, None]
    torch.testing.assert_close(y.double(), (x.double() / 255 - mean) / std, atol=1e-6, rtol=1e-6)
    assert y.dtype == torch.float32 and y.shape == x.shape
    assert torch.equal(normalise(x.double()), y)


def test_symmetric_is_minus_one_to_one():
    x = torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1).expand(2, 3, 1, 1)
    assert torch.allclose(NORMALISATIONS["symmetric"](x)[:, 0, 0, 0], torch.tensor([-1.0, 1.0]))


def test_result_is_contiguous_for_channels_last_input():
    x = torch.zeros(2, 8, 8, 3, dtype=torch.uint8).permute(0, 3, 1, 2)
    assert not x.is_contiguous() and NORMALISATIONS["unit"](x).is_contiguous()


@pytest.mark.parametrize("shape", [(2, 3, 8, 5), (1, 3, 1, 1), (4, 3, 1, 7)])
def test_the_memory_order_can_stay(shape):
    normalise, x = NORMALISATIONS["cifar10"], torch.randint(0, 256, shape, dtype=torch.uint8)
    last = x.contiguous(memory_format=torch.channels_last)
    found = normalise.in_its_order(last)
    assert torch.equal(found, normalise(x)) and torch.equal(normalise.in_its_order(x), normalise(x))
    assert found.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("mean", "std"),
    [((0.5,), (0.5, 0.5)), ((), ()), ((0.0,), (0.0,)), ((0.0,), (-1.0,)), ((0.0,), (float("nan"),))],
)
def test_impossible_normalisations_are_refused(mean, std):
    with pytest.raises(InputError):
        Normalise(mean, std)


@pytest.mark.parametrize(
    "x", [torch.zeros(3, 4, 4), torch.zeros(1, 1, 4, 4), torch.zeros(1, 3, 4, 4, dtype=torch.int64)]
)
def test_normalise_refuses_wrong_inputs(x):
    with pytest.raises(InputError, match="Normalise got"):
        NORMALISATIONS["unit"](x)


@settings(max_examples=30, deadline=None)
@given(count=st.integers(1, 30), batch=st.integers(1, 40))
def test_batches_hold_every_image_once_in_order(count, batch):
    pixels = torch.arange(count, dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 3, 2, 2).contiguous()
    images = Images(pixels, torch.arange(count), NORMALISATIONS["unit"], "ramp", batch)
    batches = list(images)
    assert all(len(x) == batch for x, _ in batches[:-1]) and 1 <= len(batches[-1][0]) <= batch
    assert torch.equal(torch.cat([y for _, y in batches]), images.labels)
    assert torch.equal(torch.cat([x for x, _ in batches]), images.tensor())
    assert torch.equal(images.tensor()[:, 0, 0, 0], torch.arange(count) / 255)
    assert len(images) == count


def test_take_subset_and_with(make_images):
    images = make_images(20)
    assert torch.equal(images.take(5).images, images.images[:5])
    chosen = images.subset([7, 3, 3])
    assert chosen.labels.tolist() == [7, 3, 3] and torch.equal(chosen.images[1], images.images[3])
    assert torch.equal(images.subset(torch.tensor([2])).images[0], images.images[2])
    other = images.with_normalise(NORMALISATIONS["unit"]).with_batch(4)
    assert other.batch == 4 and torch.equal(other.tensor(), images.images / 255)
    assert images.batch == 7 and images.normalise == NORMALISATIONS["cifar10"]
    assert chosen.name == other.name == "made" and chosen.batch == 7
    assert repr(images) == "Images('made', 20 of [3, 32, 32], batch=7)"


@pytest.mark.parametrize("n", [0, -1, 21])
def test_take_refuses_what_is_not_there(make_images, n):
    with pytest.raises(InputError, match="20 images"):
        make_images(20).take(n)


@pytest.mark.parametrize("indices", [[], [20], [-1], [0.5], [True, False], [[1]]])
def test_subset_refuses_impossible_indices(make_images, indices):
    with pytest.raises(InputError):
        make_images(20).subset(indices)


PIXELS, LABELS = torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.tensor([0, 1])


@pytest.mark.parametrize(
    ("images", "labels", "batch"),
    [
        (PIXELS.float(), LABELS, 1),
        (PIXELS[0], LABELS, 1),
        (PIXELS, LABELS.int(), 1),
        (PIXELS, LABELS[:, None], 1),
        (PIXELS, LABELS[:1], 1),
        (PIXELS[:0], LABELS[:0], 1),
        (PIXELS[:, :1], LABELS, 1),
        (PIXELS, LABELS - 1, 1),
        (PIXELS, LABELS, 0),
    ],
)
def test_images_refuses_tensors_that_do_not_fit(images, labels, batch):
    with pytest.raises(InputError, match="'mine'") as caught:
        Images(images, labels, NORMALISATIONS["unit"], "mine", batch)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("module", ["images", "balance", "sample", "locate"])
def test_examples_in_docstrings_run(module):
    result = doctest.testmod(importlib.import_module(f"ftbc.data.{module}"))
    assert result.attempted and not result.failed
