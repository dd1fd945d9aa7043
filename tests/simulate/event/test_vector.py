"""Each vector operation against numpy, on random words and numbers, for every element and block."""

# pyright: reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
import pytest

from ftbc.simulate.event.kernel import SUMS, fits, put_scaled
from ftbc.simulate.event.vector import (
    add_counted_rows,
    add_rows,
    add_sums,
    add_where,
    copy_block,
    fire,
    half_word_at,
    in_stacks,
    put_spikes,
    word_at,
)
from ftbc.vectors import Block, registers

ELEMENTS = ("int16", "float32", "float64")
BLOCKS = (16, 32, 64)
every_block = pytest.mark.parametrize(("element", "channels"), [(e, c) for e in ELEMENTS for c in BLOCKS])


def numbers(shape: tuple[int, ...], element: str, seed: int = 0) -> np.ndarray:
    """Random multiples of 1/8: sums of them are exact in any order."""
    whole = np.random.default_rng(seed).integers(-900, 900, shape)
    return whole.astype(element) if element == "int16" else (whole / 8).astype(element)


def words(count: int, channels: int = 64, seed: int = 1) -> np.ndarray:
    """Random words, of a bit for each channel: the first is full, the last empty."""
    generator = np.random.default_rng(seed)
    bits = generator.random((count, channels)) < np.linspace(1, 0, count)[:, None]
    bits[1:-1, -1] = True  # the highest bit, which is the sign of a signed word
    return from_bits(bits)


def from_bits(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint64) << np.arange(bits.shape[-1], dtype=np.uint64)).sum(-1, dtype=np.uint64)


def bits_of(word: Any, channels: int) -> np.ndarray:
    return np.array([int(word) >> c & 1 for c in range(channels)], bool)


@cache
def operations(element: str, channels: int) -> Callable[..., Any]:
    """All operations for one block, in one compiled function."""
    size = Block(element, channels).size

    @numba.njit
    def run(what, at, weights, word, other):
        pixel = np.uint64(size)
        if what == 0:  # 2 x 3 pixels of membranes that lie in rows of 5
            add_rows(element, channels, 3, 2, at, np.uint64(5) * pixel, weights, np.uint64(6) * pixel, word)
        elif what == 1:
            add_where(element, channels, 3, 2, at, weights, other, np.uint64(8), np.uint64(40))
        elif what == 2:
            put_spikes(element, channels, at, word)
        elif what == 3:
            copy_block(element, channels, at, weights)
        elif what == 4:
            row, channel, digit = np.uint64(5) * pixel, np.uint64(6) * pixel, np.uint64(16)
            add_counted_rows(element, channels, 3, 2, at, row, weights, channel, word, other, digit, np.uint64(3))

    def call(what: int, v: np.ndarray, w: np.ndarray, word: Any = 0, more: np.ndarray | None = None) -> None:
        places = [np.uint64(values.ctypes.data) for values in (v, w, v if more is None else more)]
        run(what, places[0], places[1], np.uint64(word), places[2])

    return call


ROWS, WHERE, PUT, COPY, COUNTED = range(5)


@every_block
def test_rows_of_weights_are_added_for_each_bit(element: str, channels: int) -> None:
    run = operations(element, channels)
    weights = numbers((64, 2, 3, channels), element)
    for seed, word in enumerate(words(5)[:-1]):
        v = numbers((2, 5, channels), element, seed)
        wanted = v.copy()
        wanted[:, :3] += weights[bits_of(word, 64)].sum(0, dtype=element)
        run(ROWS, v, weights, word)
        assert np.array_equal(v, wanted)


@every_block
@pytest.mark.parametrize("empty", [(), (0,), (1,), (2,), (0, 1, 2)], ids=str)
def test_rows_are_added_as_often_as_digits_say(element: str, channels: int, empty: tuple[int, ...]) -> None:
    weights, used = numbers((64, 2, 3, channels), element), (1 << 64) - 3  # but for channel 1
    digits = np.zeros((3, 2), np.uint64)  # whose words lie 16 bytes apart
    digits[:, 0] = words(4)[:-1]
    digits[list(empty)] = 0
    counts = sum(2**d * bits_of(int(word) & used, 64).astype(element) for d, word in enumerate(digits[:, 0]))
    v = numbers((2, 5, channels), element)
    wanted = v.copy()
    wanted[:, :3] += np.einsum("c,cijk->ijk", counts, weights).astype(element)
    operations(element, channels)(COUNTED, v, weights, used, digits)
    assert np.array_equal(v, wanted)


