"""How well each spiking layer stands for its activation."""

from __future__ import annotations

import torch
from torch import Tensor

from ftbc.graph.ir import Graph, Node
from ftbc.measure.operations import occurrences
from ftbc.neuron import IntegrateFire
from ftbc.simulate.layerwise import layerwise, portion


def relative_error_and_rate(ann: Graph, snn: Graph, x: Tensor, steps: int) -> dict[str, tuple[float, float]]:
    """For each neuron site: spikes per neuron and step, and the relative error of the average spikes.

    error = sum (mean_t s - a)^2 / sum a^2, over images, channels and positions.
    """
    sums: dict[str, Tensor] = {}
    for part in x.split(portion(snn, steps)[0]):
        activations: dict[str, Tensor] = {}
        ann(part, lambda node, a, kept=activations: kept.__setitem__(node.name, a))
        spikes: dict[str, Tensor] = {}
        fired: dict[str, Tensor] = {}

        def add(node: Node, inputs: list[Tensor], s: Tensor, start: int, spikes=spikes, fired=fired) -> None:
            if isinstance(node.module, IntegrateFire):
                spikes[node.name] = spikes.get(node.name, 0) + s.sum(0)
                fired[node.name] = fired.get(node.name, 0) + occurrences(s).sum()

        layerwise(snn, part, steps, observe=add)
        for name, total in spikes.items():
            a = activations[name].double()
            row = torch.stack([fired[name].double(), (total / steps - a).pow(2).sum(), a.pow(2).sum()])
            sums[name] = sums.get(name, 0) + row
    neurons = {name: torch.Size(snn.shape(name)).numel() * len(x) * steps for name in sums}
    return {
        name: (float(fired / neurons[name]), float(missed / total) if total > 0 else float(missed > 0))
        for name, (fired, missed, total) in sums.items()
    }
