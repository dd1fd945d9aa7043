"""What happens inside a spiking network, layer by layer and step by step, on a few images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from ftbc.calibration_data import check_model
from ftbc.graph.ir import Node
from ftbc.graph.ops import Activation
from ftbc.measure.error_split import ErrorSplit, error_split
from ftbc.measure.events import Events, of_neurons
from ftbc.measure.speed import folded
from ftbc.network import SpikingNetwork
from ftbc.neuron import IntegrateFire, Spiking

LOW, HIGH, BINS = -2.0, 3.0, 50
"""Membranes are counted in so many bins of this range of thresholds; what lies outside is in the outermost."""
WATCHED, CHANNELS = 48, 128
"""At most so many neurons of a layer are watched for their spikes, and so many channels for their biases."""


@dataclass(frozen=True)
class LayerInside:
    """One layer of neurons; lists over time have an entry for each step, extra ones first.

    thresholds: least, mean, largest; rate: spikes per neuron; split: where it departs from the ANN, for plain neurons;
    membrane: share of neurons in each bin before they fire, for plain neurons; raster: spikes, with their sign, of
    ``watched`` neurons (positions in the flattened layer) for the first image, ``[neurons][steps]``; bias: in
    thresholds, ``[rows][channels]``, the mean of each channel, of ``channels``.
    """

    name: str
    shape: tuple[int, ...]
    thresholds: tuple[float, float, float]
    rate: list[float]
    split: ErrorSplit | None
    membrane: list[list[float]] | None
    watched: list[int]
    raster: list[list[int]]
    channels: list[int]
    bias: list[list[float]]


@dataclass(frozen=True)
class Inside:
    """All layers, and what the network says of each image.

    predictions, confidences: ``[images][steps]``, the class of the largest output at each step that counts, and its
    softmax; reference: the classes that the ANN says, if it was given.
    """

    layers: list[LayerInside]
    images: int
    extra_steps: int
    predictions: list[list[int]]
    confidences: list[list[float]]
    reference: list[int] | None = field(default=None)


@torch.no_grad()
def look_inside(snn: SpikingNetwork, x: Tensor, reference: nn.Module | None = None) -> Inside:
    """Run some images and keep what their neurons did.

    x: ``[N, ...]``; a dozen is enough. reference: the ANN, for its answers and for the errors of each layer.

    >>> import ftbc
    >>> ann, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), torch.rand(16, 4)
    >>> inside = look_inside(ftbc.convert(ann, x, steps=2), x, ann)
    >>> [(layer.name, len(layer.rate), len(layer.raster)) for layer in inside.layers], len(inside.predictions)
    ([('1', 2, 8)], 16)
    """
    watch = _Watch(snn)
    # One image after another: then every step of a layer belongs to one image, however an engine cuts them.
    outputs = torch.cat([snn(image, head=False, observe=watch) for image in x.split(1)], 1)
    splits, said = _compared(snn, watch, x, reference)
    layers = [watch.layer(node, len(x), splits.get(node.name)) for node in snn.graph.of_type(Spiking)]
    if outputs.ndim != 3:  # no scores of classes, and so no answers
        return Inside(layers, len(x), snn.extra_steps, [], [], None)
    confidences, predictions = outputs.softmax(2).max(2)
    return Inside(layers, len(x), snn.extra_steps, predictions.T.tolist(), _short(confidences.T.tolist()), said)


class _Watch:
    """An observer of single images, one after another."""

    def __init__(self, snn: SpikingNetwork) -> None:
        steps = snn.extra_steps + snn.steps
        self.events: dict[str, Events] = of_neurons(snn.graph)
        self.fired = {name: torch.zeros(steps, dtype=torch.float64) for name in self.events}
        self.raster: dict[str, list[Tensor]] = {name: [] for name in self.events}
        self.histogram = {name: torch.zeros(steps, BINS, dtype=torch.float64) for name in self.events}
        self.mean: dict[str, list[Tensor]] = {name: [] for name in self.events}
        self.drive: dict[str, list[Tensor]] = {name: [] for name in self.events}
        self._left: dict[str, Tensor] = {}
        self.steps = steps

    def __call__(self, node: Node, inputs: list[Tensor], output: Tensor, start: int) -> None:
        name, neuron = node.name, node.module
        if not isinstance(neuron, Spiking):
            return
        fired = self.events[name](output, start)
        self.fired[name][start : start + len(output)] += fired.flatten(1).sum(1, dtype=torch.float64).cpu()
        first = not self.mean[name] if start == 0 else len(self.mean[name]) == 1
        if first:
            watched = _spaced(fired[0].numel(), WATCHED)
            signed = (fired * output.sign()).flatten(1)[:, watched]
            self.raster[name].append(signed.to(torch.int64).cpu())
        mean, drive = output.sum(0) / self.steps, torch.zeros_like(output[0])
        if isinstance(neuron, IntegrateFire):
            rows = neuron.bias[start : start + len(output)]
            charge = inputs[0] + torch.stack([neuron.spread(row) for row in rows]).unsqueeze(1)
            drive = charge.sum(0) / self.steps
            self._count(name, neuron, charge, output, start)
        if start == 0:
            self.mean[name].append(mean)
            self.drive[name].append(drive)
        else:
            self.mean[name][-1] = self.mean[name][-1] + mean
            self.drive[name][-1] = self.drive[name][-1] + drive

    def _count(self, name: str, neuron: Spiking, charge: Tensor, output: Tensor, start: int) -> None:
        """Membranes before they fire: what was there, all that came, less what was sent before."""
        v = neuron.spread(neuron.initial).expand_as(output[0]) if start == 0 else self._left[name]
        theta = neuron.spread(neuron.threshold)
        for t, (current, spike) in enumerate(zip(charge, output, strict=True), start):
            v = v + current
            places = ((v / theta - LOW) / (HIGH - LOW) * BINS).floor().clamp_(0, BINS - 1).long()
            self.histogram[name][t] += places.flatten().bincount(minlength=BINS).double().cpu()
            v = v - spike
        self._left[name] = v

    def layer(self, node: Node, images: int, split: ErrorSplit | None) -> LayerInside:
        neuron, size = node.module, torch.Size(node.shape).numel()
        assert isinstance(neuron, Spiking)
        theta = neuron.threshold
        rows = torch.stack([neuron.spread(row) / neuron.spread(theta) for row in neuron.bias])
        rows = rows.flatten(2).mean(2) if rows.ndim > 2 else rows
        channels = _spaced(rows.shape[1], CHANNELS)
        counted = self.histogram[node.name] / (images * size)
        return LayerInside(
            name=node.name,
            shape=tuple(node.shape),
            thresholds=(float(theta.min()), float(theta.mean()), float(theta.max())),
            rate=(self.fired[node.name] / images / size).tolist(),
            split=split,
            membrane=_short(counted.tolist()) if isinstance(neuron, IntegrateFire) else None,
            watched=_spaced(size, WATCHED).tolist(),
            raster=torch.cat(self.raster[node.name]).T.tolist(),
            channels=channels.tolist(),
            bias=_short(rows[:, channels].tolist()),
        )


def _compared(
    snn: SpikingNetwork, watch: _Watch, x: Tensor, reference: nn.Module | None
) -> tuple[dict[str, ErrorSplit], list[int] | None]:
    """Where each layer of plain neurons departs from the ANN, and what the ANN says."""
    if reference is None:
        return {}, None
    check_model(reference)
    ann = folded(reference, x[:1])
    activations: dict[str, Tensor] = {}

    def keep(node: Node, value: Tensor) -> None:
        if isinstance(node.module, Activation):
            activations[node.name] = value

    outputs = ann(x, keep)
    said = outputs.argmax(1).tolist() if outputs.ndim == 2 else None
    found: dict[str, ErrorSplit] = {}
    neurons = {node.name: node.module for node in snn.graph.of_type(IntegrateFire)}
    # With thresholds of 1 values are in other units than those of the ANN.
    for name, neuron in neurons.items() if not all(neuron.is_unit() for neuron in neurons.values()) else ():  # type: ignore
        assert isinstance(neuron, Spiking)
        a = activations.get(name)
        if a is not None and bool(a.any()):
            theta, initial = neuron.spread(neuron.threshold), neuron.spread(neuron.initial)
            mean, drive = torch.cat(watch.mean[name]), torch.cat(watch.drive[name])
            found[name] = error_split(a, mean, drive, theta, initial, watch.steps)
    return found, said


def _spaced(count: int, most: int) -> Tensor:
    """Positions evenly spread over ``count``, at most so many."""
    return torch.arange(count) if count <= most else torch.linspace(0, count - 1, most).long()


def _short(rows: Sequence[Sequence[float]]) -> list[list[float]]:
    return [[round(value, 4) for value in row] for row in rows]
