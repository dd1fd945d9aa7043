"""Which neurons run on events, from where their spikes come, and in which numbers: the plan of the event engine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ftbc.graph.ir import INPUT, Graph, Node, Shape
from ftbc.graph.ops import Grid, Reduce, Synapses
from ftbc.neuron.integrate_fire import IntegrateFire
from ftbc.neuron.max_pool import SpikingMaxPool
from ftbc.neuron.scale import scale_thresholds_to_one
from ftbc.neuron.spiking import Spiking
from ftbc.neuron.temporal import Temporal
from ftbc.simulate.event.coding import PLAIN, Coding
from ftbc.simulate.event.paths import Path, Reached, computed, plane, spikes_of, through
from ftbc.simulate.event.rules import Rule, rule_of
from ftbc.simulate.schedule import varying

DENSE_ABOVE = 0.6
"""A source that fires more often than this at each step is convolved densely: events would not be faster."""
CHANGES_ABOVE = 0.1
"""A network whose neurons send changes more often than this, on average, runs densely: changes of several sizes are
many planes to look through, and to unpack where events meet what is dense."""
FINEST = 1 << 10
"""Whole numbers of 16 bits are used for weights that are multiples of 1 / 1024, or of a coarser power of two."""
LARGEST = (1 << 15) - 1


@dataclass(frozen=True)
class Cell:
    """A neuron layer with thresholds of 1 and all that leads to it.

    bias: ``[T, channels]``, the constants of the paths included; initial: ``[channels]`` or, like ``own``, for each
    neuron; own: biases ``[T, ...]`` of each neuron besides, if they have any; grid: the scale at which all numbers are
    whole, or 0; room: how large a membrane (times grid) may be so that the next step still fits 16 bits; step: what the
    current is rounded to multiples of when it arrives, 0 if it is taken as it is; rule: how neurons that are not plain
    ones fire.
    """

    name: str
    shape: Shape
    paths: tuple[Path, ...]
    bias: Tensor
    initial: Tensor
    grid: int
    room: float
    step: float = 0.0
    own: Tensor | None = None
    rule: Rule | None = None

    @property
    def coding(self) -> Coding:
        """What the neurons' spikes count."""
        return PLAIN if self.rule is None else self.rule.coding

    @property
    def currents(self) -> list[str]:
        """The values that are computed densely and added."""
        return [path.source for path in self.paths if path.weight is None]

    @property
    def has_current(self) -> bool:
        """Whether anything is computed densely."""
        return bool(self.currents)

    def without_weights(self) -> Cell:
        """What is left to know when a layer holds the weights."""
        return replace(self, paths=tuple(path.holding(lambda weight: weight.new_empty(0)) for path in self.paths))


@dataclass(frozen=True)
class Plan:
    """cells: by name; dense: the values that torch computes; packed: values of torch that cells read as spikes.

    totals: of the dense values, those that need no more than the number of spikes in each plane of a cell, by name what
    it is divided by: bits are counted there, and torch computes nothing.
    """

    cells: dict[str, Cell]
    dense: frozenset[str]
    packed: frozenset[str]
    totals: dict[str, float]


@torch.no_grad()
def plan(graph: Graph, density: Mapping[str, float], input_varies: bool = False) -> Plan:
    """Decide how each part of a graph with unit thresholds, on the CPU, runs.

    density: spikes per neuron and step, where known.
    """
    changing = varying(graph, input_varies)
    reached: dict[str, Reached] = {INPUT: computed(INPUT, graph.input_shape)}
    cells: dict[str, Cell] = {}
    released = graph.released_after()
    for node in graph:
        if node.name not in changing:
            reached[node.name] = computed(node.name, node.shape)
        elif isinstance(node.module, Spiking) and _takes_events(node, reached[node.inputs[0]], density):
            cells[node.name] = _cell(node, reached[node.inputs[0]], graph)
            reached[node.name] = spikes_of(node, cells[node.name].coding)
        elif isinstance(node.module, Temporal):
            spikes = isinstance(node.module, IntegrateFire) or _pools_spikes(node, cells)
            reached[node.name] = spikes_of(node) if spikes and len(node.shape) <= 3 else computed(node.name, node.shape)
        else:
            found = through(node, [reached[name] for name in node.inputs], graph)
            dense = isinstance(node.module, Synapses) and any(_busy(path, density) for path in found.paths)
            reached[node.name] = computed(node.name, node.shape) if dense else found
        for name in released.get(node.name, ()):
            del reached[name]
    read = {path.source for cell in cells.values() for path in cell.paths if path.weight is not None}
    totals = _totals(graph, cells)
    return Plan(cells, frozenset(_computed(graph, cells, read, totals)), frozenset(read - set(cells)), totals)


def numbers_by_layer(graph: Graph, density: Mapping[str, float]) -> dict[str, str]:
    """For each neuron layer the numbers in which events reach it, or "dense"."""
    unit = graph.copy().cpu()
    scale_thresholds_to_one(unit)
    cells = plan(unit, density).cells
    found = {}
    for node in unit.of_type(Spiking):
        cell = cells.get(node.name)
        events = cell is not None and any(path.weight is not None for path in cell.paths)
        kind = str(node.module.threshold.dtype).removeprefix("torch.")  # type: ignore[union-attr]
        found[node.name] = "dense" if cell is None or not events else "int16" if cell.grid else kind
    return found


def _busy(path: Path, density: Mapping[str, float]) -> bool:
    """Whether a source fires too often for events; depthwise weights are collected, however many spikes there are."""
    return not path.depthwise and density.get(path.source, 0.0) > DENSE_ABOVE


