"""Synaptic operations: how many weights are added because of the spikes that occurred.

Each spike at an input of a layer reaches ``fan-out`` outputs, which depends on stride, padding, groups and position:

    SynOps(layer) = sum over the spikes at its inputs of their fan-out

A spike that a residual connection carries without weights is one more addition, at the membrane it ends at. Behind an
average pool each value that is not zero is taken for one spike. A layer that reads the image itself multiplies (MACs),
at each step unless neurons code changes alone or the result is kept; all others only add (ACs, one SynOp each).
"""

from __future__ import annotations

import torch
from torch import Tensor

from ftbc.graph.ir import Graph, Node
from ftbc.graph.ops import Sum, Synapses
from ftbc.graph.spec import clone
from ftbc.measure.events import image_is_sent_once, of_values
from ftbc.neuron import Spiking


def fan_out(node: Node, input_shape: tuple[int, ...]) -> Tensor:
    """How many outputs of a layer each of its inputs reaches: a tensor of the shape of one input item."""
    layer = clone(node.module).double()
    for name, parameter in layer.named_parameters():
        parameter.fill_(1.0 if name == "weight" else 0.0)
    with torch.enable_grad():
        x = torch.zeros(
            1, *input_shape, dtype=torch.float64, device=next(layer.parameters()).device, requires_grad=True
        )
        (reached,) = torch.autograd.grad(layer(x).sum(), x)
    return reached[0]


def shortcuts(graph: Graph) -> dict[str, list[int]]:
    """Which inputs of each sum are spikes that no weights have touched since their neurons, by name of the sum."""
    bare: set[str] = set()
    for node in graph:
        passes = not isinstance(node.module, (*Synapses, Sum)) and any(name in bare for name in node.inputs)
        if isinstance(node.module, Spiking) or passes:
            bare.add(node.name)
    found = {node.name: [i for i, name in enumerate(node.inputs) if name in bare] for node in graph.of_type(Sum)}
    return {name: places for name, places in found.items() if places}


def behind_neurons(graph: Graph) -> set[str]:
    """Names of the values that spikes have a part in; all others are made of the image alone, though a max-pool that
    acts over time may have looked at it."""
    found: set[str] = set()
    for node in graph:
        if isinstance(node.module, Spiking) or any(name in found for name in node.inputs):
            found.add(node.name)
    return found


class SynapticOperations:
    """What a network's spikes set in motion, and what its ANN computes.

    reached: by name of a value, the SynOps of a spike at each of its places, in all layers that read it, ``[...]``;
    events: how its spikes are counted. macs: multiplications of the layers that read the image, at one step;
    dense_macs, dense_sums: multiplications of the ANN, and its additions at residual connections without weights.
    """

    def __init__(self, graph: Graph) -> None:
        sent = behind_neurons(graph)
        self.once = image_is_sent_once(graph)
        self.macs = 0.0
        self.dense_macs = 0.0
        self.reached: dict[str, Tensor] = {}
        for node in graph.of_type(*Synapses):
            (value,) = node.inputs
            reached = fan_out(node, graph.shape(value)).cpu()
            self.dense_macs += float(reached.sum())
            if value in sent:
                self._add(value, reached)
            else:
                self.macs += float(reached.sum())
        self.dense_sums = 0.0
        for name, places in shortcuts(graph).items():
            for value in (graph[name].inputs[i] for i in places):
                self._add(value, torch.ones(graph.shape(value), dtype=torch.float64))
            self.dense_sums += float(len(places) * torch.Size(graph.shape(name)).numel())
        self.events = of_values(graph, self.reached)

    def _add(self, value: str, operations: Tensor) -> None:
        known = self.reached.get(value)
        self.reached[value] = operations if known is None else known + operations

    def macs_until(self, steps: int) -> float:
        """The multiplications of so many steps."""
        return self.macs if self.once else self.macs * steps
