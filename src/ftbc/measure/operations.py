"""Synaptic operations: how many weights are added because of the spikes that occurred.

Each spike at an input of a layer reaches ``fan-out`` outputs, which depends on stride, padding, groups and position:

    SynOps(layer) = sum over the spikes at its inputs of their fan-out

A layer that reads the image itself multiplies (MACs), at each step unless neurons code changes alone; all others only
add (ACs, one SynOp each).
"""

from __future__ import annotations

import torch
from torch import Tensor

from ftbc.graph.ir import Graph, Node
from ftbc.graph.ops import Synapses
from ftbc.graph.spec import clone
from ftbc.measure.events import image_is_sent_once, of_inputs
from ftbc.simulate.schedule import varying


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


class OperationCounter:
    """An observer of the layer-wise engine that adds up SynOps at each step."""

    def __init__(self, graph: Graph, steps: int) -> None:
        changing = varying(graph, input_varies=False)
        self.spiking: dict[str, Tensor] = {}
        self.once = image_is_sent_once(graph)
        self.macs = 0.0
        self.dense_macs = 0.0
        for node in graph.of_type(*Synapses):
            reached = fan_out(node, graph.shape(node.inputs[0]))
            self.dense_macs += float(reached.sum())
            if node.inputs[0] in changing:
                self.spiking[node.name] = reached
            else:
                self.macs += float(reached.sum())
        self.events = of_inputs(graph, self.spiking)
        self.steps = steps
        self.synops = torch.zeros(steps, dtype=torch.float64)

    def __call__(self, node: Node, inputs: list[Tensor], output: Tensor, start: int) -> None:
        """Count what one layer did for one batch, from step ``start`` on."""
        if node.name in self.spiking:
            events = self.events[node.name](inputs[0], start).sum(1).flatten(1).double()
            self.synops[start : start + len(events)] += (events @ self.spiking[node.name].flatten()).cpu()

    def macs_until(self, steps: int) -> float:
        """The multiplications of so many steps."""
        return self.macs if self.once else self.macs * steps
