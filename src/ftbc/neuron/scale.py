"""Weight scaling to theta = 1: spikes become exactly 0 or 1, so that synapses only add (section 3.2 of the paper).

    W <- W theta_in / theta_out ,   b <- b / theta_out ,   v[0], b[t] <- v[0] / theta_out, b[t] / theta_out

A neuron's output theta * s becomes s followed by a factor theta, its input x becomes x / theta. The factors then
travel: forward through pools, pads, slices and joins into the next weights, backward through sums into the weights
before. What meets no weights, such as an identity shortcut, stays as one factor per channel: a synapse of its own.
"""

from __future__ import annotations

from collections.abc import Collection

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ftbc.graph.fold import fold, fold_into_next
from ftbc.graph.ir import INPUT, Graph, Node
from ftbc.graph.ops import Affine, AveragePool, Concat, Pad, Reduce, Reshape, Slice, Sum
from ftbc.neuron.max_pool import SpikingMaxPool
from ftbc.neuron.spiking import Spiking

CHANNELWISE = (SpikingMaxPool, nn.Upsample, Reduce, Slice, Pad)


@torch.no_grad()
def scale_thresholds_to_one(graph: Graph) -> None:
    """Rewrite a spiking graph in place; spikes and outputs stay what they were, in exact arithmetic."""
    for node in graph.of_type(Spiking):
        neuron = node.module
        assert isinstance(neuron, Spiking)
        if neuron.is_unit():
            continue
        before, after = neuron.to_unit()
        _insert_factor(graph, node.inputs[0], 1 / before, [node], "to_unit")
        multiply(graph, node.name, after)
    _move_forward(graph)
    _move_backward(graph)
    fold(graph)


def amplify(graph: Graph, value: str, factor: Tensor) -> None:
    """Let a positive factor act on a value, for all that read it, through the weights that read it where there are any.

    All nodes that the graph has stay, under their names; what meets no weights is a new node.
    """
    before = set(graph.nodes)
    multiply(graph, value, factor)
    _move_forward(graph, fixed=before)
    for node in [node for node in graph.of_type(Affine) if node.name not in before]:
        reader, *others = graph.users(node.name) or [node]
        if not others and reader is not node and isinstance(reader.module, Affine) and graph.output != node.name:
            assert isinstance(node.module, Affine)
            graph.replace_module(reader.name, Affine(node.module.scale * reader.module.scale, reader.module.shift))
            graph.bypass(node.name)
        else:
            fold_into_next(graph, node)


def multiply(graph: Graph, value: str, factor: Tensor) -> None:
    """Give all readers of a value, and the output if it is that, the value times a factor: one for each reader, so
    that each can fold it into its own weights."""
    _insert_factor(graph, value, factor, graph.users(value), "from_unit")
    if graph.output == value:
        graph.output = _factor_node(graph, value, factor, "from_unit", [])


def _insert_factor(graph: Graph, value: str, factor: Tensor, readers: list[Node], suffix: str) -> None:
    """Put a factor between a value and some of its readers, one for each."""
    for reader in readers:
        _factor_node(graph, value, factor, suffix, [reader])


def _factor_node(graph: Graph, value: str, factor: Tensor, suffix: str, readers: list[Node]) -> str:
    node = Node(f"{value}_{suffix}", Affine(factor, torch.zeros_like(factor)), (value,), graph.shape(value))
    name = graph.insert_after(value, node)
    graph.rewire(value, name, readers)
    return name


def _move_forward(graph: Graph, fixed: Collection[str] = ()) -> None:
    """Push factors behind operations that treat each channel alike, until weights or a sum take them."""
    for node in list(graph):
        if isinstance(node.module, (*AveragePool, *CHANNELWISE, Reshape, Concat)):
            while _move_behind(graph, node, fixed):  # one factor may stand before another
                pass
    graph.prune()


def _move_behind(graph: Graph, node: Node, fixed: Collection[str]) -> bool:
    factors = [None if name in fixed else _factor(graph, name) for name in node.inputs]
    moved = factor_behind(node, factors, graph)
    if moved is None:
        return False
    node.inputs = tuple(
        name if factor is None else graph[name].inputs[0] for name, factor in zip(node.inputs, factors, strict=True)
    )
    multiply(graph, node.name, moved)
    return True


def _factor(graph: Graph, name: str) -> Tensor | None:
    """The per-channel factor that a value is, if it is one."""
    if name == INPUT or not isinstance(graph[name].module, Affine):
        return None
    affine = graph[name].module
    assert isinstance(affine, Affine)
    scale = affine.scale
    per_channel = scale.numel() == 1 or (scale.ndim > 1 and scale.numel() == scale.shape[1])
    return scale if per_channel and not bool(affine.shift.any()) else None


def factor_behind(node: Node, factors: list[Tensor | None], graph: Graph) -> Tensor | None:
    """The factor behind an operation that equals the factors before it, or None if there is no such factor."""
    if all(factor is None for factor in factors):
        return None
    shapes = [graph.shape(name) for name in node.inputs]
    like = next(factor for factor in factors if factor is not None)
    if isinstance(node.module, Concat):
        if node.module.dim != 1:
            return None
        parts = [
            like.new_ones(shape[0]) if factor is None else factor.reshape(-1).expand(shape[0])
            for factor, shape in zip(factors, shapes, strict=True)
        ]
        return torch.cat(parts).view(1, -1, *[1] * (len(node.shape) - 1))
    if isinstance(node.module, SpikingMaxPool) and bool((like < 0).any()):
        return None  # the largest of what is negated is the smallest
    width = shapes[0][0] if shapes[0] else 1
    channels = like.reshape(-1).expand(width)
    if isinstance(node.module, Reduce) and 1 in node.module.dims:
        return None
    if isinstance(node.module, Slice) and node.module.dim == 1:
        channels = channels[node.module.start : node.module.stop : node.module.step]
    if isinstance(node.module, Pad):
        if node.module.mode == "constant" and node.module.value != 0:
            return None
        at_channels = node.module.pad[2 * (len(node.shape) - 1) :]
        channels = F.pad(channels, at_channels, value=1.0) if at_channels else channels
    if isinstance(node.module, Reshape):
        if len(node.shape) != 1:
            return None
        per_feature = channels.repeat_interleave(node.shape[0] // width)
        return per_feature.view(1, -1)
    return channels.view(1, -1, *[1] * (len(node.shape) - 1))


def _move_backward(graph: Graph) -> None:
    """Pull the factor behind a sum into each of its branches, where weights or a factor of their own take it."""
    for node in reversed(graph.of_type(Sum)):
        users = graph.users(node.name)
        if len(users) != 1 or graph.output == node.name:
            continue
        factor = _factor(graph, users[0].name)
        if factor is None or any(graph.shape(name) != node.shape for name in node.inputs):
            continue
        for name in dict.fromkeys(node.inputs):
            _insert_factor(graph, name, factor, [node], "to_unit")
        graph.bypass(users[0].name)
