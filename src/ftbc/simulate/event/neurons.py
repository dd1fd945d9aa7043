"""The neurons of one block of channels that fire by a `Rule`, with what they remember from step to step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ftbc.simulate.event.firing import firing
from ftbc.simulate.event.packed import Packed
from ftbc.simulate.event.rules import Rule
from ftbc.vectors import Block

NO_CURRENTS = {element: np.empty((1, 1, 1, 1, 0), element) for element in ("int16", "float32", "float64")}


@dataclass(frozen=True)
class Place:
    """Where a block's membranes lie: rows and columns of those that fire, cells from one row to the next, the first
    that fires, all cells of an image with their margins, and the block's number."""

    rows: int
    columns: int
    row: int
    begin: int
    cells: int
    number: int


class RuledNeurons:
    """Lets charged membranes fire step by step.

    start: initial potentials, ``[channels]`` or ``[cells]``; bias: ``[T, 64]``, which may change from call to call;
    currents: ``[N or 1, T or 1, rows, columns, channels]`` besides; out: where spikes go.
    """

    def __init__(
        self, rule: Rule, block: Block, place: Place, start: np.ndarray, bias: np.ndarray,
        currents: np.ndarray | None, out: Packed,
    ) -> None:  # fmt: skip
        self.rule, self.bias, self.words = rule, bias, out.words
        self.memory = np.zeros((rule.memory, len(out.words), place.cells), block.element)
        if rule.begins:
            self.memory[0].reshape(len(out.words), -1, len(start))[:] = start
        self._currents = NO_CURRENTS[block.element] if currents is None else currents
        words = out.words.shape[-1] // rule.coding.planes
        self._place = (place.rows, place.columns, place.row, place.begin, place.number, words)
        self._loop = firing(rule.loop, block.element, block.channels, rule.coding.planes, currents is not None)

    def fire(self, v: np.ndarray, t: int, first: int, last: int) -> None:
        """Step t of images ``first`` to ``last``; v: charged membranes ``[N, cells]``."""
        self._loop(
            v, self.memory, self._currents, self.bias[t], self.words, self._place, self.rule.numbers, t, first, last
        )
