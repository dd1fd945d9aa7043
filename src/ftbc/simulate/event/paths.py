"""How spikes reach a neuron: the linear operations between neurons, as weights that spikes can be added through.

A neuron's current is a sum over *paths*. A path leads from a source of spikes through one layer of weights, or none
(a shortcut); what stands around the weights - sums, per-channel factors, concatenations, slices, pads and average
pools - becomes part of them. Where that cannot be, a path begins at a value that is computed densely.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ftbc.graph.ir import Graph, Node, Shape
from ftbc.graph.ops import Affine, Concat, Pad, Reduce, Reshape, Slice, Sum
from ftbc.simulate.event.coding import PLAIN, Coding

MOST_PATHS = 6
"""A value that more paths lead to is computed densely: each neuron that reads it would follow them all again."""


def plane(shape: Shape) -> Shape:
    """Channels, rows and columns of an item: features are one pixel, a sequence is one row, a number is one channel."""
    channels, *rest = shape or (1,)
    rows, columns = [1, 1, *rest][-2:]
    return channels, rows, columns


@dataclass(frozen=True)
class Path:
    """The linear way from ``source`` to a value.

    weight: ``[channels of the value, channels of the source, rows, columns]``, or ``[channels, 1, rows, columns]`` with
    ``depthwise``; None for a value computed densely. pool: the source is first averaged over windows of this size;
    stride, padding: of the weights (padding at the top and on the left); layer: the layer whose weights are in it;
    whole: the value is a flattened image, or the weights (``[..., pixels, 1]``) have an entry for each pixel of one;
    coding: what the spikes of the source count.
    """

    source: str
    weight: Tensor | None
    pool: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    depthwise: bool = False
    layer: str | None = None
    whole: bool = False
    coding: Coding = PLAIN

    def scaled(self, factor: Tensor | float) -> Path:
        """With each channel of the value times a factor."""
        by_row = torch.as_tensor(factor, dtype=torch.float64).reshape(-1, 1, 1, 1)
        return self.holding(lambda weight: weight * by_row)

    def holding(self, change: Callable[[Tensor], Tensor]) -> Path:
        """With other weights."""
        return self if self.weight is None else dataclasses.replace(self, weight=change(self.weight))

    def full(self) -> Tensor:
        """The weights with every channel of the source written out."""
        assert self.weight is not None
        return (
            torch.diag_embed(self.weight[:, 0].movedim(0, -1)).movedim((-2, -1), (0, 1))
            if self.depthwise
            else self.weight
        )

    def chosen(self, rows: Tensor) -> Path:
        """With these rows as the channels of the value; a row of -1 is zero."""
        weight = self.full()
        weight = torch.cat([weight, torch.zeros_like(weight[:1])])[rows]
        return dataclasses.replace(self, weight=weight, depthwise=False)


@dataclass(frozen=True)
class Reached:
    """A value as a sum of paths and a constant per channel."""

    paths: tuple[Path, ...]
    shift: Tensor

    @property
    def dense(self) -> bool:
        """Whether part of it is computed densely."""
        return any(path.weight is None for path in self.paths)


def spikes_of(node: Node, coding: Coding = PLAIN) -> Reached:
    """The spikes of a neuron themselves."""
    channels = plane(node.shape)[0]
    identity = torch.ones(channels, 1, 1, 1, dtype=torch.float64)
    path = Path(node.name, identity, depthwise=True, coding=coding)
    return Reached((path,), torch.zeros(channels, dtype=torch.float64))


def computed(name: str, shape: Shape) -> Reached:
    """A value that torch computes."""
    return Reached((Path(name, None),), torch.zeros(plane(shape)[0], dtype=torch.float64))


def through(node: Node, inputs: list[Reached], graph: Graph) -> Reached:
    """A node's output by the paths of its inputs, or as a value of its own if they cannot go on."""
    shapes = [graph.shape(name) for name in node.inputs]
    flattened = any(path.whole for value in inputs for path in value.paths)
    found = None
    if (not flattened or isinstance(node.module, nn.Linear)) and max(map(len, [node.shape, *shapes])) <= 3:
        if isinstance(node.module, Sum):
            found = _sum(node.module, inputs, shapes, node.shape)
        elif not any(value.dense for value in inputs):
            found = _one(node, inputs, shapes)
    if found is None or sum(path.layer is not None for path in found.paths) > MOST_PATHS:
        return computed(node.name, node.shape)
    return found


