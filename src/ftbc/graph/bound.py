"""Bounded activations as two that are not, for neurons whose spikes know no bound:

    clamp(z, 0, u) = max(z, 0) - max(z - u, 0)

A plain neuron sends theta a step at most, and theta is at most u. Neurons that send more in a step than their threshold
would pass on what a ReLU6 cuts off; here a second layer of them tells how much that is.
"""

from __future__ import annotations

from ftbc.graph.ir import Graph, Node
from ftbc.graph.ops import Activation, Affine, Sum


def without_bounds(graph: Graph) -> Graph:
    """A copy of a graph in which no activation has a bound; the graph itself if none has."""
    if not any(site.module.upper is not None for site in graph.of_type(Activation)):
        return graph
    graph = graph.copy()
    like = graph.tensors()[0]
    for site in graph.of_type(Activation):
        upper, rank = site.module.upper, len(site.shape)
        if upper is None:
            continue
        readers, last = graph.users(site.name), graph.output == site.name
        graph.replace_module(site.name, Activation())
        one = like.new_ones((1,) * (rank + 1))
        rest = Node(f"{site.name}_rest", Affine(one, -float(upper) * one), site.inputs, site.shape, site.source)
        rest_name = graph.insert_after(site.name, rest)
        above = Node(f"{site.name}_above", Activation(), (rest_name,), site.shape, site.source)
        above_name = graph.insert_after(rest_name, above)
        both = Node(f"{site.name}_bounded", Sum((1.0, -1.0)), (site.name, above_name), site.shape, site.source)
        bounded = graph.insert_after(above_name, both)
        graph.rewire(site.name, bounded, readers)
        if last:
            graph.output = bounded
    return graph
