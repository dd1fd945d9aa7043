"""How speed changes with T, batch, width and firing density, on one thread."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from benchmarks import results
from benchmarks.networks import Subject, resnet20, vgg16, wide_resnet20
from benchmarks.settings import Settings
from ftbc.convert import convert
from ftbc.graph.ir import Graph, Node
from ftbc.measure.match import relative_error_and_rate
from ftbc.measure.speed import Bench, Speed, folded
from ftbc.network import SpikingNetwork
from ftbc.neuron import IntegrateFire
from ftbc.neuron.functional import fire
from ftbc.simulate.stepwise import stepwise


def run(settings: Settings) -> None:
    """Four tables: image-steps a second of each engine over the images a second of the ANN."""
    rows: list[dict[str, Any]] = []
    for what, measure in (("T", _steps), ("batch", _batches), ("width", _widths), ("density", _densities)):
        found = measure(settings)
        rows += [{"growth": what, **row} for row in found]
        print(f"image-steps/s over the ANN's images/s against {what}")
        for row in found:
            ratio = f"{row['steps_over_ann']['median']:.2f}"
            place = f"T = {row['steps']}, batch {row['batch']}, density {100 * row['density']:.1f} %"
            print(f"  {row['network']:15} {row['engine']:12} {place:38} {ratio:>7} x", flush=True)
        results.write(settings, "growth", rows)


def _steps(settings: Settings) -> list[dict[str, Any]]:
    subject, found = resnet20(settings, "mean-square"), []
    bench = Bench(subject.model, subject.images, repeats=settings.repeats)
    for steps in settings.pick((1, 2, 4, 8, 16, 32, 64, 128), (1, 4)):
        snn = convert(subject.model, subject.images, steps, subject.recipe)
        found += bench.compare(snn, batches=(settings.pick(16, 4),))
    return _rows(subject, found)


def _batches(settings: Settings) -> list[dict[str, Any]]:
    """Batch 1 is compared with the ANN on one image at a time, the others with the ANN at its best."""
    subject, found = resnet20(settings, "mean-square"), []
    bench = Bench(subject.model, subject.images, repeats=settings.repeats)
    snn = convert(subject.model, subject.images, settings.pick(8, 2), subject.recipe)
    for batch in settings.pick((1, 2, 4, 8, 16, 32, 64, 128, 256), (1, 4)):
        found += bench.compare(snn, batches=(batch,))
    return _rows(subject, found)


def _widths(settings: Settings) -> list[dict[str, Any]]:
    rows = []
    for width in settings.pick((1, 2, 4), (1, 2)):
        subject = wide_resnet20(settings, width)
        bench = Bench(subject.model, subject.images, repeats=settings.repeats)
        snn = convert(subject.model, subject.images, settings.pick(8, 2), subject.recipe)
        found = bench.compare(snn, batches=(subject.batch,))
        rows += [{"width": width, **row} for row in _rows(subject, found)]
    return rows


def _densities(settings: Settings) -> list[dict[str, Any]]:
    rows = []
    for subject, batch in (
        (resnet20(settings, "mean-square"), settings.pick(32, 4)),
        (vgg16(settings), settings.pick(8, 2)),
    ):
        images = subject.images[:64]
        bench = Bench(subject.model, images, repeats=settings.repeats)
        snn = convert(subject.model, images, settings.pick(8, 2), subject.recipe)
        for share in settings.pick((0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5), (0.05, 0.3)):
            found = bench.compare(
                at_density(snn, folded(subject.model, images[:1]), images[:batch], share), batches=(batch,)
            )
            rows += [{"wanted_density": share, **row} for row in _rows(subject, found)]
    return rows


def _rows(subject: Subject, found: list[Speed]) -> list[dict[str, Any]]:
    return [{**subject.about(), **speed.to_dict()} for speed in found]


@torch.no_grad()
def at_density(snn: SpikingNetwork, ann: Graph, images: Tensor, share: float) -> SpikingNetwork:
    """The same network with biases such that this share of each layer's neurons fires at each step.

    The share is met on ``images``; one bias a layer and step is moved, weights and thresholds stay as they are.
    """
    graph = snn.graph.copy()
    for node in graph.of_type(IntegrateFire):
        neuron = node.module
        assert isinstance(neuron, IntegrateFire)
        neuron.bias = neuron.threshold.new_zeros((snn.steps, *neuron.threshold.shape))

    def moved(node: Node, current: Tensor) -> Tensor:
        neuron = node.module
        if not isinstance(neuron, IntegrateFire):
            return neuron(current)
        theta, u = neuron.spread(neuron.threshold), neuron.membrane(current) + current
        # In units of the threshold: a shift of all by one number makes the share of them reach 1.
        missing = ((theta - u) / theta).flatten()
        rank = min(len(missing) - 1, int(share * len(missing)))
        neuron.bias[neuron.t] = neuron.threshold * missing.kthvalue(rank + 1).values
        spikes, neuron.v = fire(u + neuron.spread(neuron.bias[neuron.t]), theta)
        neuron.t += 1
        return spikes

    for _ in stepwise(graph, images, snn.steps, cell=moved):
        pass
    # The event engine plans by how often each layer fires.
    measured = relative_error_and_rate(ann, graph, images, snn.steps)
    return SpikingNetwork(graph, snn.steps, snn.recipe, snn.head, measured).eval()
