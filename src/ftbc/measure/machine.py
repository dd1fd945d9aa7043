"""What a measurement was made on: a figure of speed means nothing without it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from ftbc.errors import InputError

_PACKAGES = ("numpy", "numba")
_CPUINFO = Path("/proc/cpuinfo")


def machine() -> dict[str, Any]:
    """The processor, how many cores of it may be used, the system and the versions of what computes."""
    from ftbc import __version__

    own = {"python": platform.python_version(), "ftbc": __version__, "torch": str(torch.__version__)}
    others = {package: version for package in _PACKAGES if (version := _version(package)) is not None}
    return {
        "cpu": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {**own, **others},
    }


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch, and with it the event engine, use so many threads inside the block."""
    if count < 1:
        raise InputError(f"threads={count}: give a whole number, at least 1")
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (names or [platform.processor() or platform.machine()])[0]
