"""A spiking graph in the few operations that a format has: the same network, written otherwise.

Each function rewrites a graph in place, exactly but for rounding; `mean_bias` alone changes what the network does.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ftbc.errors import UnsupportedError
from ftbc.graph.ir import INPUT, Graph, Node, Shape
from ftbc.graph.ops import Affine, Pad, Reduce, Reshape, Sum, Synapses
from ftbc.network import SpikingNetwork
from ftbc.neuron import IntegrateFire, SpikingMaxPool, Temporal
from ftbc.neuron.scale import scale_thresholds_to_one
from ftbc.simulate.event.exact import sum_instead_of_average


def require_plain(snn: SpikingNetwork, to: str) -> None:
    """Refuse neurons that a format or program has no words for; spiking max-pools are each format's own affair."""
    for node in snn.graph.of_type(Temporal):
        if type(node.module) not in (IntegrateFire, SpikingMaxPool):
            raise UnsupportedError(
                f"{node.place} cannot be written as {to}, which takes integrate-and-fire neurons with soft reset: "
                "convert with a recipe that places these"
            )


def in_units(snn: SpikingNetwork, sum_pools: bool = False) -> Graph:
    """A copy of the network's graph on the CPU in which every threshold is 1.

    sum_pools: let pools add up, and the weights behind them divide.
    """
    graph = snn.graph.copy().cpu()
    if sum_pools:
        sum_instead_of_average(graph)
    scale_thresholds_to_one(graph)
    return graph


def first_bias(neuron: IntegrateFire) -> Tensor:
    """b[t] with the initial potential in b[0]: ``[T, C]``, or ``[T, C, H, W]`` where either has an entry per neuron."""
    initial, bias = neuron.spread(neuron.initial), torch.stack([neuron.spread(row) for row in neuron.bias])
    folded = bias + F.pad(initial.unsqueeze(0), (0, 0) * initial.ndim + (0, len(bias) - 1))
    per_neuron = max(neuron.initial.ndim, neuron.bias.ndim - 1) == neuron.rank
    return folded if per_neuron else folded.reshape(len(bias), -1)


def mean_bias(graph: Graph) -> dict[str, float]:
    """Put the mean over time of each bias, the initial potential included, in its place; give what that loses.

    The loss of a layer is the root mean square of b[t] - mean, over the threshold.
    """
    lost = {}
    for node in graph.of_type(IntegrateFire):
        neuron = node.module
        assert isinstance(neuron, IntegrateFire)
        rows = first_bias(neuron)
        mean = rows.mean(0)
        theta = neuron.spread(neuron.threshold)
        lost[node.name] = float(((rows - mean) / (theta if rows.ndim > 2 else theta.reshape(-1))).pow(2).mean().sqrt())
        neuron.initial, neuron.bias = torch.zeros_like(neuron.initial), torch.zeros_like(neuron.bias)
        if bool(mean.any()):
            _add_constant(graph, node, mean)
    return lost


def _add_constant(graph: Graph, node: Node, constant: Tensor) -> None:
    """Let a neuron receive a constant current: in the weights' own bias where one layer leads to it alone."""
    layer = _own_layer(graph, node) if constant.ndim == 1 else None
    if layer is not None:
        bias = torch.zeros(1) if layer.bias is None else layer.bias
        size = layer.weight.shape[0] if isinstance(layer, nn.Linear) else layer.out_channels
        layer.bias = nn.Parameter((bias + constant).expand(size).to(layer.weight.dtype).clone(), requires_grad=False)
        return
    shift = constant.view(1, *constant.shape, *[1] * (len(node.shape) - constant.ndim))
    affine = Affine(torch.ones_like(shift[:1].flatten()[:1]).view(*[1] * shift.ndim), shift)
    name = graph.insert_before(node.name, Node(f"{node.name}_mean", affine, node.inputs, node.shape))
    node.inputs = (name,)


def _own_layer(graph: Graph, node: Node) -> nn.Module | None:
    """A layer of weights whose output reaches this node, perhaps through sums, and no other."""
    waiting = [node]
    while waiting:
        for name in waiting.pop().inputs:
            if name == INPUT or len(graph.users(name)) != 1 or graph.output == name:
                continue
            before = graph[name]
            if isinstance(before.module, Synapses) and _channels_first(before):
                return before.module
            if isinstance(before.module, Sum) and all(weight == 1 for weight in before.module.weights):
                waiting.append(before)
    return None


def _channels_first(node: Node) -> bool:
    return not isinstance(node.module, nn.Linear) or len(node.shape) == 1


