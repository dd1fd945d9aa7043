"""A spiking network in small whole numbers: weights, biases and currents as multiples of a power of two.

With thresholds of 1, every number that reaches a neuron becomes a multiple of 1 / scale. Sums of such numbers are exact
in floating point, in any order, so that all engines give the same spikes to the last bit; and times the scale they
are integers of 16 bits, in which events run fastest. Currents that torch computes from the image are rounded, too.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ftbc.graph.ir import Graph, Node
from ftbc.graph.ops import Affine, Grid, Sum, Synapses
from ftbc.neuron.integrate_fire import IntegrateFire
from ftbc.neuron.scale import scale_thresholds_to_one
from ftbc.simulate.event.cells import FINEST, LARGEST, Cell, plan, worst
from ftbc.simulate.stepwise import stepwise

_SPARE = 1.25
"""Membranes may swing so much further than they did on the sample before 16 bits no longer hold them."""
_COARSEST = 16


def rounded(graph: Graph, x: Tensor, steps: int) -> Graph:
    """A copy with unit thresholds and rounded numbers; the output layer stays as it is.

    x: images ``[N, ...]``, on which is measured how far membranes swing, which decides on the scale of each layer.
    """
    graph = graph.copy()
    scale_thresholds_to_one(graph)
    swings = _swings(graph, x, steps)
    for cell in plan(graph, {}).cells.values():
        needed = worst(cell.paths, cell.bias) + _SPARE * swings[cell.name]
        scale = FINEST
        while scale * needed > LARGEST:
            scale //= 2
        if scale >= _COARSEST:
            _round_cell(graph, cell, scale)
    return graph


def _swings(graph: Graph, x: Tensor, steps: int) -> dict[str, float]:
    """The largest size of a membrane or current at any step, by layer."""
    swings: dict[str, float] = {}

    def note(node: Node, current: Tensor) -> Tensor:
        spikes = node.module(current)
        if isinstance(node.module, IntegrateFire):
            assert node.module.v is not None
            largest = max(float(node.module.v.abs().max()), float(current.abs().max()))
            swings[node.name] = max(swings.get(node.name, 0.0), largest)
        return spikes

    for _ in stepwise(graph, x, steps, cell=note):
        pass
    return swings


def _round_cell(graph: Graph, cell: Cell, scale: int) -> None:
    neuron = graph[cell.name].module
    assert isinstance(neuron, IntegrateFire)
    neuron.initial = _nearest(neuron.initial, scale)
    neuron.bias = _nearest(neuron.bias, scale)
    for affine in _factors(graph, cell):
        affine.scale, affine.shift = _nearest(affine.scale, scale), _nearest(affine.shift, scale)
    for path in cell.paths:
        if path.layer is not None:
            # Behind an average pool a spike brings a share of the weight: that share must be a multiple.
            _round_weights(graph[path.layer].module, scale, path.pool[0] * path.pool[1])
        elif path.weight is None and not isinstance(graph[path.source].module, Grid):
            _round_current(graph, path.source, cell, scale)


def _round_weights(layer: nn.Module, scale: int, pooled: int) -> None:
    assert isinstance(layer, Synapses)
    layer.weight.data = _nearest(layer.weight.data, scale / pooled)
    if layer.bias is not None:
        layer.bias.data = _nearest(layer.bias.data, scale)


def _factors(graph: Graph, cell: Cell) -> list[Affine]:
    """The factors per channel between a cell and the sources of its spikes."""
    found, wanted = [], list(graph[cell.name].inputs)
    ends = {path.source for path in cell.paths}
    while wanted:
        name = wanted.pop()
        if name not in ends:
            if isinstance(graph[name].module, Affine):
                found.append(graph[name].module)
            wanted += graph[name].inputs
    return found


def _round_current(graph: Graph, value: str, cell: Cell, scale: int) -> None:
    readers = [node for node in graph.users(value) if node.name in _before(graph, cell.name)]
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


def _nearest(values: Tensor, scale: float) -> Tensor:
    return torch.round(values * scale) / scale
