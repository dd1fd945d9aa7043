"""Spikes as bits: each where it belongs, and back."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ftbc.simulate.event.packed import Packed, digits

SHAPES = [
    (1,),
    (16,),
    (17,),
    (33,),
    (64,),
    (65,),
    (130,),
    (5, 9),
    (70, 3),
    (3, 4, 5),
    (32, 1, 7),
    (48, 7, 1),
    (100, 2, 2),
]


def spikes(shape: tuple[int, ...], steps: int, images: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(len(shape) + shape[0])
    return (torch.rand((steps * images, *shape), generator=generator) < 0.5).to(dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_bit_has_its_place(shape: tuple[int, ...]) -> None:
    steps, images = 3, 2
    s = spikes(shape, steps, images)
    packed = Packed.of(s, steps)
    rows, columns = [1, 1, *shape[1:]][-2:]
    values = s.view(steps, images, shape[0], rows, columns).numpy()
    wanted = np.zeros((images, steps, rows, columns, -(-shape[0] // 64)), object)
    for t, n, c, y, x in np.argwhere(values):
        wanted[n, t, y, x, c // 64] += 1 << int(c % 64)
    assert packed.words.dtype == np.uint64
    assert np.array_equal(packed.words, wanted.astype(np.uint64))
    assert packed.words.nbytes == images * Packed.size(steps, shape)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("steps", "images"), [(1, 1), (3, 2), (2, 5)])
def test_there_and_back(shape: tuple[int, ...], dtype: torch.dtype, steps: int, images: int) -> None:
    s = spikes(shape, steps, images, dtype)
    found = Packed.of(s, steps).unpack(dtype)
    assert found.dtype == dtype and torch.equal(found, s)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [*SHAPES, (65, 9, 8)], ids=str)
def test_spikes_of_a_plane_are_counted(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    s = spikes(shape, 3, 2, dtype)
    found = Packed.of(s, 3).totals(dtype)
    assert found.dtype == dtype and torch.equal(found, s.flatten(2).sum(2) if s.ndim > 2 else s)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("steps", "images"), [(1, 1), (3, 2), (2, 5)])
def test_spikes_are_weighed_by_their_places(shape: tuple[int, ...], steps: int, images: int) -> None:
    s = spikes(shape, steps, images)
    packed = Packed.of(s, steps)
    weights = torch.randint(-9, 9, (3, *shape), generator=torch.Generator().manual_seed(0)).double()
    wanted = s.double().view(steps, images, 1, *shape) * weights
    assert torch.equal(packed.weigh(packed.places(weights)), wanted.sum(1).flatten(2).sum(2))


def test_any_order_in_memory() -> None:
    s = spikes((3, 4, 5), 2, 3).to(memory_format=torch.channels_last)
    assert not s.is_contiguous() and torch.equal(Packed.of(s, 2).unpack(torch.float32), s)


def test_in_two_threads(two_threads: None) -> None:
    """Large enough to be worth two threads."""
    s = spikes((16, 32, 32), 4, 9)
    assert torch.equal(Packed.of(s, 4).unpack(torch.float32), s)


@pytest.mark.parametrize("shape", [(3, 4, 6), (70, 5, 7), (130, 6, 2)], ids=str)
@pytest.mark.parametrize("pool", [(1, 1), (2, 2), (1, 2), (3, 2), (4, 2)])
def test_sums_over_a_pool(shape: tuple[int, int, int], pool: tuple[int, int]) -> None:
    s = spikes(shape, 2, 3)
    sums = Packed.of(s, 2).pooled(pool)
    wanted = torch.nn.functional.avg_pool2d(s, pool, pool, divisor_override=1)
    each = -(-shape[0] // 64)
    parts = [
        2**digit
        * Packed(np.ascontiguousarray(sums.words[..., each * digit : each * digit + each]), sums.shape).unpack(
            torch.float32
        )
        for digit in range(digits(pool))
    ]
    assert torch.equal(torch.stack(parts).sum(0), wanted)
    assert sums.words.shape[-1] == each * digits(pool)
