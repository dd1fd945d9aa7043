"""Put neurons where the activations stand, and make max-pools act on spike trains."""

from __future__ import annotations

from ftbc.graph.ir import Graph
from ftbc.graph.ops import MaxPool
from ftbc.neuron.integrate_fire import IntegrateFire
from ftbc.neuron.max_pool import SpikingMaxPool


def place(ann: Graph, neurons: dict[str, IntegrateFire], spiking_pools: bool) -> Graph:
    """A copy of the graph with the given neurons in the place of the activations of those names.

    spiking_pools: let max-pools act on what has accumulated; otherwise they take the largest value of each step.
    """
    snn = ann.copy()
    for name, neuron in neurons.items():
        snn.replace_module(name, neuron)
    for node in snn.of_type(*MaxPool) if spiking_pools else ():
        snn.replace_module(node.name, SpikingMaxPool(node.module))
    return snn
