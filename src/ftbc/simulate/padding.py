"""Zeros that a network pads its values with, left to the convolution that reads them.

Padding a value copies it, and a depthwise convolution takes less time than that copy. A convolution can pad by itself,
but in torch by as much at each end of a row. So zeros that are missing at the beginning are added there, and the
kernel gets as many taps of zero in front, which read them:

    y[i] = sum_k w[k] x[s i + k - left]  =  sum_k (0 .. 0, w)[k] x[s i + k - p]      with p - left taps of zero

where p is the smallest padding that gives as many outputs. More taps are more work: with the kernels of MobileNet v1 in
TensorFlow's padding, 4 x 4 taps in the place of 3 x 3, which only depthwise convolutions do not feel.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import torch.nn.functional as F
from torch import nn

from ftbc.graph.ir import Graph, Node
from ftbc.graph.ops import Pad


def without_pads(graph: Graph) -> Graph:
    """The same network, in which convolutions pad by themselves wherever that is less work; its tensors are shared."""
    nodes = dict(graph.nodes)
    for pad in graph.of_type(Pad):
        joined = [_joined(pad, reader, graph) for reader in graph.users(pad.name)]
        if joined and None not in joined and pad.name != graph.output:
            del nodes[pad.name]
            nodes |= {node.name: node for node in joined if node is not None}
    if len(nodes) == len(graph.nodes):
        return graph
    own = copy.copy(graph)
    own.nodes = nodes
    return own


def _joined(pad: Node, reader: Node, graph: Graph) -> Node | None:
    """The convolution that reads a padded value, reading the value as it was; None if that is more work."""
    module, zeros = reader.module, pad.module
    if not isinstance(module, nn.Conv2d) or not isinstance(zeros, Pad) or isinstance(module.padding, str):
        return None
    if zeros.mode != "constant" or zeros.value != 0 or module.padding_mode != "zeros" or len(zeros.pad) > 4:
        return None
    sides = [zeros.pad[2:] or (0, 0), zeros.pad[:2]]  # of rows, of columns
    before = graph.shape(pad.inputs[0])[1:]
    fits = [_fit(module, axis, before[axis], reader.shape[1 + axis], sides[axis]) for axis in (0, 1)]
    taps = [padding - own - side[0] for padding, own, side in zip(fits, module.padding, sides, strict=True)]
    if min(fits) < 0 or (any(taps) and module.groups < module.in_channels):
        return None
    twin = copy.copy(module)
    twin._parameters = dict(module._parameters)
    twin.padding = tuple(fits)
    if any(taps):
        twin.kernel_size = tuple(size + extra for size, extra in zip(module.kernel_size, taps, strict=True))
        twin._parameters["weight"] = nn.Parameter(F.pad(module.weight, (taps[1], 0, taps[0], 0)), requires_grad=False)
    return replace(reader, module=twin, inputs=pad.inputs)


def _fit(module: nn.Conv2d, axis: int, size: int, outputs: int, side: Sequence[int]) -> int:
    """The padding at each end that gives as many outputs along an axis, or -1 if there is none."""
    own, stride, dilation = int(module.padding[axis]), module.stride[axis], module.dilation[axis]
    if min(side) < 0:  # a negative pad cuts off
        return -1
    first, last = own + side[0], own + side[1]
    reach = dilation * (module.kernel_size[axis] - 1)
    # Taps of zero in front are as many as the padding has too much there; with dilation they would lie too far apart.
    for padding in range(first, max(first, last) + 1 if dilation == 1 else first + 1):
        if (size + first + padding - reach - 1) // stride + 1 == outputs:
            return padding
    return -1
