"""The memory layout in which convolutions are fastest on a CPU.

Mostly channels lie innermost: a pixel's channels are then one vector. In the last layers of a VGG, where maps are tiny
and channels many, oneDNN's other kernels are up to three times as fast. The rule comes from timings of 3 x 3
convolutions with 32 to 512 channels on maps of 2 x 2 to 16 x 16 (`python -m benchmarks.layouts`), and looks at shapes
alone: what was timed would differ from run to run, and with it the last bit of every sum.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from ftbc.graph.ir import Graph, Shape
from ftbc.graph.ops import Convolution

_MANY_CHANNELS = 256
_FEW_PIXELS = 16


def lay_out(graph: Graph) -> Graph:
    """Lay out the weights of 2d convolutions, in place; `Node.run` then computes in their layout."""
    for node in graph.of_type(*Convolution):
        module = node.module
        if isinstance(module, nn.Conv2d):
            plain = plain_is_faster(module, node.shape)
            form = torch.contiguous_format if plain else torch.channels_last
            module.weight.data = module.weight.data.contiguous(memory_format=form)
    return graph


def plain_is_faster(module: nn.Conv2d, shape: Shape) -> bool:
    """Whether channels had better lie outermost; shape: of an item of the output, ``[C, H, W]``.

    >>> plain_is_faster(nn.Conv2d(512, 512, 3), (512, 2, 2)), plain_is_faster(nn.Conv2d(64, 64, 3), (64, 32, 32))
    (True, False)
    """
    many = min(module.in_channels, module.out_channels) >= _MANY_CHANNELS and module.groups == 1
    return many and math.prod(module.kernel_size) > 1 and math.prod(shape[1:]) <= _FEW_PIXELS