def _totals(graph: Graph, cells: dict[str, Cell]) -> dict[str, float]:
    """The nodes that add up, or average, all pixels of a cell's channels, and what they divide by."""
    found = {node.name: _divisor(node, cells[node.inputs[0]].shape) for node in graph if node.inputs[0] in cells}
    return {name: divisor for name, divisor in found.items() if divisor is not None}


def _divisor(node: Node, before: Shape) -> float | None:
    module, area = node.module, math.prod(before[1:])
    if len(before) != 3:
        return None
    if isinstance(module, Reduce) and set(module.dims) == {2, 3}:
        return area if module.mean else 1
    if isinstance(module, nn.AvgPool2d) and math.prod(node.shape[1:]) == 1:
        sizes, pads = (
            value if isinstance(value, tuple) else (value,) * 2 for value in (module.kernel_size, module.padding)
        )
        if sizes == before[1:] and not any(pads):
            return module.divisor_override or area
    return area if isinstance(module, nn.AdaptiveAvgPool2d) and math.prod(node.shape[1:]) == 1 else None


def _computed(graph: Graph, cells: dict[str, Cell], read: set[str], totals: Mapping[str, float]) -> set[str]:
    """Every value that torch must compute: what cells and the output need, back to spikes or the input."""
    needed = {graph.output, *(name for cell in cells.values() for name in cell.currents), *(read - set(cells))}
    for node in reversed(list(graph)):
        if node.name in needed and node.name not in cells and node.name not in totals:
            needed.update(node.inputs)
    return needed


def _takes_events(node: Node, reached: Reached, density: Mapping[str, float]) -> bool:
    neuron = node.module
    assert isinstance(neuron, Spiking)
    rule = rule_of(neuron)
    # A threshold for each neuron is a factor for each, before and behind: torch computes what lies between.
    alike = neuron.threshold.ndim == 1 and neuron.is_unit()
    if len(node.shape) > 3 or not alike or not (rule or isinstance(neuron, IntegrateFire)):
        return False
    # Who receives changes keeps their mean: they cannot be added to values.
    changes = rule is not None and rule.coding.changes
    if changes and sum(density.values()) > CHANGES_ABOVE * len(density):
        return False
    return all(path.coding.changes == changes for path in reached.paths if path.weight is not None)


def _pools_spikes(node: Node, cells: dict[str, Cell]) -> bool:
    """Whether a node pools the spikes of one layer of plain neurons: then its output, too, is 0 or 1."""
    source = cells.get(node.inputs[0])
    return isinstance(node.module, SpikingMaxPool) and source is not None and source.rule is None


def _cell(node: Node, reached: Reached, graph: Graph) -> Cell:
    neuron = node.module
    assert isinstance(neuron, Spiking)
    rule, channels = rule_of(neuron), plane(node.shape)[0]
    by_step = neuron.bias_by_step()
    each = by_step.ndim > 2  # a bias for each neuron
    bias = torch.zeros_like(reached.shift) if each else by_step.double().expand(-1, channels)
    bias = (bias + reached.shift).expand(len(by_step), -1)
    own = by_step.view(-1, *plane(node.shape)) if each else None
    alike = neuron.initial.ndim == 1
    initial = neuron.initial.double().expand(channels) if alike else neuron.initial.double().view(plane(node.shape))
    # In the network's own precision, in which layers hold them: wide networks would not fit into memory twice.
    paths = tuple(path.holding(lambda weight: weight.to(neuron.bias.dtype)) for path in reached.paths)
    constants = [bias, initial, *([] if own is None else [own])]
    grid = 0 if rule is not None else _grid(paths, constants, graph)
    room = LARGEST - grid * worst(paths, bias, own) if grid else 0.0
    usable = room > 2 * grid and room >= grid * float(initial.abs().max())
    cell = Cell(node.name, node.shape, paths, bias, initial, grid if usable else 0, room, own=own, rule=rule)
    return _rounding_itself(cell, graph) if usable else cell


def _rounding_itself(cell: Cell, graph: Graph) -> Cell:
    """The cell with its current as it is before it is rounded, if nobody else reads it: a pass over it less."""
    if len(cell.currents) != 1 or cell.currents[0] not in graph.nodes:
        return cell
    grid = graph[cell.currents[0]]
    if not isinstance(grid.module, Grid) or [reader.name for reader in graph.users(grid.name)] != [cell.name]:
        return cell
    paths = (replace(path, source=grid.inputs[0]) if path.weight is None else path for path in cell.paths)
    return replace(cell, paths=tuple(paths), step=grid.module.step)


def worst(paths: tuple[Path, ...], bias: Tensor, own: Tensor | None = None) -> float:
    """The largest size of a step's current from events and biases, if the worst comes to the worst in one channel."""
    high, low = bias.max(0).values.clamp(min=0), bias.min(0).values.clamp(max=0)
    for path in paths:
        if path.weight is not None:
            area, weight = path.pool[0] * path.pool[1], path.weight.double().flatten(1)
            high = high + area * weight.clamp(min=0).sum(1)
            low = low + area * weight.clamp(max=0).sum(1)
    return float(torch.maximum(high, -low).max()) + (0.0 if own is None else float(own.abs().max()))


def _grid(paths: tuple[Path, ...], constants: list[Tensor], graph: Graph) -> int:
    """The smallest power of two that makes every number whole; 0 if that takes more than `FINEST`."""
    numbers = [*constants, *(path.weight for path in paths if path.weight is not None)]
    steps = [1.0]
    for path in paths:
        if path.weight is None:
            module = graph[path.source].module if path.source in graph.nodes else None
            if not isinstance(module, Grid) or math.frexp(module.step)[0] != 0.5:  # a power of two
                return 0
            steps.append(1 / module.step)
    grid = int(max(steps))
    while grid <= FINEST:
        if all(bool((values * grid == torch.round(values * grid)).all()) for values in numbers):
            return grid
        grid *= 2
    return 0
