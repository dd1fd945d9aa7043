"""How well each spiking layer stands for its activation."""

from __future__ import annotations

import torch
from torch import Tensor

from ftbc.graph.ir import Graph, Node
from ftbc.neuron import IntegrateFire
from ftbc.simulate.layerwise import images_at_once, layerwise


def relative_error_and_rate(ann: Graph, snn: Graph, x: Tensor, steps: int) -> dict[str, tuple[float, float]]:
    """For each neuron site: spikes per neuron and step, and the relative error of the average spikes.

    error = sum (mean_t s - a)^2 / sum a^2, over images, channels and positions.
    """
    squares: dict[str, Tensor] = {}
    for part in x.split(images_at_once(snn, steps)):
        activations: dict[str, Tensor] = {}
        ann(part, lambda node, a, kept=activations: kept.__setitem__(node.name, a))

        def compare(node: Node, inputs: list[Tensor], s: Tensor, kept: dict[str, Tensor] = activations) -> None:
            if isinstance(node.module, IntegrateFire):
                a = kept[node.name]
                fired = (s != 0).double().mean() * a.numel()
                sums = torch.stack([fired, (s.mean(0) - a).double().pow(2).sum(), a.double().pow(2).sum()])
                squares[node.name] = squares.get(node.name, 0) + sums

        layerwise(snn, part, steps, observe=compare)
    neurons = {name: torch.Size(snn.shape(name)).numel() * len(x) for name in squares}
    return {
        name: (float(fired / neurons[name]), float(missed / total) if total > 0 else float(missed > 0))
        for name, (fired, missed, total) in squares.items()
    }