def _sum(module: Sum, inputs: list[Reached], shapes: list[Shape], shape: Shape) -> Reached | None:
    if any(other != shape for other in shapes):
        return None
    pairs = list(zip(inputs, module.weights, strict=True))
    if any(value.dense and weight != 1 for value, weight in pairs):
        return None
    paths = tuple(path.scaled(weight) for value, weight in pairs for path in value.paths)
    return Reached(paths, torch.stack([value.shift * weight for value, weight in pairs]).sum(0))


def _one(node: Node, inputs: list[Reached], shapes: list[Shape]) -> Reached | None:
    module, value, shape = node.module, inputs[0], shapes[0]
    if isinstance(module, Affine):
        return _affine(module, value, shape) if node.shape == shape else None
    if isinstance(module, Concat):
        return _concat(module, inputs, shapes)
    if isinstance(module, nn.Conv2d | nn.Conv1d | nn.Linear):
        return _weights(node.name, module, value, shape)
    return _rearranged(module, value, shape, node.shape)


def _affine(module: Affine, value: Reached, shape: Shape) -> Reached | None:
    channels = shape[0]
    if any(constant.numel() != constant.shape[1] for constant in (module.scale, module.shift)):
        return None  # not one number for the layer or for each channel
    scale = module.scale.double().reshape(-1).expand(channels)
    paths = tuple(path.scaled(scale) for path in value.paths)
    return Reached(paths, value.shift * scale + module.shift.double().reshape(-1))


def _concat(module: Concat, inputs: list[Reached], shapes: list[Shape]) -> Reached | None:
    if module.dim != 1:
        return None
    total, begin, paths = sum(shape[0] for shape in shapes), 0, []
    for value, shape in zip(inputs, shapes, strict=True):
        rows = torch.full((total,), -1)
        rows[begin : begin + shape[0]] = torch.arange(shape[0])
        paths += [path.chosen(rows) for path in value.paths]
        begin += shape[0]
    return Reached(tuple(paths), torch.cat([value.shift for value in inputs]))


