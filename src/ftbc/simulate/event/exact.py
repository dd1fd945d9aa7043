"""Sums that no order of addition can change: numbers as multiples of powers of two, few enough of them.

A float32 holds every multiple of a unit u up to 2^24 u. Where all terms of a sum are such multiples and the sum stays
below, each addition is exact, and torch gives the same bits for one image as for a hundred, for any memory layout.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ftbc.graph.ir import INPUT, Graph, Node, Shape
from ftbc.graph.ops import (
    Affine,
    Concat,
    Grid,
    MaxPool,
    Pad,
    Permute,
    Reduce,
    Reshape,
    Shuffle,
    Slice,
    Sum,
    Synapses,
    TransposedConvolution,
)
from ftbc.neuron.integrate_fire import IntegrateFire
from ftbc.neuron.max_pool import SpikingMaxPool
from ftbc.neuron.scale import multiply

SPARE = 1.25
"""What is measured on a sample of images may be so much larger on others."""
FEWEST = 7
"""The digits that the largest weight of a layer, and the largest entry of an image, must keep."""

_MOVING = (*MaxPool, SpikingMaxPool, Reshape, Permute, Slice, Concat, *Shuffle)


@dataclass(frozen=True)
class Range:
    """Numbers that are multiples of ``unit``, a power of two, and no larger than ``size``."""

    unit: float
    size: float


def digits(dtype: torch.dtype) -> int:
    """The bits of a number: whole numbers up to 2^digits are exact."""
    return 1 - int(math.log2(torch.finfo(dtype).eps))


def nearest(values: Tensor, unit: float) -> Tensor:
    """The nearest multiples."""
    return torch.round(values / unit) * unit


def round_weights(module: nn.Module, unit: float, shift_unit: float) -> None:
    """Make the weights of a layer, or the factors of an affine map, multiples of a unit, its constants of another."""
    assert isinstance(module, (*Synapses, Affine))
    # New tensors: those of a graph may be views of one.
    if isinstance(module, Affine):
        module.scale, module.shift = nearest(module.scale, unit), nearest(module.shift, shift_unit)
        return
    module.weight.data = nearest(module.weight.data, unit)
    if module.bias is not None:
        module.bias.data = nearest(module.bias.data, shift_unit)


def sum_instead_of_average(graph: Graph) -> None:
    """Put sums in the place of averages and plain sums in that of weighted ones, with a factor behind.

    A ninth of a spike is no multiple of a power of two, but nine such ninths of a weight can be.
    """
    for node in list(graph):
        before = graph.shape(node.inputs[0])
        found = _as_sum(node, before)
        if found is not None:
            module, count = found
            graph.replace_module(node.name, module)
            multiply(graph, node.name, _factor(graph, 1 / count, len(node.shape)))
        elif isinstance(node.module, Sum):
            _take_out_weights(graph, node)


def _as_sum(node: Node, before: Shape) -> tuple[nn.Module, int] | None:
    """The sum that an average is of, and of how many."""
    module = node.module
    if isinstance(module, Reduce) and module.mean:
        count = math.prod(before[dim - 1] for dim in module.dims)
        return Reduce(module.dims, module.keepdim, mean=False), count
    if isinstance(module, nn.AdaptiveAvgPool2d | nn.AdaptiveAvgPool3d):
        sizes = list(zip(before[1:], node.shape[1:], strict=True))
        if any(size % parts for size, parts in sizes):
            return None
        window = tuple(size // parts for size, parts in sizes)
        kind = nn.AvgPool2d if isinstance(module, nn.AdaptiveAvgPool2d) else nn.AvgPool3d
        return kind(window, window, divisor_override=1), math.prod(window)  # type: ignore[arg-type]
    if isinstance(module, nn.AvgPool2d | nn.AvgPool3d):
        size, step, pad = (
            _spread(value, len(before) - 1) for value in (module.kernel_size, module.stride, module.padding)
        )
        if module.ceil_mode or module.divisor_override is not None or (any(pad) and not module.count_include_pad):
            return None
        kind = nn.AvgPool2d if isinstance(module, nn.AvgPool2d) else nn.AvgPool3d
        return kind(size, step, pad, divisor_override=1), math.prod(size)  # type: ignore[arg-type]
    return None


def _spread(value: int | tuple[int, ...], count: int) -> tuple[int, ...]:
    return (value,) * count if isinstance(value, int) else tuple(value)


def _take_out_weights(graph: Graph, node: Node) -> None:
    module = node.module
    assert isinstance(module, Sum)
    names = list(node.inputs)
    for index, weight in enumerate(module.weights):
        if abs(weight) != 1:
            shape = graph.shape(names[index])
            factor = _factor(graph, weight, len(shape))
            affine = Affine(factor, torch.zeros_like(factor))
            names[index] = graph.insert_before(node.name, Node(f"{node.name}_part", affine, (names[index],), shape))
    node.inputs = tuple(names)
    graph.replace_module(node.name, Sum([weight if abs(weight) == 1 else 1.0 for weight in module.weights]))


def _factor(graph: Graph, number: float, rank: int) -> Tensor:
    return torch.full((1,) * (rank + 1), number, dtype=graph.tensors()[0].dtype, device=graph.tensors()[0].device)


def make_exact(graph: Graph, x: Tensor) -> None:
    """Round what is not whole yet - the image, the layers that read it, those that torch runs - as finely as can be.

    x: images, which tell how large sums become. What would lose more than `FEWEST` digits stays as it is, and so
    does what lies behind operations that average or mix.
    """
    bits, stages = digits(x.dtype), _stages(graph)
    known: dict[str, Range | None] = {INPUT: None, **_round_image(graph, x, bits, stages)}
    for node in list(graph):
        if node.name not in known:
            known[node.name] = _range(node, [known[name] for name in node.inputs], graph, bits, stages)


def _stages(graph: Graph) -> dict[str, int]:
    """How many weights and factors follow upon each value, at most, up to the next neuron; they share its digits."""
    stages = dict.fromkeys([INPUT, *graph.nodes], 0)
    for node in reversed(list(graph)):
        if not isinstance(node.module, IntegrateFire | Grid):
            own = isinstance(node.module, (*Synapses, Affine))
            for name in node.inputs:
                stages[name] = max(stages[name], own + stages[node.name])
    return stages


def _round_image(graph: Graph, x: Tensor, bits: int, stages: dict[str, int]) -> dict[str, Range | None]:
    """Share the digits out between the image and the weights that read it."""
    readers = graph.users(INPUT)
    layers = [node for node in readers if isinstance(node.module, Synapses)]
    image = SPARE * float(x.abs().max())
    sums = {node.name: SPARE * _largest_sum(node.module, x) for node in layers}
    weight = max((float(node.module.weight.abs().max()) for node in layers), default=0.0)  # type: ignore[union-attr]
    if not layers or not all(0 < size < math.inf for size in (image, weight, *sums.values())):
        return {}
    spare = 2 * (bits - _power(max(sums.values()))) / (1 + stages[INPUT])
    step = 2.0 ** round((math.log2(image / weight) - spare) / 2)
    if step > image * 2.0**-FEWEST:
        return {}
    name = graph.insert_after(INPUT, Node("image_grid", Grid(step), (INPUT,), graph.input_shape))
    graph.rewire(INPUT, name, readers)
    found: dict[str, Range | None] = {name: Range(step, image)}
    for node in layers:
        found[node.name] = _round(node.module, step, sums[node.name], bits, stages[node.name])
    return found


def _range(node: Node, inputs: list[Range | None], graph: Graph, bits: int, stages: dict[str, int]) -> Range | None:
    """What is known of a node's output; weights that leave digits unused are rounded on the way."""
    module, first = node.module, inputs[0]
    if isinstance(module, IntegrateFire) and bool((module.threshold == 1).all()):
        return Range(1.0, 1.0)
    if first is None or None in inputs:
        return None
    if isinstance(module, (*Synapses, Affine)):
        return _round(module, first.unit, _largest(module, first.size), bits, stages[node.name])
    if isinstance(module, Grid):
        return Range(module.step, first.size + module.step)
    count = _added(module, graph.shape(node.inputs[0]))
    if count is None:
        return None
    values = [value for value in inputs if value is not None]
    largest = sum(value.size for value in values) if isinstance(module, Sum) else max(value.size for value in values)
    found = Range(min(value.unit for value in values), count * largest)
    return found if found.size <= found.unit * 2.0**bits else None


