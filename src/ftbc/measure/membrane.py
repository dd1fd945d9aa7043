"""Membrane potentials of one layer at one step, just before it fires."""

from __future__ import annotations

import torch
from torch import Tensor

from ftbc.errors import InputError
from ftbc.graph.ir import Node
from ftbc.network import SpikingNetwork
from ftbc.neuron import IntegrateFire, Spiking

_AT_ONCE = 64


@torch.no_grad()
def before_firing(snn: SpikingNetwork, x: Tensor, layer: str, t: int) -> Tensor:
    """What the neurons of a layer hold at step t before they fire, ``[N, ...]``:

        v[t] = v[0] + sum_{k <= t} ( x[k] + b[k] ) - sum_{k < t} s[k]

    with x[k] the current of step k and s[k] the spikes sent. layer: a name of ``snn.layers()``, of plain neurons.

    >>> import ftbc
    >>> ann = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> x = torch.rand(16, 4)
    >>> before_firing(ftbc.convert(ann, x, steps=4), x, "1", 2).shape
    torch.Size([16, 8])
    """
    known = [node.name for node in snn.graph.of_type(Spiking)]
    if layer not in known:
        raise InputError(f"there is no spiking layer '{layer}': name one of {', '.join(known)}")
    neuron = snn.graph[layer].module
    if not isinstance(neuron, IntegrateFire):
        raise InputError(f"'{layer}' is not of plain neurons: their membranes are not comparable")
    if not 1 <= t <= snn.extra_steps + snn.steps:
        raise InputError(f"step {t} is not one of the {snn.extra_steps + snn.steps} that the network takes")
    return torch.cat([_of_part(snn, part, layer, neuron, t) for part in x.split(_AT_ONCE)])


def _of_part(snn: SpikingNetwork, x: Tensor, layer: str, neuron: IntegrateFire, t: int) -> Tensor:
    found: list[Tensor] = []

    def observe(node: Node, inputs: list[Tensor], output: Tensor, start: int) -> None:
        """Blocks of a layer come one after another; of a block, images or steps are never mixed up."""
        if node.name != layer or start >= t:
            return
        if start == 0:
            found.append(neuron.spread(neuron.initial).expand_as(output[0]).clone())
        last = min(len(output), t - start)
        for k in range(last):
            found[-1] += inputs[0][k] + neuron.spread(neuron.bias[start + k])
            if start + k < t - 1:
                found[-1] -= output[k]

    snn(x, head=False, observe=observe)
    return torch.cat(found)
