"""The event engine for networks whose biases are still being chosen, each when the membranes of its step are charged.

What a calibration such as FTBC needs to know at step t is how much each channel, or each neuron, would send with the
bias that there is. All steps of a layer run before the next layer, as in the engine itself; only the images of a batch
go through the steps of a layer together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from ftbc.graph.ir import Graph
from ftbc.heap import keep_what_is_freed
from ftbc.neuron.spiking import Spiking
from ftbc.simulate.event.cells import Cell
from ftbc.simulate.event.corrected_layer import CorrectedLayer
from ftbc.simulate.event.engine import EventEngine
from ftbc.simulate.event.packed import Packed

MOST_BYTES = 1 << 31
"""Of one value over all steps of a batch, of which a layer reads and makes one: if it would be larger, step by step,
which keeps membranes alone, is the better way."""

Choose = Callable[[str, int, Tensor], Tensor]
"""The bias of a layer at step t, in units of its thresholds, given the sum of what would be sent, in spikes: both
``[channels]`` or, where each neuron has a bias, ``[channels, rows, columns]``."""


class CorrectedEngine(EventEngine):
    """Runs whole batches, and asks for each bias before it is used."""

    def __init__(self, graph: Graph, density: Mapping[str, float]) -> None:
        super().__init__(graph, density)
        self._choose: Choose | None = None

    def takes(self, steps: int, images: int) -> bool:
        """Whether all neurons run on events, and the largest value of so many images fits into `MOST_BYTES`."""
        on_events = all(node.name in self.layers for node in self.graph.of_type(Spiking))
        return on_events and images * self._largest(steps) <= MOST_BYTES

    def constants(self, name: str) -> Tensor:
        """What a layer's membranes gain at each step whatever fires, ``[T, channels]``, its bias and others; or the
        biases of its neurons alone, ``[T, channels, rows, columns]``."""
        cell = self.plan.cells[name]
        return cell.bias if cell.own is None else cell.own

    def correct(self, x: Tensor, steps: int, choose: Choose) -> None:
        """Run a batch from rest."""
        keep_what_is_freed()
        self._choose = choose
        self._run(x, steps, time_first=False)

    def _layer(self, cell: Cell) -> CorrectedLayer:
        return CorrectedLayer(cell, self.shapes, self._float, self.density)

    def _fire(self, name: str, packed: dict[str, Packed], current: Tensor | None, steps: int, images: int) -> Packed:
        choose = self._choose
        assert choose is not None

        def bias(t: int, counts: np.ndarray) -> Tensor:
            return choose(name, t, torch.from_numpy(counts))

        layer = self.layers[name]
        assert isinstance(layer, CorrectedLayer)
        return layer.run_corrected(packed, current, steps, images, bias)