def _added(module: nn.Module, before: Shape) -> int | None:
    """How many entries of its input an operation adds up, 1 if it only moves them; None for all others."""
    if isinstance(module, Reduce):
        return None if module.mean else math.prod(before[dim - 1] for dim in module.dims)
    if isinstance(module, nn.AvgPool2d | nn.AvgPool3d):
        return math.prod(_spread(module.kernel_size, len(before) - 1)) if module.divisor_override == 1 else None
    plain = isinstance(module, Sum) and all(abs(weight) == 1 for weight in module.weights)
    nearest_pixels = isinstance(module, nn.Upsample) and module.mode == "nearest"
    pads = isinstance(module, Pad) and (module.mode != "constant" or module.value == 0)
    return 1 if isinstance(module, _MOVING) or plain or nearest_pixels or pads else None


def _round(module: nn.Module, read: float, largest: float, bits: int, stages: int) -> Range | None:
    """Round weights that read multiples of ``read`` and give sums up to ``largest``, if that leaves enough of them."""
    assert isinstance(module, (*Synapses, Affine))
    if not 0 < largest < math.inf:
        return None
    left = bits - _power(largest) + int(math.log2(read))
    unit = 2.0 ** -(left // (1 + stages))
    weight = module.scale if isinstance(module, Affine) else module.weight
    if unit > float(weight.abs().max()) * 2.0**-FEWEST:
        return None
    round_weights(module, unit, unit * read)
    return Range(unit * read, largest)


def _largest(module: nn.Module, size: float) -> float:
    """The largest sum that weights give, if the worst comes to the worst, for inputs up to ``size``."""
    assert isinstance(module, (*Synapses, Affine))
    if isinstance(module, Affine):
        return float(module.scale.abs().max()) * size + float(module.shift.abs().max())
    weight = module.weight.double().abs()
    weight = weight.transpose(0, 1) if isinstance(module, TransposedConvolution) else weight
    shift = 0.0 if module.bias is None else float(module.bias.abs().max())
    return SPARE * float(weight.flatten(1).sum(1).max()) * size + shift


def _largest_sum(module: nn.Module, x: Tensor) -> float:
    """The largest sum that weights give on these inputs, were all terms of one sign."""
    layer = copy.deepcopy(module)
    for parameter in layer.parameters():
        parameter.data.abs_()
    return float(layer(x.abs()).max())


def _power(size: float) -> int:
    """The exponent of the smallest power of two that is no smaller."""
    return math.ceil(math.log2(size))
