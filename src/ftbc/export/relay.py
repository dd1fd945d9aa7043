"""The clock carried along from layer to layer, for programs that cannot run branches that meet.

Each layer has T more channels: neurons that pass the clock on, each of which fires once. The weights of the next layer
read b[t] from them, and pass them on in turn:

    W' = | W   b[t] / level |        level: the size of a clock channel at its hour, which pools that add make larger
         | 0   hand / level |        hand: a little more than a threshold, so that rounding cannot stop the clock

A chain of layers stays a chain. What the layers do to images is what they did: the new channels only add b[t].
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ftbc.errors import UnsupportedError
from ftbc.export.nir_words import without_groups
from ftbc.export.rewrite import first_bias
from ftbc.graph.ir import Graph, Node, Shape
from ftbc.graph.ops import Affine
from ftbc.neuron import IntegrateFire

_HAND = 1.25


def relayed(graph: Graph, steps: int, program: str) -> Graph:
    """A chain of layers with unit thresholds that reads ``steps`` clock channels behind those of the image."""
    _require_chain(graph, program)
    found = Graph((graph.input_shape[0] + steps, *graph.input_shape[1:]))
    level, clock = 1.0, steps
    nodes = list(graph)
    last = max(index for index, node in enumerate(nodes) if isinstance(node.module, IntegrateFire))
    for index, node in enumerate(nodes):
        module, before = node.module, graph.shape(node.inputs[0])
        following = nodes[index + 1].module if index + 1 < len(nodes) else None
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Linear):
            rows = first_bias(following) if isinstance(following, IntegrateFire) else None
            more = clock if index + 1 < last else 0  # no clock is needed behind the last layer of neurons
            module, clock = _weights(node, module, before, rows, (clock, more), level), more
        elif isinstance(module, IntegrateFire):
            if index == 0 or not isinstance(nodes[index - 1].module, nn.Conv1d | nn.Conv2d | nn.Linear):
                raise UnsupportedError(
                    f"{node.place} does not follow weights, which alone can bring {program} its bias"
                )
            module, level = IntegrateFire(module.steps, module.rank).set(*_ones(module)), 1.0
        elif isinstance(module, Affine):
            module = _affine(module, node.shape, clock)
        elif isinstance(module, nn.AvgPool2d):
            level *= _window(node, module)
        else:
            raise UnsupportedError(f"{node.place} cannot carry the clock that {program} needs: write bias='mean'")
        shape = (node.shape[0] + clock, *node.shape[1:])
        found.output = found.append(Node(node.name, module, (found.output,), shape))
    return found


def _require_chain(graph: Graph, program: str) -> None:
    joins = [node for node in graph if len(node.inputs) > 1]
    parts = [node for node in graph if any(len(graph.users(name)) > 1 for name in node.inputs)]
    if joins or parts:
        raise UnsupportedError(
            f"branches meet in {(joins or parts)[0].place}, and {program} runs a file's nodes before all that they "
            "read is there: networks with shortcuts go to spikingjelly or snntorch"
        )


def _ones(neuron: IntegrateFire) -> tuple[Tensor, Tensor]:
    one = torch.ones(1, dtype=neuron.threshold.dtype)
    return one, torch.zeros_like(one)


def _weights(
    node: Node,
    module: nn.Conv1d | nn.Conv2d | nn.Linear,
    before: Shape,
    rows: Tensor | None,
    clock: tuple[int, int],
    level: float,
) -> nn.Module:
    """The layer with the clock's channels behind its own, at its input and its output; rows: the biases behind it."""
    steps, more = clock
    weight = module.weight.detach()
    weight = weight if isinstance(module, nn.Linear) else without_groups(weight, module.groups)
    outputs, inputs = weight.shape[:2]
    wide = weight.new_zeros(outputs + more, inputs + steps, *weight.shape[2:])
    wide[:outputs, :inputs] = weight
    tap = () if isinstance(module, nn.Linear) else _tap(node, module, before)
    if rows is not None and steps:
        if rows.ndim > 2:
            raise UnsupportedError(f"{node.place} leads to neurons with a bias for each pixel: write bias='mean'")
        wide[(slice(outputs), slice(inputs, None), *tap)] = rows.t().expand(outputs, -1) / level
    hands = torch.eye(steps, dtype=weight.dtype) * (_HAND / level)
    wide[(slice(outputs, None), slice(inputs, None), *tap)] = hands[:more]
    bias = weight.new_zeros(outputs) if module.bias is None else module.bias.detach()
    return _with(module, wide, torch.cat([bias, bias.new_zeros(more)]))


def _tap(node: Node, module: nn.Conv1d | nn.Conv2d, before: Shape) -> tuple[int, ...]:
    """A place in the kernel that never looks beyond the image."""
    taps = tuple(int(side) for side in module.padding)  # a kernel's entry of this number looks at pixel 0 first
    sizes = zip(before[1:], node.shape[1:], module.kernel_size, module.stride, module.dilation, taps, strict=True)
    if any(d != 1 or tap >= k or s * (m - 1) >= n for n, m, k, s, d, tap in sizes):
        raise UnsupportedError(
            f"{node.place} looks beyond the image with every weight, or is dilated: no clock passes it"
        )
    return taps


def _with(module: nn.Conv1d | nn.Conv2d | nn.Linear, weight: Tensor, bias: Tensor) -> nn.Module:
    if isinstance(module, nn.Linear):
        found: nn.Module = nn.Linear(weight.shape[1], weight.shape[0], device="meta")
    else:
        found = type(module)(
            weight.shape[1], weight.shape[0], tuple(weight.shape[2:]), module.stride, module.padding, device="meta"
        )  # type: ignore[arg-type]
    found.weight, found.bias = (nn.Parameter(part, requires_grad=False) for part in (weight, bias))
    return found.eval()


def _affine(module: Affine, shape: Shape, more: int) -> Affine:
    scale, shift = (part.expand(1, *shape) for part in (module.scale, module.shift))
    rest = (1, more, *shape[1:])
    return Affine(torch.cat([scale, scale.new_ones(rest)], 1), torch.cat([shift, shift.new_zeros(rest)], 1))


def _window(node: Node, module: nn.AvgPool2d) -> float:
    sizes = [value if isinstance(value, tuple) else (value, value) for value in (module.kernel_size, module.padding)]
    if any(sizes[1]):
        raise UnsupportedError(f"{node.place} pads, so that the clock is not the same at all pixels: write bias='mean'")
    return 1.0 if module.divisor_override is None else sizes[0][0] * sizes[0][1] / module.divisor_override
