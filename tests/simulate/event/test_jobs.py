"""Jobs against a spike that is carried, naively, through pool, padding, stride and kernel."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ftbc.simulate.event import jobs as jobs_module
from ftbc.simulate.event.jobs import Job, _often, jobs_of, lattices
from ftbc.simulate.event.kernel import COLLECT_1, COLLECT_9, SPREADS, SUMS, spread, spread_sums
from ftbc.simulate.event.packed import digits
from ftbc.simulate.event.paths import Path
from ftbc.vectors import Block

quick = settings(deadline=None, derandomize=True, max_examples=200)


def reached(y: int, size: int, stride: int, padding: int, kernel: int) -> set[tuple[int, int]]:
    """Output rows that a spike in row y reaches, each with the index of its weight; by trying all."""
    outputs = range(-kernel - padding, size + kernel + padding)
    return {(out, i) for out in outputs for i in range(kernel) if out * stride + i - padding == y}


@quick
@given(*[st.integers(low, high) for low, high in ((1, 12), (1, 4), (0, 4), (1, 7))])
def test_lattices(size: int, stride: int, padding: int, kernel: int) -> None:
    found = set()
    for lattice in lattices(size, stride, padding, kernel):
        for j in range(lattice.count):
            for offset, i in enumerate(lattice.weights):
                entry = (lattice.first + j * lattice.step, lattice.low + j + offset, i)
                assert entry not in found, "a spike is counted twice"
                found.add(entry)
    assert found == {(y, *pair) for y in range(size) for pair in reached(y, size, stride, padding, kernel)}


tables = {spread_sums(*shape): (shape[2], channels) for shape, channels in SUMS.items()}


def carried_out(jobs: list[Job], words: np.ndarray, each: int, rows: int, columns: int, channels: int) -> np.ndarray:
    """What jobs add to the membranes ``[rows, columns, channels]``, done one spike at a time.

    words: ``[rows, columns, digits * each]``.
    """
    margin = 40
    v = np.zeros((rows + 2 * margin, columns + 2 * margin, channels))
    for job in jobs:
        for a in range(job.count[0]):
            for b in range(job.count[1]):
                y, x = job.target[0] + a + margin, job.target[1] + b + margin
                place = job.first[0] + a * job.step[0], job.first[1] + b * job.step[1]
                if job.kind in (COLLECT_1, COLLECT_9):
                    assert rows > y - margin >= 0 and columns > x - margin >= 0
                    for i, j in np.ndindex(job.weights.shape[:2]):
                        bits = _bits(words[place[0] + i, place[1] + j, job.first[2]])[:channels]
                        v[y, x] += bits * job.weights[i, j]
                    continue
                digits = [_bits(words[*place, job.first[2] + each * d]) & _bits(job.bits) for d in range(job.digits)]
                bits = digits[0]
                if job.kind in tables:
                    groups, channels_of_one = tables[job.kind]
                    by_group = bits[: groups * channels_of_one].reshape(groups, -1)
                    assert job.digits == 1 and not bits[groups * channels_of_one :].any()
                    added = job.weights[np.arange(groups), by_group @ (1 << np.arange(channels_of_one))].sum(0)
                else:
                    counts = np.sum([2**d * bits for d, bits in enumerate(digits)], 0)
                    added = np.tensordot(counts[: len(job.weights)], job.weights, 1)
                assert added.shape[:2] == job.reach
                v[y : y + job.reach[0], x : x + job.reach[1]] += added
    return v[margin : margin + rows, margin : margin + columns]


def _bits(word: int) -> np.ndarray:
    return np.array([int(word) >> c & 1 for c in range(64)], bool)


def sums(spikes: torch.Tensor, pool: tuple[int, int]) -> torch.Tensor:
    return torch.nn.functional.avg_pool2d(spikes, pool, pool, divisor_override=1)


def naive(path: Path, spikes: torch.Tensor, shape: tuple[int, int, int]) -> np.ndarray:
    """The same by torch: sums over windows, zeros around, a convolution."""
    weight = path.weight
    assert weight is not None
    pooled = sums(spikes, path.pool)
    if path.whole:
        return torch.einsum("oc,c->o", weight.flatten(1), spikes.flatten()).view(1, 1, -1).numpy()
    sides = [
        side
        for axis in (1, 0)
        for side in (
            path.padding[axis],
            (shape[1 + axis] - 1) * path.stride[axis]
            + weight.shape[2 + axis]
            - pooled.shape[1 + axis]
            - path.padding[axis],
        )
    ]
    padded = torch.nn.functional.pad(pooled, sides)
    groups = len(weight) if path.depthwise else 1
    out = torch.nn.functional.conv2d(padded[None], weight, stride=path.stride, groups=groups)[0]
    assert out.shape == shape
    return out.permute(1, 2, 0).numpy()


Shape3 = tuple[int, int, int]


def check(path: Path, source: Shape3, output: Shape3, block: Block, density: float = 0.0) -> list[Job]:
    """The jobs of all blocks, which do what the path says."""
    generator = torch.Generator().manual_seed(1)
    spikes = (torch.rand(source, generator=generator) < 0.4).double()
    pooled, each = sums(spikes, path.pool).numpy(), -(-source[0] // 64)
    words = np.zeros((*pooled.shape[1:], each * digits(path.pool)), object)
    for c, y, x in np.argwhere(pooled):
        for digit in range(digits(path.pool)):
            words[y, x, c // 64 + each * digit] += (int(pooled[c, y, x]) >> digit & 1) << int(c % 64)
    wanted = naive(path, spikes, output)
    jobs = []
    for begin in range(0, output[0], block.channels):
        part = jobs_of(path, source, output, block, begin, density)
        found = carried_out(part, words, each, *output[1:], block.channels)
        filled = np.zeros_like(found)
        filled[..., : wanted[..., begin : begin + block.channels].shape[-1]] = wanted[
            ..., begin : begin + block.channels
        ]
        assert np.allclose(found, filled, atol=1e-12)
        jobs += part
    return jobs


def weights(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


sizes = st.tuples(st.integers(3, 9), st.integers(3, 9))
pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))
pads = st.tuples(st.integers(0, 3), st.integers(0, 3))
kernels = st.tuples(st.integers(1, 5), st.integers(1, 5))
blocks = st.sampled_from([Block(element, 16) for element in ("int16", "float32", "float64")])


@settings(quick, max_examples=60)
@given(sizes, pairs, pairs, pads, kernels, blocks, st.booleans())
def test_spikes_are_spread(size, pool, stride, padding, kernel, block, depthwise) -> None:
    output = tuple((size[axis] // pool[axis] + 2 * padding[axis] - kernel[axis]) // stride[axis] + 1 for axis in (0, 1))
    assume(min(output) >= 1)
    weight = weights(3, 1, *kernel) if depthwise else weights(4, 3, *kernel)
    path = Path("source", weight, pool, stride, padding, depthwise)
    check(path, (3, *size), (len(weight), *output), block)


@pytest.mark.parametrize(("density", "counts"), [(0.0, {3}), (0.5, {1})])
def test_sums_over_a_pool_are_read_as_a_whole_or_a_digit_at_a_time(density: float, counts: set[int]) -> None:
    path = Path("source", weights(16, 16, 3, 3), pool=(2, 2), padding=(1, 1))
    jobs = check(path, (16, 8, 8), (16, 4, 4), Block("int16", 16), density)
    assert {job.digits for job in jobs} == counts
    assert [job.first[2] for job in jobs] == list(range(4 - next(iter(counts)))), "a job for each digit, or one for all"


@given(st.floats(0, 1), st.integers(1, 9))
def test_how_often_a_digit_is_one(density: float, pixels: int) -> None:
    wanted = [0.0] * pixels.bit_length()
    for fired in itertools.product((0, 1), repeat=pixels):
        chance = math.prod(density if f else 1 - density for f in fired)
        for digit in range(pixels.bit_length()):
            wanted[digit] += chance * (sum(fired) >> digit & 1)
    assert _often(density, pixels) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("depthwise", [True, False])
def test_more_rows_than_the_layer_needs(depthwise: bool) -> None:
    """Pads at the bottom and on the right are known from the output alone."""
    weight = weights(3, 1 if depthwise else 3, 3, 3)
    path = Path("source", weight, stride=(2, 2), padding=(0, 1), depthwise=depthwise)
    check(path, (3, 6, 6), (3, 3, 4), Block("float32", 16))


@pytest.mark.parametrize(("into", "out", "channels"), [(70, 20, 32), (130, 70, 64), (64, 64, 64), (16, 16, 16)])
def test_many_channels(into: int, out: int, channels: int) -> None:
    check(Path("source", weights(out, into, 3, 3), padding=(1, 1)), (into, 4, 5), (out, 4, 5), Block("int16", channels))


def test_channels_without_weights_are_passed_over() -> None:
    weight = weights(5, 130, 3, 3)
    weight[:, 3] = weight[:, 64:128] = 0
    jobs = check(Path("source", weight, padding=(1, 1)), (130, 4, 5), (5, 4, 5), Block("float32", 16))
    assert {job.first[2] for job in jobs} == {0, 2}
    assert all(not job.bits >> 3 & 1 for job in jobs if job.first[2] == 0)


def test_a_flattened_image() -> None:
    path = Path("source", weights(20, 70, 6, 1), whole=True)
    check(path, (70, 2, 3), (20, 1, 1), Block("float32", 32))


@pytest.mark.parametrize(
    ("channels", "kernel", "stride", "groups"),
    [(16, 3, 1, {2}), (10, 3, 2, {2}), (32, 3, 1, {4}), (20, 1, 1, {8}), (16, 1, 2, {2}), (70, 1, 1, {16, 2})],
)
def test_busy_layers_have_tables_of_sums(channels: int, kernel: int, stride: int, groups: set[int]) -> None:
    path = Path("source", weights(16, channels, kernel, kernel), (1, 1), (stride, stride), (kernel // 2, kernel // 2))
    source, output, block = (channels, 4, 6), (16, -(-4 // stride), -(-6 // stride)), Block("int16", 16)
    quiet, busy = (check(path, source, output, block, density) for density in (0.0, 0.9))
    assert {job.kind for job in quiet} <= {spread(*shape) for shape in SPREADS}
    assert {tables[job.kind][0] for job in busy if job.kind in tables} == groups
    for a, b in zip(quiet, busy, strict=True):
        assert dataclasses.replace(a, weights=None, kind=0) == dataclasses.replace(b, weights=None, kind=0)


def test_tables_that_the_cache_does_not_hold_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path("source", weights(16, 16, 3, 3), padding=(1, 1))
    for cache, kind in ((1 << 20, spread_sums(3, 3, 2)), (1 << 18, spread(3, 3))):
        monkeypatch.setattr(jobs_module, "second_cache", lambda size=cache: size)
        (job,) = jobs_of(path, (16, 4, 4), (16, 4, 4), Block("int16", 16), 0, 0.9)
        assert job.kind == kind
