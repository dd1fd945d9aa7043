"""Each vector operation against numpy, on random words and numbers, for every element and block."""

# pyright: reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
import pytest

from ftbc.simulate.event import vector
from ftbc.simulate.event.vector import (
    Block,
    add_block,
    add_rows,
    add_sums,
    add_where,
    fire,
    half_word_at,
    put_spikes,
    put_word,
    word_at,
)

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
    def run(what, at, weights, word, other, threshold):
        pixel = np.uint64(size)
        if what == 0:  # 2 x 3 pixels of membranes that lie in rows of 5
            add_rows(element, channels, 3, 2, at, np.uint64(5) * pixel, weights, np.uint64(6) * pixel, word)
        elif what == 1:
            add_where(element, channels, 3, 2, at, weights, other, np.uint64(8), np.uint64(40))
        elif what == 2:
            add_block(element, channels, at, weights)
        elif what == 3:
            return fire(element, channels, threshold, at, weights, other)
        elif what == 4:
            put_spikes(element, channels, at, word)
        return np.uint64(0)

    def call(
        what: int, v: np.ndarray, w: np.ndarray, word: Any = 0, more: np.ndarray | None = None, threshold: int = 0
    ) -> int:
        places = [np.uint64(values.ctypes.data) for values in (v, w, v if more is None else more)]
        return run(what, places[0], places[1], np.uint64(word), places[2], threshold)

    return call


ROWS, WHERE, ADD, FIRE, PUT = range(5)


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
def test_blocks_are_added(element: str, channels: int) -> None:
    v, x = numbers((2, channels), element, 0), numbers((channels,), element, 1)
    wanted = np.stack([v[0] + x, v[1]])
    operations(element, channels)(ADD, v, x)
    assert np.array_equal(v, wanted), "a block, and no more than a block"


@every_block
@pytest.mark.parametrize("threshold", [1, 64])
def test_membranes_fire_and_keep_the_rest(element: str, channels: int, threshold: int) -> None:
    v, bias = numbers((channels,), element, 0) % threshold, numbers((channels,), element, 1) % threshold
    v[0], bias[0] = threshold - 1, 1  # just reached
    v[1], bias[1] = -1000, 0
    peak = np.zeros(channels, element)
    u = v + bias
    fired = u >= threshold
    word = operations(element, channels)(FIRE, v, bias, more=peak, threshold=threshold)
    assert fired[0] and not fired[1] and not fired.all()
    assert np.array_equal(bits_of(word, 64)[:channels], fired) and int(word) >> channels == 0
    assert np.array_equal(v, (u - threshold * fired).astype(element))


@pytest.mark.parametrize("channels", BLOCKS)
def test_the_peak_of_whole_numbers_is_what_membranes_were_left_with(channels: int) -> None:
    """For negative numbers one less than their size, which the type can always hold."""
    left = np.zeros(channels, np.int16)
    left[:4] = [500, -500, -32768, 32000]
    v, peak = left.copy(), np.full(channels, 3, np.int16)
    v[3] += 700  # fires
    operations("int16", channels)(FIRE, v, np.zeros(channels, np.int16), more=peak, threshold=700)
    assert np.array_equal(v, left)
    assert peak.tolist() == [500, 499, 32767, 32000, *[3] * (channels - 4)]


@every_block
def test_bits_are_written_as_numbers(element: str, channels: int) -> None:
    for word in words(4):
        spikes = numbers((2 * channels,), element)
        after = spikes[channels:].copy()
        operations(element, channels)(PUT, spikes, spikes, word)
        assert np.array_equal(spikes[:channels], bits_of(word, channels)) and np.array_equal(spikes[channels:], after)


@pytest.mark.parametrize("element", ELEMENTS)
def test_tables_of_sums_equal_rows_of_weights(element: str) -> None:
    """The one shape that the kernel uses: two pixels of 16 channels, 3 x 4 membranes."""
    size = Block(element, 16).size

    @numba.njit
    def run(v, sums, word):
        at, table = np.uint64(v.ctypes.data), np.uint64(sums.ctypes.data)
        add_sums(element, 16, 4, 3, at, np.uint64(6 * size), table, np.uint64(12 * size), word)

    weights = numbers((8, 4, 3, 4, 16), element)
    sums = np.zeros((8, 16, 3, 4, 16), element)
    for chosen in range(16):
        sums[:, chosen] = weights[:, bits_of(chosen, 4)].sum(1, dtype=element)
    for seed, word in enumerate(words(5, 32)):
        v = numbers((3, 6, 16), element, seed)
        wanted = v.copy()
        wanted[:, :4] += weights.reshape(32, 3, 4, 16)[bits_of(word, 32)].sum(0, dtype=element)
        run(v, sums, word)
        assert np.array_equal(v, wanted)


def test_words_are_read_and_written() -> None:
    @numba.njit
    def run(memory):
        at = np.uint64(memory.ctypes.data)
        put_word(at + np.uint64(8), word_at(at))
        return half_word_at(at), half_word_at(at + np.uint64(4))

    memory = words(4, 64, 5)
    word = memory[0] = 0xFEDCBA9876543210
    halves = run(memory)
    assert halves == (word & 0xFFFFFFFF, word >> 32) and memory[1] == word


def test_blocks_are_made_of_whole_vectors() -> None:
    for element in ELEMENTS:
        for channels in (*BLOCKS, 48, 128, 192, 256):
            block = Block(element, channels)
            assert block.lanes * block.vectors == channels
            assert block.lanes * block.size // channels <= vector.registers()[0]
