"""How fast each engine runs a spiking network, always beside the ANN that the network came from.

The ANN is given every advantage: BatchNorm folded, the best of several batch sizes, both layouts in memory. All ways
run in turn in one process, and every figure is a ratio of runs of the same round. Beside engines that run for seconds
the ANN makes several passes: on a machine that stalls now and then, a median of short runs would leave the stalls out,
and one of long runs would not.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ftbc.calibration_data import check_model, gather_images
from ftbc.errors import InputError
from ftbc.graph.canonical import canonical
from ftbc.graph.fold import fold
from ftbc.graph.ir import Graph, Node
from ftbc.graph.trace import trace
from ftbc.measure.events import of_neurons
from ftbc.measure.machine import threads as using_threads
from ftbc.measure.timing import Spread, Way, fastest, interleaved
from ftbc.network import SpikingNetwork
from ftbc.progress import Progress, silent

ANN_BATCHES = (1, 4, 8, 16, 32, 64)
ANN_IMAGES = 64
"""The ANN runs on up to so many images, whatever the batch: then all of its batch sizes do the same work."""
_SEARCH, _SHORTLIST = 3, 2
_SHARE = 4
"""The ANN classifies one image for so many steps of an image in the engines: long enough, and not all of the time."""


@dataclass(frozen=True)
class Engine:
    """A way to run a spiking network; whole: after `SpikingNetwork.rounded`, so that events run in 16-bit integers."""

    name: str
    engine: str
    whole: bool = False

    @property
    def usable(self) -> bool:
        """Whether this installation has what it needs."""
        return self.engine != "event" or importlib.util.find_spec("numba") is not None


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("layerwise", "layerwise"),
        Engine("stepwise", "stepwise"),
        Engine("event", "event"),
        Engine("event-int16", "event", whole=True),
    )
}


@dataclass(frozen=True)
class AnnSpeed:
    """How the ANN ran that an engine is compared with."""

    batch: int
    layout: str
    images_per_second: Spread


@dataclass(frozen=True)
class Speed:
    """One engine at one batch size, beside the ANN in the same rounds.

    over_ann: its images a second (of T steps each) over those of the ANN, which is at its best batch, or at batch 1 if
    the engine is; density: spikes per neuron and step; numbers: how many layers get their spikes as events, in which
    numbers, or densely.
    """

    engine: str
    steps: int
    batch: int
    threads: int
    density: float
    numbers: dict[str, int]
    repeats: int
    images_per_second: Spread
    over_ann: Spread
    ann: AnnSpeed

    @property
    def steps_over_ann(self) -> Spread:
        """Image-steps a second over the images a second of the ANN: at 1, a step costs as much as the ANN."""
        return self.over_ann * self.steps

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "steps_over_ann": self.steps_over_ann.to_dict()}


class Bench:
    """The engines beside one ANN.

    images: ``[N, ...]``, for the engines and the ANN alike; ann_batches: the batch sizes that the ANN may choose from;
    alone: one image at a time is measured over so many, because a processor would learn the spikes of a single one.

    >>> import ftbc
    >>> ann, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), torch.rand(8, 4)
    >>> bench = Bench(ann, x, repeats=1)
    >>> [row.engine for row in bench.compare(ftbc.convert(ann, x, steps=2), [ENGINES["layerwise"]], batches=(8,))]
    ['layerwise']
    """

    def __init__(
        self,
        model: nn.Module,
        images: Tensor,
        *,
        ann_batches: Sequence[int] = ANN_BATCHES,
        alone: int = 16,
        repeats: int = 5,
        progress: Progress = silent,
    ) -> None:
        check_model(model)
        images = gather_images(images, model)
        self.images, self.alone, self.repeats, self.progress = images, images[:alone], repeats, progress
        self.ann = _Ann(folded(model, images[:1]), images[:ANN_IMAGES], ann_batches)
        self._best: dict[int, dict[str, tuple[int, str]]] = {}

    @torch.no_grad()
    def compare(
        self,
        snn: SpikingNetwork,
        engines: Sequence[Engine] = tuple(ENGINES.values()),
        *,
        batches: Sequence[int] = (32, 1),
        threads: int = 1,
    ) -> list[Speed]:
        """A row for each engine and batch size, all measured in the same rounds."""
        sizes = list(dict.fromkeys(min(batch, len(self.images)) for batch in batches))
        if not sizes or min(sizes) < 1:
            raise InputError(f"batches={tuple(batches)}: give at least one whole number, none below 1")
        spikes = density(snn, self.images[: max(sizes)])
        with using_threads(threads):
            if threads not in self._best:
                self._best[threads] = self.ann.best(self.progress)
            anns = self._best[threads]
            passes = max(1, snn.steps * max(sizes) // (_SHARE * len(self.ann)))
            ways = {name: self.ann.way(*choice, passes) for name, choice in anns.items()}
            whole = snn.rounded(self.images[: max(sizes)]) if any(engine.whole for engine in engines) else snn
            networks = {engine.name: whole if engine.whole else snn for engine in engines}
            for engine in engines:
                for batch in sizes:
                    ways[f"{engine.name}, batch {batch}"] = self._way(networks[engine.name], engine.engine, batch)
            timings = interleaved(ways, self.repeats, progress=self.progress, what=f"T = {snn.steps}")
        rows = []
        for engine in engines:
            numbers = _numbers(networks[engine.name]) if engine.engine == "event" else {}
            for batch in sizes:
                timing = timings[f"{engine.name}, batch {batch}"]
                rivals = {name: timings[name] for name, (size, _) in anns.items() if batch > 1 or size == 1}
                ann = fastest(rivals)[0]
                rows.append(
                    Speed(
                        engine=engine.name,
                        steps=snn.steps,
                        batch=batch,
                        threads=threads,
                        density=spikes,
                        numbers=numbers,
                        repeats=self.repeats,
                        images_per_second=timing.per_second,
                        over_ann=timing.speed_over(timings[ann]),
                        ann=AnnSpeed(*anns[ann], timings[ann].per_second),
                    )
                )
        return rows

    def _way(self, network: SpikingNetwork, engine: str, batch: int) -> Way:
        if batch > 1:
            images = self.images[:batch]
            return Way(lambda: network(images, engine=engine), len(images))
        return Way(lambda: [network(image, engine=engine) for image in self.alone.split(1)], len(self.alone))


class _Ann:
    """The ANN on one set of images, in every layout and batch size."""

    def __init__(self, graph: Graph, images: Tensor, batches: Sequence[int]) -> None:
        self.forms = {"plain layout": (graph, images)}
        if images.ndim == 4:
            last = graph.copy().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            self.forms["channels last"] = (last, images.contiguous(memory_format=torch.channels_last))
        self.batches = sorted({1, *(batch for batch in batches if batch <= len(images))})

    def __len__(self) -> int:
        """How many images it runs on."""
        return len(self.forms["plain layout"][1])

    def way(self, batch: int, layout: str, passes: int = 1) -> Way:
        graph, images = self.forms[layout]
        parts = images.split(batch)
        return Way(lambda: [graph(part) for _ in range(passes) for part in parts], passes * len(images))

    def best(self, progress: Progress) -> dict[str, tuple[int, str]]:
        """The fastest few batch sizes and layouts, and the fastest layout for one image at a time."""
        choices = {f"ANN, batch {b}, {layout}": (b, layout) for b in self.batches for layout in self.forms}
        ways = {name: self.way(*choice) for name, choice in choices.items()}
        timings = interleaved(ways, _SEARCH, progress=progress, what="ANN")
        alone = {name: timings[name] for name, (batch, _) in choices.items() if batch == 1}
        return {name: choices[name] for name in (*fastest(timings, _SHORTLIST), *fastest(alone))}


@torch.no_grad()
def folded(model: nn.Module, images: Tensor) -> Graph:
    """The ANN as the engines see it: a clean graph with BatchNorm folded into the weights."""
    graph = canonical(trace(model, images)).require().graph
    fold(graph)
    return graph.eval()


def density(snn: SpikingNetwork, images: Tensor) -> float:
    """Spikes per neuron and step, over all neurons of the network."""
    fired = places = 0
    events = of_neurons(snn.graph)

    def count(node: Node, inputs: list[Tensor], output: Tensor, start: int) -> None:
        nonlocal fired, places
        if node.name in events:
            fired += int(events[node.name](output, start).sum(dtype=torch.float64))
            places += output.numel()

    snn(images, observe=count)
    return fired / places


def _numbers(network: SpikingNetwork) -> dict[str, int]:
    return dict(Counter(row.events for row in network.layers()))
