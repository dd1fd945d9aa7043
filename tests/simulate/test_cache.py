"""The budget of the layer-wise engine follows the processor's cache."""

from __future__ import annotations

import os

import pytest

from ftbc.simulate import cache


@pytest.mark.parametrize(
    ("size", "expected"),
    [(1 << 20, 2 << 20), (256 << 10, 1 << 20), (64 << 20, 8 << 20), (0, 4 << 20), (-1, 4 << 20)],
)
def test_twice_the_second_cache_within_bounds(monkeypatch, size: int, expected: int) -> None:
    monkeypatch.setattr(os, "sysconf", lambda name: size)
    assert cache.budget.__wrapped__() == expected


def test_where_the_size_is_unknown(monkeypatch) -> None:
    def unknown(name: str) -> int:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "sysconf", unknown)
    assert cache.budget.__wrapped__() == 4 << 20
