"""How an entry of the support table is written: a name, a forward in one line, and the layers it uses."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from tests.graph.support import Net

BOTH = ("fx", "export")
IMAGE = (4, 8, 8)


@dataclass(frozen=True)
class Entry:
    """shape: one input; sites: neuron layers; affine: maps that cannot be folded; routes: how it can be traced."""

    model: nn.Module
    shape: tuple[int, ...]
    sites: int
    affine: int
    routes: tuple[str, ...]

    def make(self) -> nn.Module:
        return copy.deepcopy(self.model)


TABLE: dict[str, Entry] = {}


def entry(name: str, run: Callable[[Any, Any], Any], *, shape: tuple[int, ...] = IMAGE, sites: int = 1,
          affine: int = 0, routes: tuple[str, ...] = BOTH, **layers: nn.Module | Tensor) -> None:  # fmt: skip
    assert name not in TABLE, name
    TABLE[name] = Entry(Net(run, **layers), shape, sites, affine, routes)


def conv(into: int = 4, out: int = 6, size: Any = 3, **more: Any) -> nn.Conv2d:
    return nn.Conv2d(into, out, size, **{"padding": 1, **more})
