"""The ANN in integers: what a spiking network of T steps has to be compared with.

A neuron tells one of T + 1 values in T steps. The same network whose activations have just enough bits for so many,

    bits = ceil(log2(T + 1)) ,    q(a) = theta / n * clamp(round(n a / theta), 0, n) ,    n = 2^bits - 1 ,

and whose weights are rounded to 8 bits a channel, needs one pass. theta minimises the mean square of q(a) - a on the
calibration images, as the thresholds of `threshold.MeanSquare` do.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ftbc.calibration_data import check_model, gather_images
from ftbc.errors import InputError
from ftbc.graph.ops import Synapses, TransposedConvolution
from ftbc.measure.speed import folded
from ftbc.progress import silent
from ftbc.threshold import MeanSquare

WEIGHT_BITS = 8


class Levels(nn.Module):
    """An activation of ``levels`` equal steps up to ``theta``, which broadcasts over one item.

    >>> Levels(torch.tensor(1.0), 2)(torch.tensor([-1.0, 0.2, 0.3, 0.8, 5.0])).tolist()
    [0.0, 0.0, 0.5, 1.0, 1.0]
    """

    theta: Tensor

    def __init__(self, theta: Tensor, levels: int) -> None:
        super().__init__()
        self.register_buffer("theta", theta)
        self.levels = levels

    def forward(self, a: Tensor) -> Tensor:
        """The nearest step."""
        step = self.theta / self.levels
        return step * torch.floor(a / step + 0.5).clamp_(0, self.levels)


def bits_for(steps: int) -> int:
    """How many bits tell the ``steps + 1`` values that a neuron can reach.

    >>> [bits_for(steps) for steps in (1, 2, 3, 4, 8, 32)]
    [1, 2, 2, 3, 4, 6]
    """
    return steps.bit_length()


@torch.no_grad()
def quantised(model: nn.Module, calibration: Any, bits: int) -> nn.Module:
    """The network with weights of 8 bits and activations of ``bits``; calibration: as for `ftbc.convert`."""
    if bits < 1:
        raise InputError(f"bits={bits}: give a whole number, at least 1")
    check_model(model)
    images = gather_images(calibration, model)
    graph, levels = folded(model, images[:1]).copy(), 2**bits - 1
    thresholds = MeanSquare().choose(graph, images, levels, torch.Generator().manual_seed(0), silent)
    for name, theta in thresholds.items():
        rank = len(graph[name].shape)
        spread = theta if theta.ndim == rank else theta.view(-1, *[1] * (rank - 1))
        graph.replace_module(name, Levels(spread.to(images.dtype), levels))
    for node in graph.of_type(*Synapses):
        weight = node.module.weight
        assert isinstance(weight, Tensor)
        weight.copy_(_rounded(weight, by_channel=not isinstance(node.module, TransposedConvolution)))
    return graph.eval()


def _rounded(weight: Tensor, by_channel: bool) -> Tensor:
    """Whole multiples of a scale, by output channel where these come first, whose largest is that of the weights."""
    largest = weight.abs().amax(tuple(range(1 if by_channel else 0, weight.ndim)), keepdim=True)
    scale = (largest / (2 ** (WEIGHT_BITS - 1) - 1)).clamp(min=torch.finfo(weight.dtype).tiny)
    return (weight / scale).round() * scale
