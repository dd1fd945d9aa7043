"""Policies for max-pooling, which is not linear and so does not pass spikes by itself.

`Spiking` (the default) is exact at every T for the average spikes that enter it, and so in the limit of large T.
`Before` moves the pool in front of the neuron, where the largest current of each *single step* is taken: since
ReLU and max commute it is exact for constant currents, and too large for currents that fluctuate.
`Average` puts an average pool in its place: linear and cheap on chips, but another network.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from ftbc.errors import UnsupportedError
from ftbc.graph.ir import Graph, Node
from ftbc.graph.ops import Activation, MaxPool
from ftbc.graph.spec import clone


@dataclass(frozen=True)
class Spiking:
    """Keep max-pools; `place` turns each into a `SpikingMaxPool`."""

    def __call__(self, graph: Graph) -> None:
        """Nothing to rewrite."""


@dataclass(frozen=True)
class Before:
    """Move each max-pool in front of the activation that it follows."""

    def __call__(self, graph: Graph) -> None:
        """Rewrite the graph in place; readers of the unpooled activation keep it."""
        for pool in graph.of_type(*MaxPool):
            if _before_activations(graph, pool):
                continue
            activation = graph.nodes.get(pool.inputs[0])
            if activation is None or not isinstance(activation.module, Activation):
                raise UnsupportedError(
                    f"{pool.place} does not directly follow an activation and cannot be moved before it: "
                    'choose pool="spiking"'
                )
            moved = Node(f"{pool.name}_activation", clone(activation.module), (pool.name,), pool.shape, pool.source)
            readers = graph.users(pool.name)
            name = graph.insert_after(pool.name, moved)
            graph.rewire(pool.name, name, readers)
            if graph.output == pool.name:
                graph.output = name
            pool.inputs = activation.inputs
        graph.prune()


def _before_activations(graph: Graph, pool: Node) -> bool:
    readers = graph.users(pool.name)
    return bool(readers) and all(isinstance(reader.module, Activation) for reader in readers)


@dataclass(frozen=True)
class Average:
    """Replace each max-pool by an average pool of the same window."""

    def __call__(self, graph: Graph) -> None:
        """Rewrite the graph in place."""
        for pool in graph.of_type(*MaxPool):
            graph.replace_module(pool.name, _average(pool))


def _average(node: Node) -> nn.Module:
    module = node.module
    kind = getattr(nn, type(module).__name__.replace("Max", "Avg"))
    if "Adaptive" in type(module).__name__:
        return kind(module.output_size)
    dilation = module.dilation if isinstance(module.dilation, tuple) else (module.dilation,)  # type: ignore
    if any(d != 1 for d in dilation):  # type: ignore[union-attr]
        raise UnsupportedError(f'{node.place} is dilated and has no average counterpart: choose pool="spiking"')
    return kind(module.kernel_size, module.stride, module.padding, module.ceil_mode, count_include_pad=False)


POLICIES = {"spiking": Spiking, "before": Before, "average": Average}
