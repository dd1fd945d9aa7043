"""A graph as straight Python code, the way a network is written by hand in any library."""

from __future__ import annotations

import operator
from collections.abc import Callable

from torch import fx, nn

from ftbc.graph.ir import INPUT, Graph
from ftbc.graph.ops import Activation, Reshape, Sum
from ftbc.neuron import IntegrateFire
from ftbc.simulate.schedule import varying

Neuron = Callable[[float], nn.Module]
"""Makes a layer of neurons of threshold 1 whose membranes begin at this value."""
Layer = Callable[[nn.Module], nn.Module]
"""What becomes of a module with one input."""


def plain_ann(graph: Graph) -> fx.GraphModule:
    """An ANN of torch's own modules alone, as converters of other libraries ask for."""
    code, modules = fx.Graph(), {}
    values = {INPUT: code.placeholder("x")}
    for node in graph:
        inputs = tuple(values[name] for name in node.inputs)
        if isinstance(node.module, Sum) and node.module.weights == (1.0, 1.0):
            values[node.name] = code.call_function(operator.add, inputs)
            continue
        place = f"m{len(modules)}"
        modules[place] = _of_torch(node.module)
        values[node.name] = code.call_module(place, inputs)
    code.output(values[graph.output])
    return fx.GraphModule(nn.ModuleDict(modules), code).eval()


def _of_torch(module: nn.Module) -> nn.Module:
    if isinstance(module, Activation) and module.upper is None:
        return nn.ReLU()
    if isinstance(module, Reshape) and len(module.shape) == 1:
        return nn.Flatten(1)
    if not type(module).__module__.startswith("torch.nn"):
        raise ValueError(f"torch.nn has no module for a {type(module).__name__}")
    return module


def stem_and_body(graph: Graph, neuron: Neuron, layer: Layer) -> tuple[nn.Module, fx.GraphModule]:
    """What is computed once from the image, and what is computed at each step from that.

    graph: with unit thresholds and no temporal bias. To compute the stem once is a favour: most people's code does it
    at each step.
    """
    changing = varying(graph, input_varies=False)
    stem = [node for node in graph if node.name not in changing]
    for before, node in zip([INPUT, *(node.name for node in stem)], stem, strict=False):
        if node.inputs != (before,):
            raise ValueError("only networks that begin with a chain of layers are written as straight code here")
    code, modules = fx.Graph(), {}
    values = {stem[-1].name: code.placeholder("x")}
    for node in graph:
        if node.name not in changing:
            continue
        place = f"m{len(modules)}"
        modules[place] = _spiking(node.module, len(node.inputs), neuron, layer)
        values[node.name] = code.call_module(place, tuple(values[name] for name in node.inputs))
    code.output(values[graph.output])
    return nn.Sequential(*(node.module for node in stem)).eval(), fx.GraphModule(nn.ModuleDict(modules), code).eval()


def _spiking(module: nn.Module, inputs: int, neuron: Neuron, layer: Layer) -> nn.Module:
    if not isinstance(module, IntegrateFire):
        return layer(module) if inputs == 1 else module
    start = module.initial.unique()
    if len(start) != 1 or bool(module.bias.any()) or bool((module.threshold != 1).any()):
        raise ValueError("only thresholds of 1, one initial membrane a layer and no temporal bias can be written here")
    return neuron(float(start))
