"""Put neurons where the activations stand, and make max-pools act on spike trains."""

from __future__ import annotations

from ftbc.graph.ir import Graph, Node
from ftbc.graph.ops import MaxPool
from ftbc.neuron.integrate_fire import IntegrateFire
from ftbc.neuron.max_pool import SpikingMaxPool


def place(ann: Graph, neurons: dict[str, IntegrateFire]) -> Graph:
    """A copy of the graph with the given neurons in the place of the activations of those names."""
    snn = ann.copy()
    for name, neuron in neurons.items():
        snn.replace_module(name, neuron)
    for node in snn.of_type(*MaxPool):
        if not _feeds_neurons_alone(snn, node):
            snn.replace_module(node.name, SpikingMaxPool(node.module))
    return snn


def _feeds_neurons_alone(graph: Graph, pool: Node) -> bool:
    """Whether a max-pool was moved in front of its neurons, where it acts on the current of each step."""
    users = graph.users(pool.name)
    return bool(users) and all(isinstance(user.module, IntegrateFire) for user in users)
