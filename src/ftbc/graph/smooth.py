"""Staircases as the clamps that they approximate, for comparisons that must not depend on the last bit.

Folding a BatchNorm moves pre-activations by a rounding error. A clamp passes that on as it is; a staircase makes a
whole step of it where it crosses an edge, and every layer behind more of them.
"""

from __future__ import annotations

from torch import nn

from ftbc.activation import QCFS, SlipReLU
from ftbc.graph.ir import Graph
from ftbc.graph.leaves import put
from ftbc.graph.ops import Activation, Staircase


def smooth_model(model: nn.Module) -> nn.Module:
    """Replace every staircase of a model in place, and return it."""
    for name, module in list(model.named_modules(remove_duplicate=False)):
        if name and type(module) in (QCFS, SlipReLU):
            put(model, name, Activation(float(module.threshold)))  # type: ignore[arg-type]
        elif name and type(module) is Staircase:
            put(model, name, Activation(module.upper))
    return model


def smooth_graph(graph: Graph) -> Graph:
    """A copy of a graph without staircases; the graph itself if it has none."""
    sites = graph.of_type(Staircase)
    if not sites:
        return graph
    graph = graph.copy()
    for site in sites:
        graph.replace_module(site.name, Activation(site.module.upper))  # type: ignore[arg-type]
    return graph
