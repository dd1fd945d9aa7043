"""Fold every affine map (a BatchNorm in eval mode, a constant factor) into the weights beside it, where exact.

After a layer:   s (W x + b) + h    -> (s W) x + (s b + h)
Before a layer:  W (s x + h) + b    -> (W s) x + (W h + b)
With zero padding the second form has another bias at the border: the shift then becomes a map over positions.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from ftbc.graph.ir import Graph, Node
from ftbc.graph.ops import Affine, Synapses, TransposedConvolution


def fold(graph: Graph) -> None:
    """Fold affine maps in place; those without a layer beside them stay as they are."""
    # First backwards: a map between two layers is then never left as a map over positions.
    for node in graph.of_type(Affine):
        _fold_into_previous(graph, node)
    for node in graph.of_type(Affine):
        fold_into_next(graph, node)


def _fold_into_previous(graph: Graph, node: Node) -> None:
    before = graph.nodes.get(node.inputs[0])
    if before is None or len(graph.users(before.name)) != 1 or graph.output == before.name:
        return
    affine, layer = node.module, before.module
    assert isinstance(affine, Affine)
    if isinstance(layer, Affine):
        graph.replace_module(before.name, Affine(affine.scale * layer.scale, affine.scale * layer.shift + affine.shift))
        before.shape = node.shape
        graph.bypass(node.name)
    elif isinstance(layer, Synapses) and _per_channel(graph, node, _channels_out(before)):
        scale, shift = (_flat(t, node, _channels_out(before)) for t in (affine.scale, affine.shift))
        weight, bias = layer.weight.double(), 0.0 if layer.bias is None else layer.bias.double()
        _set(layer, _scale_rows(layer, weight, scale), bias * scale + shift)
        graph.bypass(node.name)


def fold_into_next(graph: Graph, node: Node) -> None:
    """Fold one affine map into all that read it, if they are layers with weights; it stays as it is otherwise."""
    readers = graph.users(node.name)
    if not readers or graph.output == node.name:
        return
    if not all(isinstance(r.module, Synapses) and _per_channel(graph, node, _channels_in(r, node)) for r in readers):
        return
    for reader in readers:
        _absorb(graph, reader, node)
    graph.bypass(node.name)


def _absorb(graph: Graph, reader: Node, node: Node) -> None:
    """Let a layer do the affine map in front of it as well."""
    affine, layer = node.module, reader.module
    assert isinstance(affine, Affine) and isinstance(layer, Synapses)
    offset = _without_bias(layer)(affine.shift.double().expand(1, *node.shape))
    scale = _flat(affine.scale, node, _channels_in(reader, node))
    weight = _scale_columns(layer, layer.weight.double(), scale)
    bias = torch.zeros((), dtype=torch.float64) if layer.bias is None else layer.bias.double()
    # What the shift alone gives at the layer's output: a number per channel, or a map that differs at the borders.
    by_channel = offset.movedim(1 + _channels_out(reader), 1).flatten(2) if offset.ndim > 2 else offset[:, :, None]
    level = by_channel[0].mean(1)
    if torch.allclose(by_channel, level[:, None], rtol=0, atol=1e-12 * (float(offset.abs().max()) + 1e-300)):
        _set(layer, weight, bias + level)
        return
    _set(layer, weight, (bias + torch.zeros_like(level)))
    dtype = affine.shift.dtype
    shift = Affine(torch.ones((1,) * offset.ndim, dtype=dtype, device=offset.device), offset.to(dtype))
    name = graph.insert_after(reader.name, Node(f"{node.name}_shift", shift, (reader.name,), reader.shape, node.source))
    graph.rewire(reader.name, name, [n for n in graph.users(reader.name) if n.name != name])
    if graph.output == reader.name:
        graph.output = name


def _without_bias(layer: nn.Module) -> nn.Module:
    layer = copy.deepcopy(layer).double()
    layer.bias = None
    return layer


def _channels_out(node: Node) -> int:
    """The dimension of an item that a layer's output channels lie in: first, but last for a linear layer."""
    return len(node.shape) - 1 if isinstance(node.module, nn.Linear) else 0


def _channels_in(reader: Node, node: Node) -> int:
    return len(node.shape) - 1 if isinstance(reader.module, nn.Linear) else 0


def _per_channel(graph: Graph, node: Node, dim: int) -> bool:
    """Whether an affine map keeps the shape and its constants have one number per entry of ``dim``, or one for all."""
    affine = node.module
    assert isinstance(affine, Affine)
    constants = all(t.numel() == t.shape[1 + dim] for t in (affine.scale, affine.shift))
    return constants and graph.shape(node.inputs[0]) == node.shape


def _flat(value: Tensor, node: Node, dim: int) -> Tensor:
    return value.detach().double().reshape(-1).expand(node.shape[dim])


def _scale_rows(layer: nn.Module, weight: Tensor, scale: Tensor) -> Tensor:
    """Multiply the weights to each output channel."""
    if isinstance(layer, TransposedConvolution):
        # [in, out / groups, ...]: the outputs of a group belong to the group's block of inputs.
        by_group = scale.view(layer.groups, -1).repeat_interleave(layer.in_channels // layer.groups, 0)
        return weight * by_group.view(*weight.shape[:2], *[1] * (weight.ndim - 2))
    return weight * scale.view(-1, *[1] * (weight.ndim - 1))


def _scale_columns(layer: nn.Module, weight: Tensor, scale: Tensor) -> Tensor:
    """Multiply the weights from each input channel."""
    if isinstance(layer, TransposedConvolution):
        return weight * scale.view(-1, *[1] * (weight.ndim - 1))
    # [out, in / groups, ...]: the outputs of a group read the group's block of inputs.
    groups = 1 if isinstance(layer, nn.Linear) else layer.groups
    by_group = scale.view(groups, -1).repeat_interleave(weight.shape[0] // groups, 0)  # type: ignore[operator, arg-type]
    return weight * by_group.view(*weight.shape[:2], *[1] * (weight.ndim - 2))


def _set(layer: nn.Module, weight: Tensor, bias: Tensor) -> None:
    dtype = layer.weight.dtype
    layer.weight = nn.Parameter(weight.to(dtype), requires_grad=False)  # type: ignore[arg-type]
    layer.bias = nn.Parameter(bias.to(dtype), requires_grad=False)  # type: ignore[arg-type]
