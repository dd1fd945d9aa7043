"""How well each spiking layer stands for its activation."""

from __future__ import annotations

import torch
from torch import Tensor

from ftbc.graph.ir import Graph, Node
from ftbc.measure.events import of_neurons
from ftbc.simulate.layerwise import layerwise, portion


def relative_error_and_rate(
    ann: Graph, snn: Graph, x: Tensor, steps: int, extra: int = 0
) -> dict[str, tuple[float, float]]:
    """For each neuron site: spikes per neuron and step, and the relative error of the average output.

    error = sum (mean_t s - a)^2 / sum a^2, over images, channels and positions, and over the steps that count; extra:
    steps before these.
    """
    sums: dict[str, Tensor] = {}
    events = of_neurons(snn)
    for part in x.split(portion(snn, extra + steps)[0]):
        activations: dict[str, Tensor] = {}
        ann(part, lambda node, a, kept=activations: kept.__setitem__(node.name, a))
        sent: dict[str, Tensor] = {}
        fired: dict[str, Tensor] = {}

        def add(node: Node, inputs: list[Tensor], s: Tensor, start: int, sent=sent, fired=fired) -> None:
            if node.name in events:
                sent[node.name] = sent.get(node.name, 0) + s[max(0, extra - start) :].sum(0)
                fired[node.name] = fired.get(node.name, 0) + events[node.name](s, start).sum()

        layerwise(snn, part, extra + steps, observe=add)
        for name, total in sent.items():
            a = activations[name].double()
            row = torch.stack([fired[name].double(), (total / steps - a).pow(2).sum(), a.pow(2).sum()])
            sums[name] = sums.get(name, 0) + row
    neurons = {name: torch.Size(snn.shape(name)).numel() * len(x) * (extra + steps) for name in sums}
    return {
        name: (float(fired / neurons[name]), float(missed / total) if total > 0 else float(missed > 0))
        for name, (fired, missed, total) in sums.items()
    }
