"""One layer of neurons whose biases are chosen step by step, each when the membranes are charged, before they fire."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from torch import Tensor

from ftbc.simulate.event.aligned import aligned
from ftbc.simulate.event.layer import IN_CACHE, EventLayer, PartOfRun, Run
from ftbc.simulate.event.packed import Packed
from ftbc.simulate.event.paths import plane
from ftbc.simulate.event.trial import Trial
from ftbc.threads import over_images

Correct: TypeAlias = Callable[[int, np.ndarray], Tensor]
"""The bias of step t, for each channel or neuron, given the sum of what they would send with the one that there is."""

Ask: TypeAlias = Callable[[np.ndarray, int, int, int], np.ndarray]
"""The sum of what charged membranes ``[N, cells]`` would send at step t, over images from one to before another."""


class CorrectedLayer(EventLayer):
    """Runs all steps of a cell for a batch of images, and asks for each bias on the way."""

    def run_corrected(
        self, sources: dict[str, Packed], current: Tensor | None, steps: int, images: int, correct: Correct
    ) -> Packed:
        """The spikes, with a bias for each step that is chosen when the membranes are charged, before they fire."""
        run = self._prepared(sources, current, steps, images)
        asked = [self._asked(run, index) for index in range(len(run.parts))]
        membranes = [self._membranes(images) for _ in run.parts]
        for t in range(steps + 1):
            sums = []
            for part, ask, v in zip(run.parts, asked, membranes, strict=True):
                share = functools.partial(self._between, part, ask, v, t, steps)
                sums.append(sum(over_images(share, images, run.worth // steps)))
            if t < steps:
                self._set_bias(t, correct(t, np.concatenate(sums)[: plane(self.cell.shape)[0]]), run.currents)
        return run.out

    def _set_bias(self, t: int, bias: Tensor, currents: np.ndarray | None) -> None:
        """Let a bias for each channel, or for each neuron, be that of step t; currents: those of the run."""
        if self.own is None:
            for kept, begin in zip(self.parts, self._begins(), strict=True):
                kept.bias[t] = self._repeated(bias, begin)
            return
        before = self.own[0, t].copy()
        self.own[0, t] = self._currents(bias.unsqueeze(0), 1, 1)[0, 0]
        if currents is not None and currents is not self.own:
            currents[:, t] += self.own[0, t] - before

    def _between(
        self, part: PartOfRun, ask: Ask, v: np.ndarray, t: int, steps: int, first: int, last: int
    ) -> np.ndarray:
        """Fire step t - 1 and charge step t; then the sum of what would be sent."""
        total = np.zeros(1)
        for begin in range(first, last, IN_CACHE):
            end = min(begin + IN_CACHE, last)
            if t > 0:
                self._fire(part, v, t - 1, begin, end)
            if t < steps:
                self._charge(part, v, t, begin, end)
                total = total + ask(v, t, begin, end)
        return total

    def _asked(self, run: Run, index: int) -> Ask:
        """How to ask the membranes of a block; the answer is ``[channels]`` or, where each neuron has a bias,
        ``[channels, rows, columns]``."""
        part = run.parts[index]
        if part.neurons is None and self.own is None:
            return functools.partial(self._would_fire, part)
        trial = Trial(part.neurons, self.block, self._place(index), part.constants[1], run.currents)
        return trial if self.own is not None else lambda *asked: trial(*asked).sum((1, 2))

    def _would_fire(self, part: PartOfRun, v: np.ndarray, t: int, first: int, last: int) -> np.ndarray:
        """Of plain neurons whose channels have a bias each."""
        counts = aligned(np.zeros(64), self.element)
        self.counter(*part.given[1:], v, part.constants[1], counts, t, first, last)
        return counts[: self.block.channels].astype(np.float64)
