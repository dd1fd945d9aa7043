"""Damaged files by the thousand: each is read or refused by one line; nothing crashes, runs, hangs or takes memory.

`python -m tests.fuzz.with_atheris snn -runs=100000` looks for more, guided by what the readers' code does.
"""

from __future__ import annotations

import random
import resource
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.mutations import damaged
from tests.fuzz.readers import READERS, check, real_files

FEW = 25
MANY = {"snn": 12_000, "recipe": 20_000, "space": 12_000, "plan": 6_000, "cifar pickle": 15_000, "cifar binary": 8_000,
        "weights": 8_000, "safe weights": 8_000, "checkpoint": 5_000, "npz": 6_000, "integers": 5_000, "kept": 8_000,
        "nir": 2_000}  # fmt: skip
LONGEST = 20.0
"""Seconds that no case may take, on any machine: each takes a few thousandths."""
MOST_BYTES = 600 << 20
"""By how much memory may grow over all cases of a reader; the files have at most some ten thousand bytes."""


def _usable(name: str) -> None:
    if name == "nir":
        pytest.importorskip("nir")


@pytest.mark.parametrize("name", READERS)
def test_real_files_are_read(name: str, tmp_path: Path) -> None:
    _usable(name)
    assert real_files(name) and all(check(READERS[name], content, tmp_path) for content in real_files(name))


def _fuzz(name: str, folder: Path, cases: int) -> int:
    _usable(name)
    whole, refused = real_files(name), []

    @settings(max_examples=cases, deadline=None, database=None, derandomize=True,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.integers(0, 2**64 - 1))
    def case(seed: int) -> None:
        content = damaged(whole, random.Random(seed))
        begun = time.monotonic()
        refused.append(not check(READERS[name], content, folder))
        assert time.monotonic() - begun < LONGEST, "it takes too long"

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    case()
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MOST_BYTES
    return sum(refused)


@pytest.mark.parametrize("name", READERS)
def test_damaged_files(name: str, tmp_path: Path) -> None:
    assert _fuzz(name, tmp_path, FEW) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_many_damaged_files(name: str, tmp_path: Path) -> None:
    assert _fuzz(name, tmp_path, MANY[name]) > MANY[name] // 10


def test_many_are_a_hundred_thousand() -> None:
    assert sum(MANY.values()) - MANY["nir"] >= 100_000
