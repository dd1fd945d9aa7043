"""Convolutions made ready for many calls: weights lie as oneDNN reads them, and what else arrives is added on the way.

torch lays out the weights of a convolution anew at each call, and adds a shortcut in a pass of its own. Beside one
large convolution that is little, but an engine makes many small ones, whose values stay in the cache. Here weights are
laid out once a run (and not kept: they may change between two runs), and the sum of a convolution and something else is
one operation, which writes over what it adds to:

    other <- other + (W x + b)        by the same kernels: equal to the last bit, but for a single image and step

These are the operators that torch's own compiler calls for a frozen network. With channels outermost they are slower
than torch's usual ones, and such convolutions stay as they are.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import torch
from torch import Tensor, nn

from ftbc.graph.ir import Graph, Node, channels_last
from ftbc.graph.ops import Sum, Synapses
from ftbc.graph.precision import in_bfloat16
from ftbc.neuron.integrate_fire import IntegrateFire

_CALLS = 6
"""Calls of a convolution from which on laying out its weights beforehand costs less than it saves."""

_ITEMS = 64
"""Images times steps from which on it also pays once, where the convolution adds to a shortcut."""


class Prepared(nn.Module):
    """``W x + b``, or that added to ``other``, which is written over; items: ``[N, C, H, W]`` of the inputs to come."""

    def __init__(self, convolution: nn.Conv2d, items: list[int]) -> None:
        super().__init__()
        own = convolution
        self.bias = own.bias
        self.settings = (own.padding, own.stride, own.dilation, own.groups)
        weight = own.weight.detach().to_mkldnn()
        self.weight = torch._C._nn.mkldnn_reorder_conv2d_weight(weight, *self.settings, items)

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        """The outputs, with channels innermost in memory."""
        x = x.contiguous(memory_format=torch.channels_last)
        if other is None:
            plain = torch.ops.mkldnn._convolution_pointwise
            return plain(x, self.weight, self.bias, *self.settings, "none", [], "")
        other = other.contiguous(memory_format=torch.channels_last)
        onto = torch.ops.mkldnn._convolution_pointwise_.binary
        return onto(other, x, self.weight, self.bias, *self.settings, "add", 1.0, None, [], None)


def prepared(graph: Graph, changing: set[str], items: int, calls: int) -> Graph:
    """The same network with prepared convolutions, where they run often enough; all other tensors are shared.

    changing: the values that differ between steps (`varying`); items: images times steps in a call; calls: how many.
    """
    usable = torch.backends.mkldnn.is_available() and not torch.is_grad_enabled() and not in_bfloat16()
    if not usable or items * calls < _ITEMS:
        return graph
    fitting = {node.name: node for node in graph.of_type(nn.Conv2d) if node.name in changing and _fits(node.module)}
    into = _sums(graph, changing, fitting)
    often = calls >= _CALLS
    ready = {name: node for name, node in fitting.items() if often and node not in into.values()}
    own = copy.copy(graph)
    own.nodes = {node.name: node for node in graph}
    for node in ready.values():
        own.nodes[node.name] = replace(node, module=_prepare(graph, node, items))
    for name, source in into.items():
        (other,) = (term for term in graph[name].inputs if term != source.name)
        module, inputs = _prepare(graph, source, items), (*source.inputs, other)
        own.nodes[name] = replace(graph[name], module=module, inputs=inputs)
        del own.nodes[source.name]
    return own


def _prepare(graph: Graph, node: Node, items: int) -> Prepared:
    assert isinstance(node.module, nn.Conv2d)
    return Prepared(node.module, [items, *graph.shape(node.inputs[0])])


def _fits(module: nn.Module) -> bool:
    assert isinstance(module, nn.Conv2d)
    usual = module.padding_mode == "zeros" and not isinstance(module.padding, str)
    weight = module.weight
    return usual and weight.device.type == "cpu" and weight.dtype == torch.float32 and channels_last(weight)


def _sums(graph: Graph, changing: set[str], fitting: dict[str, Node]) -> dict[str, Node]:
    """For each sum that a convolution can write, that convolution: its other term is not needed afterwards.

    The convolution runs at the place of the sum, so that what it reads must be left as it was until then, by this sum
    and by all others.
    """
    last = {name: node.name for node in graph for name in node.inputs}
    found: dict[str, Node] = {}
    written: set[str] = set()
    read_late: set[str] = set()
    for node in graph.of_type(Sum):
        if not isinstance(node.module, Sum) or node.module.weights != (1.0, 1.0) or len(set(node.inputs)) < 2:
            continue
        for name, other in (node.inputs[::-1], node.inputs):
            alone = name in fitting and len(graph.users(name)) == 1 and name != graph.output
            if not alone or last[other] != node.name or not _spent(graph, other, changing):
                continue
            read = set(fitting[name].inputs)
            if other not in read | read_late and not read & written:
                found[node.name] = fitting[name]
                written.add(other)
                read_late |= read
                break
    return found


def _spent(graph: Graph, name: str, changing: set[str]) -> bool:
    """Whether a value has memory of its own, of which none that reads it keeps a view."""
    if name not in changing or name not in graph.nodes or name == graph.output:
        return False
    readers = [node.module for node in graph.users(name)]
    owned = isinstance(graph[name].module, (nn.Conv2d, IntegrateFire))
    return owned and all(isinstance(reader, (*Synapses, Sum)) for reader in readers)