@every_block
def test_weights_are_collected_where_bits_are_set(element: str, channels: int) -> None:
    run = operations(element, channels)
    weights = numbers((2, 3, channels), element)
    for seed in range(3):
        source = words(10, channels, seed).reshape(2, 5)
        v = numbers((channels,), element, seed)
        wanted = v.copy()
        for i in range(2):
            for j in range(3):
                wanted += np.where(bits_of(source[i, j], channels), weights[i, j], 0).astype(element)
        run(WHERE, v, weights, more=source)
        assert np.array_equal(v, wanted)


@every_block
def test_blocks_are_copied(element: str, channels: int) -> None:
    v, x = numbers((2, channels), element, 0), numbers((channels,), element, 1)
    wanted = np.stack([x, v[1]])
    operations(element, channels)(COPY, v, x)
    assert np.array_equal(v, wanted), "a block, and no more than a block"


@cache
def firing(element: str, channels: int, together: int, current: bool) -> Callable[..., np.ndarray]:
    """Fire groups of membranes: the words, one a pixel, of which each lies 16 bytes behind the one before."""
    pixel = Block(element, channels).size
    has_current = int(current)

    @numba.njit
    def run(v, x, x_group, bias, peak, sent, threshold, count):
        at = (np.uint64(v.ctypes.data), np.uint64(x.ctypes.data), np.uint64(bias.ctypes.data))
        to = (np.uint64(peak.ctypes.data), np.uint64(sent.ctypes.data))
        fire(
            element, channels, together, has_current, threshold, at[0], at[1], np.uint64(x_group), at[2], to[0], to[1],
            np.uint64(16), np.uint64(count),
        )  # fmt: skip

    def call(v, x, bias, peak, threshold, x_apart=1) -> np.ndarray:
        count = len(v) * channels // together
        sent = np.full((len(v), 2), 7, np.uint64)
        run(v, x, x_apart * pixel * (together // channels), bias, peak, sent, threshold, count)
        assert (sent[:, 1] == 7).all(), "a word a pixel, and no more"
        return sent[:, 0]

    return call


@every_block
@pytest.mark.parametrize("threshold", [1, 64])
@pytest.mark.parametrize("current", [False, True])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_membranes_fire_and_keep_the_rest(
    element: str, channels: int, threshold: int, current: bool, one_by_one: bool
) -> None:
    together = channels if one_by_one else 64
    v, x = (numbers((12, channels), element, seed) % threshold for seed in (0, 1))
    bias = np.tile(numbers((channels,), element, 2) % threshold, together // channels)
    x[:, 0] = 0
    v[5, 0], bias[::channels] = threshold - 1, 1  # just reached
    v[:, 1] = -1000
    u = v + x * current + bias[:channels]
    fired = u >= threshold
    peak = np.zeros(together, element)
    sent = firing(element, channels, together, current)(v, x, bias, peak, threshold)
    assert fired[5, 0] and not fired[:, 1].any() and not fired.all()
    assert np.array_equal(sent, from_bits(fired))
    assert np.array_equal(v, (u - threshold * fired).astype(element))


def test_currents_of_several_blocks_lie_side_by_side() -> None:
    """A block of 64 channels of each pixel; between them those of another block."""
    x = numbers((12, 2, 64), "float32")
    v, bias = np.zeros((12, 64), np.float32), np.zeros(64, np.float32)
    sent = firing("float32", 64, 64, True)(v, x[:, 1:], bias, bias.copy(), 1, x_apart=2)
    assert np.array_equal(sent, from_bits(x[:, 1] >= 1))


@pytest.mark.parametrize("channels", BLOCKS)
def test_the_peak_of_whole_numbers_is_what_membranes_were_left_with(channels: int) -> None:
    """For negative numbers one less than their size, which the type can always hold; over all groups."""
    left = np.zeros((3, channels), np.int16)
    left[0, :4] = [500, -500, -32768, 32000]
    left[2, :2] = [-600, 400]
    v, peak = left.copy(), np.full(channels, 3, np.int16)
    v[0, 3] += 700  # fires
    firing("int16", channels, channels, False)(v, v, np.zeros(channels, np.int16), peak, 700)
    assert np.array_equal(v, left)
    assert peak.tolist() == [599, 499, 32767, 32000, *[3] * (channels - 4)]


@pytest.mark.parametrize("element", ELEMENTS)
def test_currents_are_scaled_and_filled_up(element: str) -> None:
    values = numbers((7, 20), "float32")
    room = np.full((7, 32), 9, element)
    put_scaled(values, np.float32(8), np.float32(0), room)
    assert np.array_equal(room[:, :20], values * 8) and not room[:, 20:].any()


@pytest.mark.parametrize("element", ELEMENTS)
def test_currents_are_rounded_to_multiples_first(element: str) -> None:
    values = numbers((7, 20), "float32") / 16  # multiples of 1/128
    room = np.full((7, 32), 9, element)
    put_scaled(values, np.float32(8), np.float32(0.25), room)
    assert np.array_equal(room[:, :20], np.rint(values * 4) * 2) and not room[:, 20:].any()


@every_block
def test_bits_are_written_as_numbers(element: str, channels: int) -> None:
    for word in words(4):
        spikes = numbers((2 * channels,), element)
        after = spikes[channels:].copy()
        operations(element, channels)(PUT, spikes, spikes, word)
        assert np.array_equal(spikes[:channels], bits_of(word, channels)) and np.array_equal(spikes[channels:], after)


@every_block
@pytest.mark.parametrize(("shape", "bits"), SUMS.items())
def test_tables_of_sums_equal_rows_of_weights(
    element: str, channels: int, shape: tuple[int, int, int], bits: int
) -> None:
    """A row of pixels, whose windows of membranes overlap."""
    rows, columns, groups = shape
    block, pixels = Block(element, channels), 5
    if not fits(block, rows, columns):
        pytest.skip("too many membranes for the registers: there is no such job")
    size = block.size

    @numba.njit
    def run(v, sums, source):
        at, table, place = np.uint64(v.ctypes.data), np.uint64(sums.ctypes.data), np.uint64(source.ctypes.data)
        add_sums(
            element, channels, columns, rows, groups, bits, at, np.uint64(9 * size), table, place, np.uint64(16),
            np.uint64(pixels),
        )  # fmt: skip

    weights = numbers((groups, bits, rows, columns, channels), element) // 8
    sums = np.zeros((groups, 1 << bits, rows, columns, channels), element)
    for chosen in range(1 << bits):
        sums[:, chosen] = weights[:, bits_of(chosen, bits)].sum(1, dtype=element)
    source = np.zeros((pixels, 2), np.uint64)
    source[:, 0] = words(pixels, groups * bits)
    source[:, 1] = 0xFFFFFFFFFFFFFFFF  # of a pixel that is not of the lattice
    v = numbers((rows, 9, channels), element)
    wanted = v.copy()
    for x, word in enumerate(source[:, 0]):
        spikes = bits_of(word, groups * bits)
        wanted[:, x : x + columns] += weights.reshape(-1, rows, columns, channels)[spikes].sum(0, dtype=element)
    run(v, in_stacks(sums, block).astype(element), source)
    assert np.array_equal(v, wanted)


def test_words_are_read() -> None:
    @numba.njit
    def run(memory):
        at = np.uint64(memory.ctypes.data)
        return word_at(at), half_word_at(at), half_word_at(at + np.uint64(4))

    word = 0xFEDCBA9876543210
    assert run(np.array([word], np.uint64)) == (word, word & 0xFFFFFFFF, word >> 32)


def test_blocks_are_made_of_whole_vectors() -> None:
    for element in ELEMENTS:
        for channels in (*BLOCKS, 48, 128, 192, 256):
            block = Block(element, channels)
            assert block.lanes * block.vectors == channels
            assert block.lanes * block.size // channels <= registers()[0]
