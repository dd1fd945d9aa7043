"""Fold every affine map (a BatchNorm in eval mode, a constant factor) into the weights beside it, where exact.

After a layer:   W x + b            -> s (W x + b) + h = (s W) x + (s b + h)
Before a layer:  W (s x + h) + b    -> (W s) x + (W h + b)
With zero padding the second form has another bias at the border: the shift then becomes a map over positions.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ftbc.graph.ir import Graph, Node
from ftbc.graph.ops import Affine, Convolution, Synapses, TransposedConvolution


def fold(graph: Graph) -> None:
    """Fold affine maps in place; those without a layer beside them stay as they are."""
    for node in graph.of_type(Affine):
        if not _fold_into_previous(graph, node):
            _fold_into_next(graph, node)


def _fold_into_previous(graph: Graph, node: Node) -> bool:
    before = graph.nodes.get(node.inputs[0])
    if before is None or len(graph.users(before.name)) != 1 or graph.output == before.name:
        return False
    affine = node.module
    assert isinstance(affine, Affine)
    if isinstance(before.module, Affine):
        graph.replace_module(
            before.name,
            Affine(affine.scale * before.module.scale, affine.scale * before.module.shift + affine.shift),
        )
        graph.bypass(node.name)
        return True
    if not isinstance(before.module, Synapses) or not _per_channel(affine, before):
        return False
    scale, shift = _flat(affine.scale, before), _flat(affine.shift, before)
    layer = before.module
    weight = layer.weight.double()
    if isinstance(layer, TransposedConvolution):
        # [in, out/groups, ...]: the out channels of a group are those of the group's block of inputs.
        per_input = scale.view(layer.groups, -1).repeat_interleave(layer.in_channels // layer.groups, 0)
        weight = weight * per_input.view(*weight.shape[:2], *[1] * (weight.ndim - 2))
    else:
        weight = weight * scale.view(-1, *[1] * (weight.ndim - 1))
    bias = shift if layer.bias is None else layer.bias.double() * scale + shift
    _set(layer, weight, bias)
    graph.bypass(node.name)
    return True


def _fold_into_next(graph: Graph, node: Node) -> bool:
    users = graph.users(node.name)
    affine = node.module
    assert isinstance(affine, Affine)
    if len(users) != 1 or graph.output == node.name:
        return False
    layer = users[0].module
    if not isinstance(layer, (nn.Linear, *Convolution)) or not _per_channel(affine, node):
        return False
    if not isinstance(layer, nn.Linear) and layer.padding_mode != "zeros":
        return False
    scale, shift = _flat(affine.scale, node), _flat(affine.shift, node)
    weight, dtype = layer.weight.double(), layer.weight.dtype
    # What the constant shift alone gives at the layer's output: a number per channel, or a map at the borders.
    constant = shift.view(1, -1, *[1] * (len(node.shape) - 1)).expand(1, *node.shape)
    offset = _linear_part(layer, weight, constant)
    groups = 1 if isinstance(layer, nn.Linear) else layer.groups
    per_group = scale.view(groups, 1, -1).expand(groups, weight.shape[0] // groups, -1)
    scaled = weight * per_group.reshape(weight.shape[0], weight.shape[1], *[1] * (weight.ndim - 2))
    uniform = offset.flatten(2)[:, :, :1] if offset.ndim > 2 else offset
    level = uniform.reshape(-1)
    if offset.ndim > 2 and bool((offset.flatten(2) != uniform).any()):
        shape = (1, *users[0].shape)
        shift_map = Affine(torch.ones((1,) * len(shape), dtype=dtype, device=offset.device), offset.to(dtype))
        name = graph.insert_after(
            users[0].name, Node(f"{node.name}_shift", shift_map, (users[0].name,), users[0].shape, node.source)
        )
        graph.rewire(users[0].name, name, [n for n in graph.users(users[0].name) if n.name != name])
        if graph.output == users[0].name:
            graph.output = name
        level = torch.zeros_like(level)
    _set(layer, scaled, level if layer.bias is None else layer.bias.double() + level)
    graph.bypass(node.name)
    return True


def _linear_part(layer: nn.Module, weight: Tensor, x: Tensor) -> Tensor:
    if isinstance(layer, nn.Linear):
        return F.linear(x, weight)
    convolve = {nn.Conv1d: F.conv1d, nn.Conv2d: F.conv2d, nn.Conv3d: F.conv3d}[type(layer)]  # type: ignore[index]
    return convolve(x, weight, None, layer.stride, layer.padding, layer.dilation, layer.groups)  # type: ignore


def _per_channel(affine: Affine, node: Node) -> bool:
    """Whether scale and shift have one number per channel (dimension 1) of a node's output, or one for all."""
    if isinstance(node.module, nn.Linear) and len(node.shape) > 1:
        return False  # its channels are the last dimension
    return all(t.numel() in (1, t.shape[1]) and t.shape[1] in (1, node.shape[0]) for t in (affine.scale, affine.shift))


def _flat(value: Tensor, node: Node) -> Tensor:
    return value.detach().double().reshape(-1).expand(node.shape[0])


def _set(layer: nn.Module, weight: Tensor, bias: Tensor) -> None:
    dtype = layer.weight.dtype
    layer.weight = nn.Parameter(weight.to(dtype), requires_grad=False)  # type: ignore[arg-type]
    layer.bias = nn.Parameter(bias.to(dtype), requires_grad=False)  # type: ignore[arg-type]
