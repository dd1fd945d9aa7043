"""Where the time goes: the share of each kind of work in one run of an engine."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks import results
from benchmarks.networks import Subject, resnet20
from benchmarks.settings import Settings
from ftbc.convert import convert
from ftbc.graph.ir import Graph
from ftbc.graph.ops import Sum, Synapses
from ftbc.measure.machine import threads as using_threads
from ftbc.measure.speed import ENGINES, density
from ftbc.measure.timing import Spread
from ftbc.network import SpikingNetwork
from ftbc.neuron.spiking import Spiking
from ftbc.neuron.temporal import Temporal
from ftbc.simulate import event_engine, layerwise, stepwise
from ftbc.simulate.event.layer import EventLayer
from ftbc.simulate.event.packed import Packed

WEIGHTS, NEURONS, OTHER = "convolutions and linear layers", "neurons", "sums, pools, factors"
EVENTS, FIRING, DENSE = "adding weights for spikes", "currents, biases, firing", "dense layers (stem, head)"
READING, REST = "reading spikes for dense layers", "all else: Python, memory"


PLAIN = "plain"
"""The way before all others: every layer at every step, and a neuron as operations of torch."""


class Stopwatch:
    """Adds up the seconds spent in methods, by kind of work; of a method that calls another, those of the outer one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.running = False

    def watch(self, owner: Any, method: str, kind: str) -> None:
        """Time a method of one object."""
        setattr(owner, method, self.timed(getattr(owner, method), kind))

    def timed(self, call: Callable[..., Any], kind: str) -> Callable[..., Any]:
        """The same call, with its time added up."""

        def run(*given: Any, **named: Any) -> Any:
            if self.running:
                return call(*given, **named)
            self.running, begun = True, time.perf_counter()
            try:
                return call(*given, **named)
            finally:
                self.seconds[kind] += time.perf_counter() - begun
                self.running = False

        return run


def run(settings: Settings) -> None:
    """Shares in percent for every engine and for the plain way, ResNet-20, T = 8, one thread; and the whole time."""
    subject = resnet20(settings)
    snn = convert(subject.model, subject.images, settings.pick(8, 2), subject.recipe)
    images = subject.images[: subject.batch]
    ways: dict[str, Callable[[], Profile]] = {PLAIN: lambda: _plain(snn, images)}
    for name, engine in ENGINES.items():
        network = snn.rounded(images) if engine.whole else snn
        take = _events if engine.engine == "event" else _dense
        ways[name] = partial(take, network, images, engine.engine)
    rows: list[dict[str, Any]] = []
    print(f"share of the time, {subject.name}, T = {snn.steps}, {len(images)} images, 1 thread")
    with using_threads(1), torch.no_grad():
        rounds = [{name: take() for name, take in ways.items()} for _ in range(settings.repeats + 1)][1:]
    for name in ways:
        whole = Spread.of([found[name].seconds / found["layerwise"].seconds for found in rounds])
        print(f"  {name:12} {'time over that of layerwise':36} {whole!s:>20}")
        for kind in rounds[0][name].shares:
            spread = Spread.of([100 * found[name].shares.get(kind, 0.0) for found in rounds])
            rows.append(_row(subject, snn, images, name, kind, spread, whole, settings))
            print(f"  {name:12} {kind:36} {spread!s:>20} %", flush=True)
    results.write(settings, "profiles", rows)


@dataclass(frozen=True)
class Profile:
    """The seconds of one run, and the share of each kind of work in them."""

    seconds: float
    shares: dict[str, float]


def _row(
    subject: Subject,
    snn: SpikingNetwork,
    images: Tensor,
    engine: str,
    kind: str,
    spread: Spread,
    whole: Spread,
    settings: Settings,
) -> dict[str, Any]:
    return {
        **subject.about(),
        "engine": engine,
        "work": kind,
        "steps": snn.steps,
        "n": len(images),
        "threads": 1,
        "density": density(snn, images),
        "repeats": settings.repeats,
        "percent": spread.to_dict(),
        "time_over_layerwise": whole.to_dict(),
    }


class _TorchNeuron(nn.Module):
    """Integrate-and-fire as one writes it down: each line reads and writes all membranes."""

    def __init__(self, neuron: Spiking) -> None:
        super().__init__()
        self.neuron, self.v, self.t = neuron, neuron.spread(neuron.initial), 0

    def forward(self, x: Tensor) -> Tensor:
        """The spikes of the next step."""
        theta = self.neuron.spread(self.neuron.threshold)
        v = self.v + x + self.neuron.spread(self.neuron.bias[self.t])
        spikes = (v >= theta) * theta
        self.v, self.t = v - spikes, self.t + 1
        return spikes


