"""How far a spiking network can be from the clipped ANN after T steps, as a bound that always holds.

With S(t) what a neuron has sent up to t, a its clipped activation, and D with |S(t) - t a| <= D at every t:

    image      its value at each step:                       D = 0
    linear     currents add up with the same weights:        D = |W| D'
    max-pool   sends what the largest of its inputs has sent:  D = max D'
    neuron     D = D' + max(v[0], theta - v[0])

For a neuron with the mean current z and C(t) its current up to t, |C(t) - t z| <= D': it fires only when charged, so
S(t) <= v[0] + max C(s) <= t a + D' + v[0], and it has fired at every step since its membrane was last below theta, at
s, so S(t) >= v[0] + C(s) - theta + theta (t - s) >= t a - D' - theta + v[0]. The mean output after T steps is then
within D / T.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor

import ftbc
from ftbc.graph.ir import INPUT
from ftbc.graph.ops import Sum
from ftbc.neuron import IntegrateFire
from ftbc.neuron.max_pool import SpikingMaxPool


@torch.no_grad()
def clipped_and_bound(snn: ftbc.SpikingNetwork, x: Tensor) -> tuple[Tensor, Tensor]:
    """The output of the clipped ANN, and D of the output; for neurons without temporal bias."""
    values, bounds = {INPUT: x}, {INPUT: torch.zeros_like(x)}
    for node in snn.graph:
        inputs, spread = [values[name] for name in node.inputs], [bounds[name] for name in node.inputs]
        module = node.module
        if isinstance(module, IntegrateFire):
            assert not bool(module.bias.any())
            theta, initial = module.spread(module.threshold), module.spread(module.initial)
            values[node.name] = torch.minimum(inputs[0].clamp(min=0), theta)
            bounds[node.name] = spread[0] + torch.maximum(initial, theta - initial)
        elif isinstance(module, SpikingMaxPool):
            values[node.name], bounds[node.name] = module._pool(inputs[0]), module._pool(spread[0])
        else:
            values[node.name] = module(*inputs)
            bounds[node.name] = _absolute(module)(*spread)
    return values[snn.graph.output], bounds[snn.graph.output]


def _absolute(module: torch.nn.Module) -> torch.nn.Module:
    """The same linear operation with the sizes of its weights, and without what it adds."""
    module = copy.deepcopy(module)
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        tensor.copy_(torch.zeros_like(tensor) if name in ("bias", "shift") else tensor.abs())
    if isinstance(module, Sum):
        module.weights = tuple(map(abs, module.weights))
    return module
