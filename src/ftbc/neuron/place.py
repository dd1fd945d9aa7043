"""Put neurons where the activations stand, and make max-pools act on spike trains."""

from __future__ import annotations

from collections.abc import Mapping

from ftbc.graph.ir import Graph
from ftbc.graph.ops import MaxPool
from ftbc.neuron.kind import Kind
from ftbc.neuron.max_pool import SpikingMaxPool
from ftbc.neuron.restart import RestartingMaxPool
from ftbc.neuron.spiking import Spiking


def place(ann: Graph, neurons: Mapping[str, Spiking], spiking_pools: bool) -> Graph:
    """A copy of the graph with the given neurons in the place of the activations of those names.

    spiking_pools: let max-pools act on what has accumulated; otherwise they take the largest value of each step.
    """
    snn = ann.copy()
    for name, neuron in neurons.items():
        snn.replace_module(name, neuron)
    for node in snn.of_type(*MaxPool) if spiking_pools else ():
        snn.replace_module(node.name, SpikingMaxPool(node.module))
    return snn


def settle(snn: Graph, kind: Kind, steps: int) -> None:
    """Make calibrated neurons, in place, what their kind makes of them; steps: those that count."""
    for node in snn.of_type(Spiking):
        assert isinstance(node.module, Spiking)
        snn.replace_module(node.name, kind.settled(node.module, steps))
    for node in snn.of_type(SpikingMaxPool) if kind.extra_steps else ():
        assert isinstance(node.module, SpikingMaxPool)
        snn.replace_module(node.name, RestartingMaxPool(node.module.pool, kind.extra_steps))