def _plain(network: SpikingNetwork, images: Tensor) -> Profile:
    watch, graph = Stopwatch(), network.graph.copy()
    for node in graph.of_type(Spiking):
        assert isinstance(node.module, Spiking)
        graph.replace_module(node.name, _TorchNeuron(node.module))
    for node in graph:
        kind = WEIGHTS if isinstance(node.module, Synapses) else OTHER
        watch.watch(node.module, "forward", NEURONS if isinstance(node.module, _TorchNeuron) else kind)
    begun = time.perf_counter()
    torch.stack([graph(images) for _ in range(network.steps)]).cumsum(0)
    return _profile(watch, time.perf_counter() - begun, (WEIGHTS, NEURONS, OTHER))


def _dense(network: SpikingNetwork, images: Tensor, engine: str) -> Profile:
    watch, graph = Stopwatch(), network.graph.copy()
    _watch_nodes(watch, graph)
    begun = time.perf_counter()
    if engine == "stepwise":
        for _ in stepwise(graph, images, network.steps):
            pass
    else:
        layerwise(graph, images, network.steps)
    return _profile(watch, time.perf_counter() - begun, (WEIGHTS, NEURONS, OTHER))


def _watch_nodes(watch: Stopwatch, graph: Graph) -> None:
    for node in graph:
        if isinstance(node.module, Temporal):
            watch.watch(node.module, "run", NEURONS)  # `forward` calls it
            watch.watch(node.module, "consume", NEURONS)
        else:
            watch.watch(node.module, "forward", WEIGHTS if isinstance(node.module, Synapses) else OTHER)
        if isinstance(node.module, Sum):
            watch.watch(node.module, "consume", OTHER)


def _events(network: SpikingNetwork, images: Tensor, _: str) -> Profile:
    """As `_dense`; each layer runs once more without its jobs, which tells the two parts of its time apart."""
    rates = {name: rate for name, (rate, _) in network.measured.items()}
    engine = event_engine(network.graph, rates)
    engine.run(images, network.steps)  # compile, and fill the caches
    watch = Stopwatch()
    again = 0.0
    for node in engine.graph:
        if node.name not in engine.layers:
            watch.watch(node.module, "run" if isinstance(node.module, Temporal) else "forward", DENSE)
    for layer in [*engine.layers.values(), *engine.reserve.values()]:
        real = layer.run

        def twice(sources: dict[str, Packed], *given: Any, real=real, layer=layer) -> Any:  # type: ignore[no-untyped-def]
            nonlocal again
            begun = time.perf_counter()
            found = real(sources, *given)
            taken = time.perf_counter() - begun
            begun = time.perf_counter()
            with _without_jobs(layer):
                real(sources, *given)
            quiet = time.perf_counter() - begun
            again += quiet
            quiet = min(taken, quiet)
            watch.seconds[EVENTS] += taken - quiet
            watch.seconds[FIRING] += quiet
            return found

        setattr(layer, "run", twice)  # noqa: B010
    with _reading_timed(watch):
        begun = time.perf_counter()
        engine.run(images, network.steps)
        total = time.perf_counter() - begun - again
    return _profile(watch, total, (EVENTS, FIRING, DENSE, READING))


@contextmanager
def _without_jobs(layer: EventLayer) -> Iterator[None]:
    parts = layer.parts
    layer.parts = [replace(part, table=part.table[:0], sources=[]) for part in parts]
    try:
        yield
    finally:
        layer.parts = parts


@contextmanager
def _reading_timed(watch: Stopwatch) -> Iterator[None]:
    unpack, totals = Packed.unpack, Packed.totals
    Packed.unpack = watch.timed(unpack, READING)  # type: ignore[method-assign]
    Packed.totals = watch.timed(totals, READING)  # type: ignore[method-assign]
    try:
        yield
    finally:
        Packed.unpack, Packed.totals = unpack, totals  # type: ignore[method-assign]


def _profile(watch: Stopwatch, seconds: float, kinds: tuple[str, ...]) -> Profile:
    shares = {kind: watch.seconds[kind] / seconds for kind in kinds}
    return Profile(seconds, {**shares, REST: max(0.0, 1 - sum(shares.values()))})
