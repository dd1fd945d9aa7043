"""Where synapses meet: the values at which a spiking network is compared with the ANN, and what can be refitted there.

The output of a convolution or linear layer is followed through sums and factors per channel as long as nobody else
reads it. Synapses that arrive at the same value - the two branches of a residual block with a projection - are one
junction: their weights are chosen together, and so that they make up for what the other branches of the sum lost.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from torch import Tensor, nn

from ftbc.calibrate.walk.rows import channel_dimension
from ftbc.graph.ir import Graph, Node
from ftbc.graph.ops import Activation, Affine, Sum, Synapses
from ftbc.simulate.schedule import varying


@dataclass(frozen=True)
class Junction:
    """A value that synapses lead to and neurons or others read.

    value: its name; dim: the dimension of an item in which its channels lie; synapses: the names of those that lead to
    it, without those that read the image alone and so cannot err; site: the neurons that read it, if there are any;
    alone: whether nobody else reads it, so that what they do not let through does not matter.
    """

    value: str
    dim: int = 0
    synapses: tuple[str, ...] = ()
    site: str | None = None
    alone: bool = False


@dataclass
class _Found:
    synapses: list[str] = field(default_factory=list)
    sites: list[str] = field(default_factory=list)


def junctions(ann: Graph, snn: Graph) -> list[Junction]:
    """The junctions of a network in order; of several sites that read one value each is one of its own."""
    changing = varying(snn, input_varies=False)
    found: dict[str, _Found] = {}
    for node in ann:
        if isinstance(node.module, Synapses) and any(name in changing for name in node.inputs):
            found.setdefault(path(ann, node)[-1].name, _Found()).synapses.append(node.name)
        elif isinstance(node.module, Activation):
            found.setdefault(node.inputs[0], _Found()).sites.append(node.name)
    order = {name: place for place, name in enumerate(ann.nodes)}
    listed = []
    for value, at in sorted(found.items(), key=lambda item: order.get(item[0], -1)):
        readers = ann.users(value)
        alone = value != ann.output and len(readers) == 1 and isinstance(readers[0].module, Activation)
        dim = channel_dimension(ann[at.synapses[0]].module, ann.shape(value)) if at.synapses else 0
        first, *others = at.sites or [None]
        listed.append(Junction(value, dim, tuple(at.synapses), first, alone))
        listed += [Junction(value, dim, (), site) for site in others]
    return listed


def path(graph: Graph, node: Node) -> list[Node]:
    """A layer and the sums and factors behind it, up to the value where it meets others' readers."""
    way = [node]
    while True:
        here = way[-1]
        readers = graph.users(here.name)
        if here.name == graph.output or len(readers) != 1 or not _passes(graph, node, here, readers[0]):
            return way
        way.append(readers[0])


def factor(way: list[Node], channels: int) -> Tensor | float:
    """By how much the output of the first node of a `path` counts in the last: a number, or one per channel."""
    total: Tensor | float = 1.0
    for before, node in itertools.pairwise(way):
        if isinstance(node.module, Sum):
            total = total * sum(
                w for w, name in zip(node.module.weights, node.inputs, strict=True) if name == before.name
            )
        elif isinstance(node.module, Affine):
            total = total * node.module.scale.reshape(-1).expand(channels)
    return total


def _passes(graph: Graph, first: Node, before: Node, node: Node) -> bool:
    """Whether what stands before a node can be read off behind it, channel by channel."""
    if before.shape != node.shape or any(graph.shape(name) != node.shape for name in node.inputs):
        return False
    if isinstance(node.module, Sum):
        return sum(w for w, name in zip(node.module.weights, node.inputs, strict=True) if name == before.name) != 0
    if isinstance(node.module, Affine):
        scale = node.module.scale
        channel = scale.ndim - 1 if isinstance(first.module, nn.Linear) else 1
        return scale.numel() == scale.shape[channel] and bool((scale != 0).all())
    return False
