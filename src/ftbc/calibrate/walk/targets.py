"""What the ANN has at the rows that a spiking network is compared with it at.

The ANN sees the images once, and only chosen rows of its values are kept. Where the rows of all values would not fit
into memory they are gathered for some layers at a time, and the ANN sees the images again for the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ftbc.calibrate.walk.rows import at_positions, channels
from ftbc.graph.ir import INPUT, Graph, Node

_MOST_CELLS = 1 << 28
"""Numbers that are kept at once: 1 GiB of float32."""


@dataclass(frozen=True)
class Wanted:
    """Rows of a value: its name, the dimension of an item in which its channels lie, positions ``[N, k]``."""

    value: str
    dim: int
    positions: Tensor


class Targets:
    """Rows of the ANN's values by key, which are asked for in the order in which they are given.

    first: the number of the first image of these parts among all that positions are of.
    """

    def __init__(
        self,
        ann: Graph,
        parts: tuple[Tensor, ...],
        wanted: dict[str, Wanted],
        most: int = _MOST_CELLS,
        first: int = 0,
    ) -> None:
        self._ann = ann
        self._first = first
        self._parts = parts
        self._wanted = wanted
        self._most = most
        self._rows: dict[str, list[Tensor]] = {}

    def positions(self, key: str) -> Tensor:
        """The positions of the rows, ``[N, k]``."""
        return self._wanted[key].positions

    def dim(self, key: str) -> int:
        """The dimension of an item in which the channels of the value lie."""
        return self._wanted[key].dim

    def rows(self, key: str, part: int) -> Tensor:
        """The rows of one part of the images, ``[n k, C]``."""
        if key not in self._rows:
            self._gather(key)
        return self._rows[key][part]

    def _gather(self, first: str) -> None:
        """Rows of this key and of as many of those behind it as fit into memory."""
        keys, cells = [], 0
        order = list(self._wanted)
        for key in order[order.index(first) :]:
            wanted = self._wanted[key]
            cells += wanted.positions.numel() * channels(self._ann.shape(wanted.value), wanted.dim)
            if keys and cells > self._most:
                break
            keys.append(key)
        self._rows = {key: [] for key in keys}
        by_value: dict[str, list[str]] = {}
        for key in keys:
            by_value.setdefault(self._wanted[key].value, []).append(key)
        start = self._first
        for part in self._parts:
            chosen = slice(start, start + len(part))
            start += len(part)

            def take(node: Node, value: Tensor, chosen: slice = chosen) -> None:
                self._take(by_value.get(node.name, ()), value, chosen)

            self._take(by_value.get(INPUT, ()), part, chosen)
            self._ann(part, take)

    def _take(self, keys: list[str] | tuple[str, ...], value: Tensor, chosen: slice) -> None:
        for key in keys:
            wanted = self._wanted[key]
            positions = wanted.positions[chosen].to(value.device)
            # A copy even of all positions: rows must not keep the whole value alive, nor change with it.
            self._rows[key].append(
                at_positions(value, wanted.dim, positions).clone(memory_format=torch.contiguous_format)
            )
