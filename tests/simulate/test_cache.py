"""The budget of the layer-wise engine follows the processor's cache and the network's weights."""

from __future__ import annotations

import os

import pytest

from ftbc.simulate import cache

MB = 1 << 20


@pytest.fixture(autouse=True)
def read_anew():
    cache.second_cache.cache_clear()
    yield
    cache.second_cache.cache_clear()


@pytest.mark.parametrize(
    ("size", "expected"), [(MB, 8 * MB), (MB // 4, 4 * MB), (64 * MB, 30 * MB), (0, 16 * MB), (-1, 16 * MB)]
)
def test_eight_times_the_second_cache_within_bounds(monkeypatch, size: int, expected: int) -> None:
    monkeypatch.setattr(os, "sysconf", lambda name: size)
    assert cache.budget(1) == expected


@pytest.mark.parametrize(("weights", "expected"), [(0, 8 * MB), (3 * MB, 8 * MB), (9 * MB, 9 * MB), (99 * MB, 30 * MB)])
def test_at_least_as_much_as_the_weights(monkeypatch, weights: int, expected: int) -> None:
    monkeypatch.setattr(os, "sysconf", lambda name: MB)
    assert cache.budget(1, weights) == expected


@pytest.mark.parametrize(("largest", "expected"), [(MB // 8, 8 * MB), (MB // 2, 16 * MB), (2 * MB, 30 * MB)])
def test_at_least_thirty_two_images_or_steps_within_bounds(monkeypatch, largest: int, expected: int) -> None:
    monkeypatch.setattr(os, "sysconf", lambda name: MB)
    assert cache.budget(largest) == expected


def test_where_the_size_is_unknown(monkeypatch) -> None:
    def unknown(name: str) -> int:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "sysconf", unknown)
    assert cache.budget(1) == 16 * MB
