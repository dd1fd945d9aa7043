"""What the tests of the event engine share: spiking networks made in milliseconds, and the spikes of both engines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

import ftbc
from ftbc.graph.ir import Node
from ftbc.graph.ops import Activation
from ftbc.graph.pool import POLICIES
from ftbc.neuron import IntegrateFire, Kind, Plain, Spiking
from ftbc.neuron.place import place
from ftbc.simulate.event.engine import EventEngine
from ftbc.simulate.event.packed import Packed
from ftbc.simulate.readout import read
from ftbc.threshold.activations import Grain, grain_shape
from tests.graph.support import clean, settled

PLAIN = Plain()
Spikes = dict[str, Tensor]
"""Where each neuron layer fired, ``[T, N, ...]`` of bool."""


def images(shape: Sequence[int], count: int = 4, seed: int = 1, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn((count, *shape), generator=generator, dtype=torch.float64).to(dtype)


@torch.no_grad()
def spiking(
    model: nn.Module,
    x: Tensor,
    steps: int = 5,
    grain: Grain = "channel",
    pool: str = "spiking",
    measured: dict[str, tuple[float, float]] | None = None,
    seed: int = 3,
    kind: Kind = PLAIN,
    constants: Grain | None = None,
) -> ftbc.SpikingNetwork:
    """A network with random weights as a spiking one, in double precision.

    Thresholds are near the largest activations, initial potentials and temporal biases are random, so that nothing is
    zero by chance: what an engine forgets shows in the spikes. constants: for whom there is one of the latter, if not
    for whom there is a threshold.
    """
    x = x.double()
    cleaned = clean(settled(model, seed), x)
    POLICIES[pool]()(cleaned.graph)
    generator = torch.Generator().manual_seed(seed)
    neurons: dict[str, Spiking] = {}

    def neuron(node: Node, a: Tensor) -> None:
        if isinstance(node.module, Activation):
            shape = grain_shape(grain, node.shape)
            groups = a.reshape(-1, 1) if grain == "layer" else a.flatten(1) if grain == "neuron" else _channels(a)
            theta = 0.1 + 0.7 * groups.amax(0).reshape(shape)
            counted = steps - kind.extra_steps
            neurons[node.name] = kind(kind.rows(counted), len(node.shape)).set(theta, theta)
            shape = shape if constants is None else grain_shape(constants, node.shape)
            size = theta if constants is None else theta.mean()
            neurons[node.name].initial = size * torch.rand(shape, generator=generator, dtype=a.dtype)
            rows = (kind.rows(counted), *shape)
            neurons[node.name].bias = size * 0.2 * torch.randn(rows, generator=generator, dtype=a.dtype)
            neurons[node.name] = kind.settled(neurons[node.name], counted)

    cleaned.graph(x, neuron)
    graph = place(cleaned.graph, neurons, spiking_pools=pool == "spiking")
    return ftbc.SpikingNetwork(graph, steps, ftbc.recipe("mean-square"), cleaned.head, measured).eval()


def _channels(a: Tensor) -> Tensor:
    return a.movedim(1, -1).reshape(-1, a.shape[1])


def dense_run(snn: ftbc.SpikingNetwork, x: Tensor, time_first: bool = False) -> tuple[Tensor, Spikes]:
    """The output of `layerwise`, and all spikes; of one portion of images and steps."""
    seen: dict[str, list[Tensor]] = {}

    def observe(node: Node, inputs: list[Tensor], output: Tensor, start: int) -> None:
        if isinstance(node.module, IntegrateFire):
            seen.setdefault(node.name, []).append((output != 0).flatten(0, 1))

    output = snn(x, time_first=time_first, observe=observe)
    steps = len(output)
    found = {name: torch.cat(parts) for name, parts in seen.items()}
    return output, {name: spikes.unflatten(0, (steps, -1)) for name, spikes in found.items()}


def engine_of(snn: ftbc.SpikingNetwork, time_first: bool = False) -> EventEngine:
    """The event engine that this network runs on."""
    return snn._event_engine(time_first)


def event_run(snn: ftbc.SpikingNetwork, x: Tensor, time_first: bool = False) -> tuple[Tensor, Spikes]:
    """The output of the event engine, and all spikes, of cells as of the neurons that torch runs."""
    with torch.no_grad():
        engine = engine_of(snn, time_first)
    seen: dict[str, list[Tensor]] = {}
    wrapped = []

    def fire(name: str, packed: dict[str, Packed], *rest: object) -> Packed:
        spikes = EventEngine._fire(engine, name, packed, *rest)  # type: ignore[arg-type]
        steps, numbers = spikes.words.shape[1], spikes.unpack(torch.float32)
        assert np.array_equal(Packed.of(numbers, steps).words, spikes.words), "bits of channels that do not exist"
        seen.setdefault(name, []).append(numbers.unflatten(0, (steps, -1)) != 0)
        return spikes

    def watch(node: Node) -> None:
        own = node.module.run

        def run(current: Tensor) -> Tensor:
            spikes = own(current)
            seen.setdefault(node.name, []).append(spikes != 0)
            return spikes

        node.module.run = run  # type: ignore[assignment]
        wrapped.append(node.module)

    engine._fire = fire  # type: ignore[method-assign]
    for node in engine.graph.of_type(IntegrateFire):
        if node.name not in engine.layers:
            watch(node)
    try:
        with torch.no_grad():  # not by snn(x), which hands a network without cells to `layerwise`
            outputs = engine.run(x, len(x) if time_first else snn.steps, time_first)
    finally:
        del engine._fire
        for module in wrapped:
            del module.run
    return snn.read_out(read(outputs, snn.readout)), {name: torch.cat(parts, 1) for name, parts in seen.items()}


def assert_equal_runs(snn: ftbc.SpikingNetwork, x: Tensor, time_first: bool = False, gap: float = 0.0) -> Spikes:
    """Both engines: the same spikes of every neuron, outputs that differ by no more than ``gap``; the spikes."""
    wanted, spikes = dense_run(snn, x, time_first)
    found, events = event_run(snn, x, time_first)
    assert events.keys() == spikes.keys()
    for name in spikes:
        assert spikes[name].shape == events[name].shape
        differing = int((spikes[name] != events[name]).sum())
        assert not differing, f"{differing} of {spikes[name].numel()} spikes of '{name}' differ"
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    assert float((found - wanted).abs().max()) <= gap * max(1.0, float(wanted.abs().max()))
    assert any(bool(fired.any()) and not bool(fired.all()) for fired in spikes.values()), "a network that says nothing"
    return spikes


def single(snn: ftbc.SpikingNetwork) -> ftbc.SpikingNetwork:
    """A copy in float32."""
    graph = snn.graph.copy().float()
    return ftbc.SpikingNetwork(graph, snn.steps, snn.recipe, snn.head, dict(snn.measured)).eval()


def rounded(snn: ftbc.SpikingNetwork, x: Tensor) -> tuple[ftbc.SpikingNetwork, Tensor]:
    """The network in float32 and whole numbers, and its input."""
    return single(snn).rounded(x.float()), x.float()


def events(snn: ftbc.SpikingNetwork) -> list[str]:
    """How each layer gets its spikes."""
    return [layer.events for layer in snn.layers()]
