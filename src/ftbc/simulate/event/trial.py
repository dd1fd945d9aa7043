"""What charged membranes would send at a step, without sending it: what a calibration asks before it chooses a bias.

With thresholds of 1 one formula holds for every kind whose spikes tell values. A membrane u sends

    min(floor(u), most)  if u >= 0,        less 1 if u <= lower and it has sent more than it took back

A plain neuron sends 1 at most and takes nothing back; a signed one does, and a burst has more than 1. `firing` and
`kernel` have the loops that send; a test holds them against this one.
"""

# pyright: reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf

import numpy as np

from ftbc.simulate.event.firing import tiled
from ftbc.simulate.event.neurons import NO_CURRENTS, Place, RuledNeurons
from ftbc.vectors import Block, compiled

PLAIN = (1.0, -inf)
"""The bounds of plain neurons: one spike at most, and none is taken back."""


class Trial:
    """Counts what the neurons of one block would send; arguments as for `RuledNeurons`.

    neurons: those of the block, if they are not plain.
    """

    def __init__(
        self, neurons: RuledNeurons | None, block: Block, place: Place, bias: np.ndarray, currents: np.ndarray | None
    ) -> None:
        bounds = PLAIN if neurons is None else neurons.rule.bounds
        assert bounds is not None
        self._bounds = bounds
        self._memory = np.empty((0, 0, 0), block.element) if neurons is None else neurons.memory
        self._bias, self._currents = bias, NO_CURRENTS[block.element] if currents is None else currents
        self._place = (place.rows, place.columns, place.row, place.begin, place.number)
        self._sums = (place.rows, place.columns, block.channels)
        self._loop = _counting(block.channels, currents is not None)

    def __call__(self, v: np.ndarray, t: int, first: int, last: int) -> np.ndarray:
        """Sums over images ``first`` to ``last`` at step t, ``[channels, rows, columns]``; v: ``[N, cells]``."""
        sums = np.zeros(self._sums, v.dtype)
        by_row = sums.reshape(len(sums), -1)
        self._loop(v, self._memory, self._currents, self._bias[t], self._place, self._bounds, by_row, t, first, last)
        return sums.transpose(2, 0, 1).astype(np.float64)


@cache
def _counting(channels: int, has_current: bool) -> Callable[..., None]:
    """The loop for blocks of so many channels; compiled at its first call, kept on disk."""

    @compiled
    def count(v, memory, x, b, place, bounds, sums, t, first, last):  # type: ignore[no-untyped-def]
        """Add what images ``first`` to ``last`` would send at step t to ``sums [rows, columns * channels]``.

        All as for the loops of `firing`; memory[0]: spikes sent less those taken back; bounds: of the `Rule`.
        """
        rows, columns, row, begin, word = place
        wide, kind = columns * channels, v.dtype.type
        nothing, one, most, lower = kind(0), kind(1), kind(bounds[0]), kind(bounds[1])
        biases, current = tiled(b, channels, columns), np.zeros(wide, v.dtype)
        for n in range(first, last):
            for y in range(rows):
                at = begin + y * row
                membrane, total = v[n, at : at + wide], sums[y]
                # Who takes nothing back has no memory; then ``lower`` is never reached.
                balance = memory[0, n, at : at + wide] if len(memory) > 0 else membrane
                if has_current:
                    for column in range(columns):
                        block = x[n % len(x), t % x.shape[1], y, column, word * channels : (word + 1) * channels]
                        current[column * channels : (column + 1) * channels] = block
                for c in range(wide):
                    u = membrane[c] + current[c] + biases[c]
                    sent = u if u > nothing else nothing
                    sent = np.floor(most if sent > most else sent)
                    taken_back = one if (u <= lower) & (balance[c] > nothing) else nothing
                    total[c] += sent - taken_back

    return count
