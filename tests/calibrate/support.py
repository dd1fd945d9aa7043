"""Calibrations to test with, and the slow way through a network: all of it anew for each layer."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

import ftbc
from ftbc.calibrate import Calibration
from ftbc.convert import convert
from ftbc.graph.canonical import canonical
from ftbc.graph.fold import fold
from ftbc.graph.ir import Graph, Node
from ftbc.graph.trace import trace
from ftbc.neuron import IntegrateFire
from ftbc.simulate import stepwise
from tests.networks import INPUT_SHAPE

STEPS = 4


def make_images(count: int, seed: int = 0) -> Tensor:
    return torch.rand(count, *INPUT_SHAPE, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def make_calibration(
    network: nn.Module, images: Tensor, steps: int = STEPS, recipe: str | ftbc.Recipe = "mean-square"
) -> Calibration:
    snn = convert(network, images, steps, recipe).graph
    ann = canonical(trace(network, images)).graph
    fold(ann)
    return Calibration(ann, snn, steps, images, torch.Generator().manual_seed(0))


def neurons(calibration: Calibration) -> dict[str, IntegrateFire]:
    return {node.name: node.module for node in calibration.snn.of_type(IntegrateFire)}  # type: ignore[misc]


def by_rerunning(calibration: Calibration, x: Tensor) -> Iterator[tuple[IntegrateFire, Tensor, Tensor, Tensor]]:
    """Each layer of neurons in order, with its currents and spikes ``[T, N, ...]`` and activations ``[N, ...]``.

    The whole network runs for each layer, as in released code; what the caller changes acts on the layers behind.
    """
    for site in calibration.snn.of_type(IntegrateFire):
        currents, spikes = record(calibration.snn, x, calibration.steps, site.name)
        seen: dict[str, Tensor] = {}
        calibration.ann(x, lambda node, value, seen=seen: seen.__setitem__(node.name, value))
        assert isinstance(site.module, IntegrateFire)
        yield site.module, currents, spikes, seen[site.name]


def record(snn: Graph, x: Tensor, steps: int, name: str) -> tuple[Tensor, Tensor]:
    """Currents and spikes ``[T, N, ...]`` of one layer, by steps of the whole network."""
    currents, spikes = [], []

    def cell(node: Node, current: Tensor) -> Tensor:
        sent = node.module(current)
        if node.name == name:
            currents.append(current.clone())
            spikes.append(sent.clone())
        return sent

    for _ in stepwise(snn, x, steps, cell=cell):
        pass
    return torch.stack(currents), torch.stack(spikes)


def channel_mean(values: Tensor, channel: int) -> float:
    """Of ``[N, C, ...]`` or of ``[T, N, C, ...]`` summed up before: number after number."""
    numbers = values[:, channel].flatten().tolist()
    return sum(numbers) / len(numbers)
