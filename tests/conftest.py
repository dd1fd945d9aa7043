"""What all tests share: one thread, a fixed seed, and Python in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import ftbc
from ftbc.errors import FtbcError

torch.set_num_threads(1)

Refused = Callable[..., str]
RunPython = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Two threads of torch, for what shares out its work."""
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


@pytest.fixture
def environment() -> dict[str, str]:
    """That of a new process which finds this ftbc and uses one thread."""
    source = str(Path(ftbc.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "default"}


@pytest.fixture
def run_python(environment: dict[str, str], tmp_path: Path) -> RunPython:
    """Run code in a new process, in an empty folder of its own."""

    def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / "elsewhere"
        folder.mkdir(exist_ok=True)
        return subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            env=environment, cwd=folder, capture_output=True, text=True, timeout=120,
        )  # fmt: skip

    return run


@pytest.fixture
def refused() -> Refused:
    """Call something that must raise an error of the given kind whose message is one line with the given words."""

    def check(
        kind: type[FtbcError], words: str | tuple[str, ...], call: Callable[..., Any], *args: Any, **named: Any
    ) -> str:
        with pytest.raises(kind) as caught:
            call(*args, **named)
        text = str(caught.value)
        assert issubclass(kind, FtbcError)
        assert len(text.splitlines()) == 1 and text.isprintable() and len(text) < 500, text
        for word in (words,) if isinstance(words, str) else words:
            assert word in text, text
        return text

    return check