def windows(graph: Graph) -> None:
    """Write means and sums over whole images, and adaptive pools, as pools with a window."""
    for node in list(graph):
        before = graph.shape(node.inputs[0])
        found = _window(node, before)
        if found is None:
            continue
        size, divisor = found
        pool = nn.AvgPool2d(size, size, divisor_override=divisor)
        after = (before[0], *(length // step for length, step in zip(before[1:], size, strict=True)))
        graph.replace_module(node.name, pool)
        if after != node.shape:
            users, wanted = graph.users(node.name), node.shape
            node.shape = after
            name = graph.insert_after(node.name, Node(f"{node.name}_flat", Reshape(wanted), (node.name,), wanted))
            graph.rewire(node.name, name, users)
            graph.output = name if graph.output == node.name else graph.output


def _window(node: Node, before: Shape) -> tuple[tuple[int, int], int | None] | None:
    """The window and the divisor (None: the window's size) of a pool in two dimensions that equals a node."""
    module = node.module
    if len(before) != 3:
        return None
    if isinstance(module, Reduce) and set(module.dims) == {2, 3}:
        return (before[1], before[2]), None if module.mean else 1
    if isinstance(module, nn.AdaptiveAvgPool2d):
        if any(length % parts for length, parts in zip(before[1:], node.shape[1:], strict=True)):
            return None
        return (before[1] // node.shape[1], before[2] // node.shape[2]), None
    return None


def pads_into_weights(graph: Graph) -> None:
    """Let convolutions pad by themselves what stands before them: on unequal sides by zeros in their weights.

    y[i] = sum_k w[k] x[s i + k - left]   with padding p on both sides is   w'[k + p - left] = w[k].
    """
    for node in graph.of_type(Pad):
        readers = graph.users(node.name)
        sides = _spatial(node)
        if sides is None or not readers or graph.output == node.name:
            continue
        if not all(_pads_itself(reader.module, len(sides)) for reader in readers):
            continue
        for reader in readers:
            graph.replace_module(reader.name, _padded(reader.module, sides))
        graph.bypass(node.name)


def _spatial(node: Node) -> list[tuple[int, int]] | None:
    """How many zeros a pad adds before and behind in each direction but the channels; None for other pads."""
    module = node.module
    assert isinstance(module, Pad)
    directions = len(node.shape) - 1
    sides = [*module.pad, *[0] * (2 * (directions + 1) - len(module.pad))]
    zeros = module.mode == "constant" and module.value == 0
    if not zeros or any(side < 0 for side in sides) or any(sides[2 * directions :]):
        return None
    return [(sides[2 * i], sides[2 * i + 1]) for i in reversed(range(directions))]


def _pads_itself(module: nn.Module, directions: int) -> bool:
    if not isinstance(module, nn.Conv1d | nn.Conv2d) or isinstance(module.padding, str):
        return False
    plain = module.padding_mode == "zeros" and all(step == 1 for step in module.dilation)
    return plain and len(module.kernel_size) == directions


def _padded(module: nn.Module, sides: list[tuple[int, int]]) -> nn.Module:
    assert isinstance(module, nn.Conv1d | nn.Conv2d)
    padding, zeros = [], []
    for (before, behind), own in zip(sides, module.padding, strict=True):
        before, behind = before + int(own), behind + int(own)
        both = max(before, behind)
        padding.append(both)
        zeros = [both - before, both - behind, *zeros]  # F.pad counts from the last direction
    weight = F.pad(module.weight.detach(), zeros)
    found = type(module)(
        module.in_channels, module.out_channels, tuple(weight.shape[2:]), module.stride, tuple(padding),
        groups=module.groups, bias=module.bias is not None, dtype=weight.dtype,
    )  # fmt: skip
    found.weight = nn.Parameter(weight, requires_grad=False)
    found.bias = module.bias
    return found.eval()


def fully_convolutional(graph: Graph) -> None:
    """Write what follows upon a flattening as convolutions: features become channels of one pixel.

    For programs that flatten the batch as well when they read a file.
    """
    for node in list(graph):
        before = graph.shape(node.inputs[0])
        if isinstance(node.module, Reshape) and len(node.shape) == 1:
            node.shape = before  # what reads it must see the shape of the image; the node goes below
            continue
        if len(node.shape) > 1 or len(before) == 1:
            continue
        if isinstance(node.module, nn.Linear):
            node.shape = (node.module.out_features, *[1] * (len(before) - 1))
            graph.replace_module(node.name, _as_convolution(node.module, before))
        elif isinstance(node.module, IntegrateFire):
            graph.replace_module(node.name, _in_space(node, before))
            node.shape = before
        elif isinstance(node.module, Affine):
            parts = (node.module.scale, node.module.shift)
            shapes = [before if part.numel() > 1 else [1] * len(before) for part in parts]
            spread = [part.reshape(1, *shape) for part, shape in zip(parts, shapes, strict=True)]
            graph.replace_module(node.name, Affine(*spread))
            node.shape = before
        elif isinstance(node.module, Sum):
            node.shape = before
        else:
            raise UnsupportedError(f"{node.place} reads features and cannot be written as a convolution")
    for node in graph.of_type(Reshape):
        if node.shape == graph.shape(node.inputs[0]):
            graph.bypass(node.name)


def _as_convolution(module: nn.Linear, before: Shape) -> nn.Module:
    kind = nn.Conv1d if len(before) == 2 else nn.Conv2d
    found = kind(before[0], module.out_features, before[1:], bias=module.bias is not None)  # type: ignore[arg-type]
    found.weight = nn.Parameter(module.weight.detach().reshape(-1, *before), requires_grad=False)
    found.bias = module.bias
    return found.eval()


def _in_space(node: Node, shape: Shape) -> IntegrateFire:
    neuron = node.module
    assert isinstance(neuron, IntegrateFire)
    found = IntegrateFire(neuron.steps, len(shape))
    if math.prod(shape[1:]) == 1:
        return found.set(neuron.threshold, neuron.initial, neuron.bias)
    if any(bool((rows != rows[..., :1]).any()) for rows in (neuron.threshold, neuron.initial, neuron.bias)):
        raise UnsupportedError(f"{node.place} has a bias for each pixel, which convolutions cannot carry")
    return found.set(neuron.threshold[:1], neuron.initial[:1], neuron.bias[:, :1])
