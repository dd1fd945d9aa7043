"""Biases with more or fewer entries than thresholds."""

from __future__ import annotations

import torch

from ftbc.graph.ir import Node
from ftbc.neuron.spiking import Spiking
from ftbc.threshold.activations import Grain, grain_shape


def widen_bias(node: Node, grain: Grain) -> None:
    """Give a neuron's bias one entry per layer, channel or neuron, keeping the values it has."""
    neuron = node.module
    assert isinstance(neuron, Spiking)
    shape = grain_shape(grain, node.shape)
    if neuron.bias.shape[1:] == shape:
        return
    current = torch.stack([neuron.spread(row).expand(node.shape) for row in neuron.bias])
    if grain == "layer":
        current = current.flatten(1).mean(1, keepdim=True)
    elif grain == "channel" and neuron.rank > 1:
        current = current.flatten(2).mean(2)
    neuron.bias = current.reshape(-1, *shape).contiguous()
