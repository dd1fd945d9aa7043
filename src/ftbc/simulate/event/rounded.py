"""A spiking network in small whole numbers: weights, biases and currents as multiples of a power of two.

With thresholds of 1, every number that reaches a neuron becomes a multiple of 1 / scale. Sums of such numbers are exact
in floating point, in any order, so that all engines give the same spikes to the last bit; and times the scale they
are integers of 16 bits, in which events run fastest. What torch computes, from the image or for the output, is
rounded more finely (see `exact`), and what of it reaches neurons is rounded to their scale.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ftbc.errors import InputError
from ftbc.graph.ir import INPUT, Graph, Node
from ftbc.graph.ops import Affine, Grid, Sum, Synapses
from ftbc.neuron.integrate_fire import IntegrateFire
from ftbc.neuron.scale import scale_thresholds_to_one
from ftbc.neuron.spiking import Spiking
from ftbc.simulate.event.cells import FINEST, LARGEST, Cell, plan, worst
from ftbc.simulate.event.exact import SPARE, digits, make_exact, nearest, round_weights, sum_instead_of_average
from ftbc.simulate.stepwise import stepwise

_COARSEST = 16
"""The smallest scale at which 16 bits are worth their rounding; else numbers stay floating, with all their digits."""


@torch.no_grad()
def rounded(graph: Graph, x: Tensor, steps: int) -> Graph:
    """A copy with unit thresholds and rounded numbers.

    x: images ``[N, ...]``, on which is measured how far membranes swing, which decides on the scale of each layer.
    """
    for node in graph.of_type(Spiking):
        if not isinstance(node.module, IntegrateFire):
            raise InputError(f"{node.place} has no form in whole numbers: only plain neurons can be rounded")
    graph = graph.copy()
    sum_instead_of_average(graph)
    scale_thresholds_to_one(graph)
    swings = _swings(graph, x, steps)
    for cell in plan(graph.copy().cpu(), {}).cells.values():
        scale = _scale(cell, swings[cell.name], digits(x.dtype))
        if scale is not None:
            _round_cell(graph, cell, scale)
    make_exact(graph, x)
    return graph


def _swings(graph: Graph, x: Tensor, steps: int) -> dict[str, tuple[float, float]]:
    """The largest size of a membrane, and of a current, at any step, by layer."""
    swings: dict[str, tuple[float, float]] = {}

    def note(node: Node, current: Tensor) -> Tensor:
        spikes = node.module(current)
        if isinstance(node.module, IntegrateFire):
            assert node.module.v is not None
            membrane, strongest = swings.get(node.name, (0.0, 0.0))
            swings[node.name] = (
                max(membrane, float(node.module.v.abs().max())),
                max(strongest, float(current.abs().max())),
            )
        return spikes

    for _ in stepwise(graph, x, steps, cell=note):
        pass
    return swings


def _scale(cell: Cell, swing: tuple[float, float], bits: int) -> float | None:
    """The scale at which 16 bits hold all that reaches a cell or, if that is too coarse, a floating number does."""
    membrane, current = swing
    between_steps = max(SPARE * (membrane + (current if cell.has_current else 0.0)), float(cell.initial.abs().max()), 2)
    needed = worst(cell.paths, cell.bias, cell.own) + between_steps
    if not math.isfinite(needed):
        return None
    whole = 2.0 ** min(math.log2(FINEST), math.floor(math.log2(LARGEST / needed)))
    return whole if whole >= _COARSEST else 2.0 ** (bits - math.ceil(math.log2(needed)))


def _between(graph: Graph, cell: Cell) -> list[str]:
    """The nodes between a cell and the sources of its paths, in order."""
    ends = {path.source for path in cell.paths}
    needed = set(graph[cell.name].inputs) - ends
    for node in reversed(list(graph)):
        if node.name in needed:
            needed.update(set(node.inputs) - ends)
    return [node.name for node in graph if node.name in needed]


def _round_cell(graph: Graph, cell: Cell, scale: float) -> None:
    neuron = graph[cell.name].module
    assert isinstance(neuron, IntegrateFire)
    neuron.initial = nearest(neuron.initial, 1 / scale)
    neuron.bias = nearest(neuron.bias, 1 / scale)
    for name in _between(graph, cell):
        if isinstance(graph[name].module, (*Synapses, Affine)):
            round_weights(graph[name].module, 1 / scale, 1 / scale)
    for value in [] if cell.step else cell.currents:  # else it was rounded before
        if value == INPUT or not isinstance(graph[value].module, Grid):
            _round_current(graph, value, cell, scale)


def _round_current(graph: Graph, value: str, cell: Cell, scale: float) -> None:
    readers = [node for node in graph.users(value) if node.name in _before(graph, cell.name)]
    if readers:  # else a cell that reads the same sum has rounded it
        name = graph.insert_after(value, Node(f"{value}_grid", Grid(1 / scale), (value,), graph.shape(value)))
        graph.rewire(value, name, readers)


def _before(graph: Graph, name: str) -> set[str]:
    """A neuron and the sums that its current is made of."""
    found, wanted = set(), [name]
    while wanted:
        name = wanted.pop()
        found.add(name)
        wanted += [
            other for other in graph[name].inputs if other in graph.nodes and isinstance(graph[other].module, Sum)
        ]
    return found
