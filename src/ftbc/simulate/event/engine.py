"""The event-driven engine: only spikes that occurred are propagated, all steps of a layer before the next layer."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ftbc.graph.ir import INPUT, Graph
from ftbc.graph.ops import Synapses
from ftbc.heap import keep_what_is_freed
from ftbc.neuron.scale import scale_thresholds_to_one
from ftbc.neuron.spiking import Spiking
from ftbc.neuron.temporal import Temporal
from ftbc.simulate.event.cells import Cell, plan
from ftbc.simulate.event.coding import PLAIN
from ftbc.simulate.event.fingerprint import fingerprint
from ftbc.simulate.event.layer import IN_CACHE, WORTH_A_THREAD, EventLayer
from ftbc.simulate.event.packed import Packed
from ftbc.simulate.event.watch import Watch
from ftbc.simulate.scales import Scales
from ftbc.simulate.schedule import carried, rest, varying
from ftbc.threads import over_images

BUDGET = 8 << 20
"""Bytes of the largest value over the images and steps taken at once; times `IN_CACHE` for neurons that are not plain,
whose every step is a call, for so many images."""


class EventEngine:
    """A spiking graph made ready to run on events.

    density: spikes per neuron and step by layer, where known: layers that fire at most steps run densely.
    """

    def __init__(self, graph: Graph, density: Mapping[str, float], input_varies: bool = False) -> None:
        self.density = density
        self.numbers = fingerprint(graph)
        self.graph = graph.copy()
        scale_thresholds_to_one(self.graph)
        self.changing = varying(self.graph, input_varies)
        self.carried = carried(self.graph)
        self.plan = plan(self.graph, density, input_varies)
        self.dtype = next(node.module.threshold.dtype for node in self.graph.of_type(Spiking))
        self.shapes = {node.name: node.shape for node in self.graph}
        self.layers = {name: self._layer(cell) for name, cell in self.plan.cells.items()}
        self.reserve: dict[str, EventLayer] = {}
        self.released = self._released()
        self._let_go_of_weights()

    def _layer(self, cell: Cell) -> EventLayer:
        return EventLayer(cell, self.shapes, "int16" if cell.grid else self._float, self.density)

    def _let_go_of_weights(self) -> None:
        """Keep the weights of those layers alone that torch runs, or that may have to run again in floating point."""
        for name, cell in self.plan.cells.items():
            if not cell.grid:
                self.plan.cells[name] = self.layers[name].cell = cell.without_weights()
        for node in self.graph.of_type(*Synapses):
            if node.name not in self.plan.dense:
                self.graph.replace_module(node.name, nn.Identity())

    def _released(self) -> dict[str, list[str]]:
        """For each node, the values, spikes or not, that nobody reads after it has run."""
        last: dict[str, str] = {}
        for node in self.graph:
            if node.name in self.layers:
                last.update((path.source, node.name) for path in self.plan.cells[node.name].paths)
            elif node.name in self.plan.dense:
                last.update((name, node.name) for name in node.inputs)
        released: dict[str, list[str]] = {}
        for value, reader in last.items():
            if value != self.graph.output:
                released.setdefault(reader, []).append(value)
        return released

    @property
    def _float(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    def is_of(self, graph: Graph) -> bool:
        """Whether a graph's numbers are still those that this engine was made of."""
        return fingerprint(graph) == self.numbers

    def run(self, x: Tensor, steps: int, time_first: bool = False, scales: Scales | None = None) -> Tensor:
        """The output at each step, ``[T, N, ...]``, from rest; x as for `layerwise`.

        scales: what they weigh are values that no weights have touched (``carried``), of neurons that send spikes.
        """
        keep_what_is_freed()
        dim, portion = 1 if time_first else 0, self._portion(steps)
        watch = None if scales is None else Watch(self.graph, self.plan, scales)

        def share(first: int, last: int) -> list[Tensor]:
            parts = x.narrow(dim, first, last - first).split(portion, dim)
            return [self._run(part, steps, time_first, watch) for part in parts]

        images = x.shape[dim]
        work = sum(torch.Size(cell.shape).numel() for cell in self.plan.cells.values()) * steps * images
        shares = over_images(share, images, work // WORTH_A_THREAD) if self.remembers_nothing else [share(0, images)]
        return torch.cat([output for outputs in shares for output in outputs], 1)

    @property
    def remembers_nothing(self) -> bool:
        """Whether no layer that torch runs has a state, so that several threads can run it at once."""
        return all(node.name in self.layers for node in self.graph.of_type(Temporal))

    def _portion(self, steps: int) -> int:
        """How many images to take at once, so that the largest value over all steps fits into `BUDGET` bytes."""
        by_steps = any(cell.rule is not None for cell in self.plan.cells.values())
        return max(1, BUDGET * (IN_CACHE if by_steps else 1) // self._largest(steps))

    def _largest(self, steps: int) -> int:
        """Bytes of the largest value of an image over all steps."""
        largest = 1
        for node in self.graph:
            if node.name in self.plan.dense:
                times = steps if node.name in self.changing else 1
                largest = max(largest, times * self.dtype.itemsize * torch.Size(node.shape).numel())
            if node.name in self.layers or node.name in self.plan.packed:
                coding = self.plan.cells[node.name].coding if node.name in self.layers else PLAIN
                largest = max(largest, Packed.size(steps, node.shape, coding))
        return largest

    def _run(self, x: Tensor, steps: int, time_first: bool, watch: Watch | None = None) -> Tensor:
        images = x.shape[1] if time_first else len(x)
        dense = {INPUT: x.flatten(0, 1) if time_first else x}
        packed: dict[str, Packed] = {}
        unfolded: dict[str, Tensor] = {}
        rest(self.graph)
        for node in self.graph:
            if node.name in self.layers:
                current = self._current(self.plan.cells[node.name], dense, steps)
                packed[node.name] = self._fire(node.name, packed, current, steps, images)
                if node.name in self.plan.dense:
                    dense[node.name] = packed[node.name].unpack(self.dtype)
            elif node.name in self.plan.totals:
                total = packed[node.inputs[0]].totals(self.dtype) / self.plan.totals[node.name]
                dense[node.name] = total.view(-1, *node.shape)
            elif node.name in self.plan.dense:
                inputs = [self._over_time(name, dense, steps, node.name) for name in node.inputs]
                if isinstance(node.module, Temporal):
                    dense[node.name] = node.module.run(inputs[0].unflatten(0, (steps, -1))).flatten(0, 1)
                else:
                    dense[node.name] = node.run(*inputs)
                if node.name in self.plan.packed:
                    packed[node.name] = Packed.of(dense[node.name], steps)
            if watch is not None:
                watch.see(node, dense, packed, unfolded, steps)
            for name in self.released.get(node.name, ()):
                dense.pop(name, None)
                packed.pop(name, None)
        rest(self.graph)
        output = self._over_time(self.graph.output, dense, steps, None)
        return output.unflatten(0, (steps, images))

    def _over_time(self, name: str, dense: dict[str, Tensor], steps: int, reader: str | None) -> Tensor:
        """A value for a reader that changes over time: ``[T * N, ...]``, a constant one repeated."""
        value = dense[name]
        if name in self.changing or (reader is not None and reader not in self.changing):
            return value
        return value.expand(steps, *value.shape).flatten(0, 1)

    def _current(self, cell: Cell, dense: dict[str, Tensor], steps: int) -> Tensor | None:
        values = [dense[name] for name in cell.currents]
        if any(name in self.changing for name in cell.currents):
            values = [self._over_time(name, dense, steps, cell.name) for name in cell.currents]
        return None if not values else torch.stack(values).sum(0) if len(values) > 1 else values[0]

    def _fire(self, name: str, packed: dict[str, Packed], current: Tensor | None, steps: int, images: int) -> Packed:
        layer, cell = self.layers[name], self.plan.cells[name]
        if layer.element != "int16":
            return layer.run(packed, current, steps, images)[0]
        room = cell.room - (0.0 if current is None else (_size(current) + cell.step) * cell.grid + 1)
        if room > 0:  # and not for a current that is infinite or no number
            spikes, peak = layer.run(packed, current, steps, images)
            if peak <= room:
                return spikes
        # A membrane left 16 bits: these images again in floating point, where the same numbers are exact, too.
        if name not in self.reserve:
            self.reserve[name] = EventLayer(cell, self.shapes, self._float, self.density)
        return self.reserve[name].run(packed, current, steps, images)[0]


def _size(values: Tensor) -> float:
    return max(float(values.amax()), -float(values.amin()))  # aminmax is four times slower where channels lie innermost
