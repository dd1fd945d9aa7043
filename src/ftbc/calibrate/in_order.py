"""The neuron sites of a network one after another, each with its currents over all steps and images.

Many calibrations go layer by layer: what a layer receives is known only once all layers before it are calibrated.
Released code runs the whole network anew for each layer, L networks of T steps. Here every layer runs once on what the
layers before it have sent, which a `Flow` keeps. A site is visited whole, every neuron on every image, for methods that
change what neurons are; those that also change weights, on rows of what reaches a site, take part in a `walk` over the
same flow (`walk/conduct.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ftbc.calibrate.walk.flow import Flow
from ftbc.graph.ir import INPUT, Graph, Node
from ftbc.graph.ops import Activation
from ftbc.neuron.spiking import Spiking
from ftbc.neuron.temporal import Temporal

_KEPT = 1 << 28
"""Bytes of a layer's currents that are kept from the moment they are looked at until they are fired."""
_ANN_IMAGES = 64

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Segment:
    """The operations between one site and the sites before it; sources: the values that they start from."""

    site: Node
    sources: tuple[str, ...]
    nodes: tuple[Node, ...]

    def __call__(self, values: Tensors, weights: Tensors | None = None) -> Tensor:
        """The site's input from its sources, each ``[N, ...]``; weights: those of some nodes in place of their own."""
        values = dict(values)
        for node in self.nodes:
            inputs = tuple(values[name] for name in node.inputs)
            if weights is not None and node.name in weights:
                own = {"weight": weights[node.name]}
                values[node.name] = torch.func.functional_call(node.module, own, inputs)
            else:
                values[node.name] = node.run(*inputs)
        return values[self.site.inputs[0]]


def segments(graph: Graph, sites: type[nn.Module]) -> list[Segment]:
    """What leads to each site of a graph, in order; sites: the kind of module at which segments begin and end."""
    return [_segment(graph, node, sites) for node in graph.of_type(sites)]


def _segment(graph: Graph, site: Node, sites: type[nn.Module]) -> Segment:
    inner, sources, waiting = set(), set(), [site.inputs[0]]
    while waiting:
        name = waiting.pop()
        if name == INPUT or isinstance(graph[name].module, sites):
            sources.add(name)
        elif name not in inner:
            inner.add(name)
            waiting.extend(graph[name].inputs)
    return Segment(site, tuple(sorted(sources)), tuple(node for node in graph if node.name in inner))


class Site:
    """A layer of neurons at its turn: all layers before it are settled, none behind it has run."""

    def __init__(self, segment: Segment, flow: Flow) -> None:
        self.node = segment.site
        self.segment = segment
        self.steps = flow.steps
        self._flow = flow
        self._currents: list[Tensor] | None = None

    @property
    def neuron(self) -> Spiking:
        """The neurons, to be changed."""
        assert isinstance(self.node.module, Spiking)
        return self.node.module

    def currents(self) -> Iterator[Tensor]:
        """What the neurons receive, ``[T, n, ...]`` for each part of the images. Weights must not change after."""
        if self._currents is not None:
            yield from self._currents
            return
        kept: list[Tensor] | None = []
        size = 0
        for part in range(len(self._flow.parts)):
            current = self._flow.over_time(self.node.inputs[0], part)
            size += current.untyped_storage().nbytes()
            kept = [*kept, current] if kept is not None and size <= _KEPT else None
            yield current
        self._currents = kept

    def spikes(self) -> Iterator[Tensor]:
        """What the neurons, as they are now, send of their currents: ``[T, n, ...]`` for each part of the images."""
        module = self.node.module
        assert isinstance(module, Temporal)
        for current in self.currents():
            module.reset()
            yield module.run(current)
        module.reset()

    def mean_inputs(self) -> Tensors:
        """The mean over time of each source of the segment, ``[N, ...]``."""
        flow = self._flow
        alike = flow.parts[0].new_full((self.steps,), 1 / self.steps)
        return {
            name: torch.cat([flow.mean(name, part, alike) for part in range(len(flow.parts))])
            for name in self.segment.sources
        }


def in_order(snn: Graph, x: Tensor, steps: int) -> Iterator[Site]:
    """Each layer of neurons in turn; what it becomes until the next is asked for is what fires."""
    flow = Flow(snn, x, steps)
    found = segments(snn, Temporal)
    for index, segment in enumerate(found):
        site = Site(segment, flow)
        if isinstance(segment.site.module, Spiking):
            yield site
        if any(segment.site.name in later.sources for later in found[index + 1 :]):
            flow.keep(segment.site.name, site.spikes())


def activations(ann: Graph, x: Tensor) -> Iterator[Tensor]:
    """The activations ``[N, ...]`` of each site in turn; a layer runs once, and only what is still read is kept."""
    found = segments(ann, Activation)
    last_reader = {name: index for index, segment in enumerate(found) for name in segment.sources}
    values = {INPUT: x}
    for index, segment in enumerate(found):
        parts = [
            segment.site.module(segment({name: values[name][start : start + _ANN_IMAGES] for name in segment.sources}))
            for start in range(0, max(len(x), 1), _ANN_IMAGES)
        ]
        a = torch.cat(parts)
        yield a
        values = {name: value for name, value in values.items() if last_reader.get(name, 0) > index}
        if segment.site.name in last_reader:
            values[segment.site.name] = a