def _rearranged(module: nn.Module, value: Reached, before: Shape, after: Shape) -> Reached | None:
    """Average pools, slices, pads and flattening, of shortcuts alone: behind weights they stay operations."""
    if isinstance(module, Slice) and module.dim == 1:
        rows = torch.arange(before[0])[module.start : module.stop : module.step]
        return Reached(tuple(path.chosen(rows) for path in value.paths), value.shift[rows])
    if isinstance(module, Pad) and module.mode == "constant" and module.value == 0:
        return _pad(module, value, before)
    plain = not any(path.layer or path.padding != (0, 0) for path in value.paths)
    if not plain or bool(value.shift.any()):
        return None
    unpooled = all(path.stride == (1, 1) for path in value.paths)
    if isinstance(module, Slice) and len(before) == 3 and module.dim in (2, 3) and module.start == 0:
        axis = module.dim - 2
        complete = after[module.dim - 1] == -(-before[module.dim - 1] // module.step)
        if not complete or any(path.pool != (1, 1) for path in value.paths):
            return None
        return _each(value, lambda path: {"stride": _at(path.stride, axis, module.step)})
    if isinstance(module, Reshape) and unpooled:
        if len(after) != 1:
            return None
        if plane(before)[1:] == (1, 1):
            return value
        return _each(value, lambda path: {"whole": True}) if all(p.pool == (1, 1) for p in value.paths) else None
    found = _window(module, before, after)
    if found is None or not unpooled:
        return None
    (rows, columns), divisor = found
    pooled = _each(value, lambda path: {"pool": (path.pool[0] * rows, path.pool[1] * columns)})
    return Reached(tuple(path.scaled(1 / divisor) for path in pooled.paths), value.shift)


def _pad(module: Pad, value: Reached, before: Shape) -> Reached | None:
    """Zeros around the pixels, or more channels of zeros."""
    sides = [*module.pad, *[0] * (2 * len(before) - len(module.pad))]
    at_channels, spatial = sides[2 * (len(before) - 1) :], sides[: 2 * (len(before) - 1)]
    if any(side < 0 for side in sides) or (bool(value.shift.any()) and any(sides)):
        return None
    if any(at_channels):
        rows = torch.cat(
            [torch.full((at_channels[0],), -1), torch.arange(before[0]), torch.full((at_channels[1],), -1)]
        )
        shift = torch.zeros(len(rows), dtype=torch.float64)
        value = Reached(tuple(path.chosen(rows) for path in value.paths), shift)
    if not any(spatial):
        return value
    if any(path.layer or path.stride != (1, 1) for path in value.paths):
        return None
    left, top = spatial[0], spatial[2] if len(spatial) > 2 else 0
    return _each(value, lambda path: {"padding": (path.padding[0] + top, path.padding[1] + left)})


def _weights(name: str, module: nn.Module, value: Reached, shape: Shape) -> Reached | None:
    """A convolution or linear layer over shortcuts: its weights, with their factors and choice of channels in them."""
    if isinstance(module, nn.Linear):
        if len(shape) != 1:
            return None
        weight, stride, padding, groups = module.weight.double()[:, :, None, None], (1, 1), (0, 0), 1
    else:
        assert isinstance(module, nn.Conv1d | nn.Conv2d)
        if any(d != 1 for d in module.dilation) or module.padding_mode != "zeros" or isinstance(module.padding, str):
            return None
        weight = module.weight.double()
        stride, padding, groups = tuple(module.stride), tuple(module.padding), module.groups
        if isinstance(module, nn.Conv1d):
            weight, stride, padding = weight.unsqueeze(2), (1, *stride), (0, *padding)
    if any(path.layer or path.stride != (1, 1) for path in value.paths) or bool(value.shift.any()):
        return None
    bias = torch.zeros(len(weight), dtype=torch.float64) if module.bias is None else module.bias.double()
    paths = []
    for path in value.paths:
        taken = _taken(path, weight, groups)
        if taken is None:
            return None
        pad = (path.padding[0] + padding[0], path.padding[1] + padding[1])
        paths.append(dataclasses.replace(taken, stride=stride, padding=pad, layer=name))
    return Reached(tuple(paths), bias)


def _taken(path: Path, weight: Tensor, groups: int) -> Path | None:
    """A path without weights, continued through weights ``[out, in / groups, rows, columns]``."""
    assert path.weight is not None
    channels = len(path.weight)
    if path.whole:  # a flattened image: feature c * rows * columns + y * columns + x
        if path.depthwise is False or groups != 1:
            return None
        pixels = weight.shape[1] // channels
        by_pixel = weight.reshape(len(weight), channels, pixels, 1)
        return dataclasses.replace(path, weight=by_pixel * path.weight[:, 0, 0, 0].view(1, -1, 1, 1), depthwise=False)
    if groups == channels == len(weight) and path.depthwise:
        return dataclasses.replace(path, weight=weight * path.weight)
    expanded = weight.new_zeros(len(weight), channels, *weight.shape[2:])
    inputs, outputs = channels // groups, len(weight) // groups
    for g in range(groups):
        rows, columns = slice(g * outputs, (g + 1) * outputs), slice(g * inputs, (g + 1) * inputs)
        expanded[rows, columns] = weight[rows]
    if path.depthwise:
        return dataclasses.replace(path, weight=expanded * path.weight[:, 0, 0, 0].view(1, -1, 1, 1), depthwise=False)
    mixed = torch.einsum("oikl,is->oskl", expanded, path.weight[:, :, 0, 0])
    return dataclasses.replace(path, weight=mixed)


def _window(module: nn.Module, before: Shape, after: Shape) -> tuple[tuple[int, int], int] | None:
    """The window of a pool whose windows touch and do not overlap, and what its sum is divided by."""
    _, rows, columns = plane(before)
    if isinstance(module, Reduce):
        spatial = set(module.dims) == set(range(2, len(before) + 1)) and len(before) > 1
        return ((rows, columns), rows * columns if module.mean else 1) if spatial else None
    if isinstance(module, nn.AvgPool2d):
        size, step, pad = _two(module.kernel_size), _two(module.stride), _two(module.padding)
        plain = size == step and pad == (0, 0) and not module.ceil_mode
        return (size, module.divisor_override or size[0] * size[1]) if plain else None
    if isinstance(module, nn.AdaptiveAvgPool2d):
        _, into_rows, into_columns = plane(after)
        size = rows // into_rows, columns // into_columns
        exact = (size[0] * into_rows, size[1] * into_columns) == (rows, columns)
        return (size, size[0] * size[1]) if exact else None
    return None


def _each(value: Reached, change) -> Reached:  # type: ignore[no-untyped-def]
    return Reached(tuple(dataclasses.replace(path, **change(path)) for path in value.paths), value.shift)


def _at(pair: tuple[int, int], axis: int, factor: int) -> tuple[int, int]:
    return (pair[0] * factor, pair[1]) if axis == 0 else (pair[0], pair[1] * factor)


def _two(size: int | tuple[int, ...]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])
