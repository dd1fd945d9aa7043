"""The neuron sites of a network one after another, each with its currents over all steps and images.

Many calibrations go layer by layer: what a layer receives is known only once all layers before it are calibrated.
Released code runs the whole network anew for each layer, L networks of T steps. Here every layer runs once: the spike
trains of the layers before are kept, a bit for each spike, and only as long as a later layer reads them. Images are
taken in parts that fit into memory; what a calibration learns, it learns from all of them before the next layer's turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ftbc.graph.ir import INPUT, Graph, Node
from ftbc.graph.ops import Activation
from ftbc.neuron.integrate_fire import IntegrateFire
from ftbc.neuron.spiking import Spiking
from ftbc.neuron.temporal import Temporal

_AT_ONCE = 1 << 26
"""Bytes that the largest layer may take over the images and steps computed at once."""
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
                values[node.name] = node.module(*inputs)
        return values[self.site.inputs[0]]

    def over_time(self, values: Tensors, steps: int) -> Tensor:
        """The site's currents ``[T, N, ...]`` from spike trains ``[T, N, ...]`` and the image ``[N, ...]``."""
        if self.sources == (INPUT,):
            current = self(values)
            return current.expand(steps, *current.shape)
        folded = {
            name: torch.cat([value] * steps) if name == INPUT else value.flatten(0, 1) for name, value in values.items()
        }
        return self(folded).unflatten(0, (steps, -1))


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

    def __init__(self, segment: Segment, parts: list[dict[str, Callable[[], Tensor]]], steps: int) -> None:
        self.node = segment.site
        self.segment = segment
        self.steps = steps
        self._parts = parts
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
        for part in self._parts:
            current = self.segment.over_time({name: part[name]() for name in self.segment.sources}, self.steps)
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
        means: dict[str, list[Tensor]] = {name: [] for name in self.segment.sources}
        for part in self._parts:
            for name, rows in means.items():
                rows.append(part[name]() if name == INPUT else part[name]().mean(0))
        return {name: torch.cat(rows) for name, rows in means.items()}


def in_order(snn: Graph, x: Tensor, steps: int) -> Iterator[Site]:
    """Each layer of neurons in turn; what it becomes until the next is asked for is what fires."""
    found = segments(snn, Temporal)
    last_reader = {name: index for index, segment in enumerate(found) for name in segment.sources}
    largest = x.element_size() * max(torch.Size(node.shape).numel() for node in snn)
    images = x.split(max(1, _AT_ONCE // (steps * largest)))
    parts: list[dict[str, Callable[[], Tensor]]] = [{INPUT: lambda part=part: part} for part in images]
    for index, segment in enumerate(found):
        name, module = segment.site.name, segment.site.module
        site = Site(segment, parts, steps)
        if isinstance(module, Spiking):
            yield site
        if name in last_reader:
            for part, spikes in zip(parts, site.spikes(), strict=True):
                part[name] = _kept(spikes, module)
        for part in parts:
            for done in [source for source in part if last_reader.get(source, index) <= index]:
                del part[done]


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


def _kept(spikes: Tensor, module: nn.Module) -> Callable[[], Tensor]:
    """A function that gives spikes ``[T, N, C, ...]`` back, made of their bits if all are of one size."""
    if type(module) is not IntegrateFire:
        return lambda: spikes
    # Channels innermost, as convolutions are fastest.
    fired = (spikes != 0).movedim(2, -1).contiguous()
    bits, shape, theta = np.packbits(fired.cpu().numpy()), fired.shape, module.spread(module.threshold)

    def unpacked() -> Tensor:
        flat = torch.from_numpy(np.unpackbits(bits, count=shape.numel())).to(theta.device)
        return flat.view(shape).movedim(-1, 2) * theta

    return unpacked
