"""One rule for each operation of a graph: what it is in ONNX."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ftbc.errors import UnsupportedError
from ftbc.export.onnx_sheet import Sheet
from ftbc.graph.ir import Graph, Node
from ftbc.graph.ops import (
    Affine,
    Concat,
    Convolution,
    Grid,
    Pad,
    Permute,
    Reduce,
    Reshape,
    Slice,
    Sum,
    TransposedConvolution,
)

_AVERAGES = (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)
_MAXIMA = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)
_ADAPTIVE_AVERAGES = (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d)
_ADAPTIVE_MAXIMA = (nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d)
_PADDING = {"constant": "constant", "zeros": "constant", "reflect": "reflect", "replicate": "edge"}


def emit(sheet: Sheet, graph: Graph, node: Node, inputs: list[str], output: str) -> str:
    """Add what a node without state computes, and return the name of its value."""
    for kinds, rule in _RULES:
        if isinstance(node.module, kinds):
            return rule(_Call(sheet, graph, node, inputs, output))
    raise UnsupportedError(f"{node.place} has no rule to be written as ONNX")


class _Call:
    """One operation: where it is written to, what it reads, and under which names."""

    def __init__(self, sheet: Sheet, graph: Graph, node: Node, inputs: list[str], output: str) -> None:
        self.sheet, self.node, self.inputs, self.output = sheet, node, inputs, output
        self.module: Any = node.module
        self.before = graph.shape(node.inputs[0])

    def add(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        return self.sheet.add(kind, inputs, self.output, **attributes)

    def part(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        return self.sheet.add(kind, inputs, f"{self.output}:{kind}", **attributes)

    def constant(self, name: str, values: Any) -> str:
        return self.sheet.constant(f"{self.node.name}.{name}", values)

    def refuse(self, why: str) -> UnsupportedError:
        return UnsupportedError(f"{self.node.place} cannot be written as ONNX: {why}")


def _convolution(call: _Call) -> str:
    module, x = call.module, call.inputs[0]
    sides = _sides(module)
    if module.padding_mode != "zeros":
        x, sides = _padded(call, x, sides, module.padding_mode, 0.0), [0] * len(sides)
    weights = [call.constant("weight", module.weight)]
    weights += [] if module.bias is None else [call.constant("bias", module.bias)]
    return call.add(
        "Conv",
        [x, *weights],
        strides=list(module.stride),
        pads=sides,
        dilations=list(module.dilation),
        group=module.groups,
    )


def _sides(module: Any) -> list[int]:
    """Zeros before and behind in each direction, all of the former first, as ONNX counts."""
    if not isinstance(module.padding, str):
        return [*module.padding, *module.padding]
    sizes = zip(module.dilation, module.kernel_size, strict=True)
    both = [step * (size - 1) if module.padding == "same" else 0 for step, size in sizes]
    return [*(total // 2 for total in both), *(total - total // 2 for total in both)]


def _transposed(call: _Call) -> str:
    module = call.module
    weights = [call.constant("weight", module.weight)]
    weights += [] if module.bias is None else [call.constant("bias", module.bias)]
    return call.add(
        "ConvTranspose", [call.inputs[0], *weights], strides=list(module.stride), pads=[*module.padding] * 2,
        dilations=list(module.dilation), group=module.groups, output_padding=list(module.output_padding),
    )  # fmt: skip


def _linear(call: _Call) -> str:
    module, x = call.module, call.inputs[0]
    if len(call.before) == 1:
        weights = [call.constant("weight", module.weight)]
        weights += [] if module.bias is None else [call.constant("bias", module.bias)]
        return call.add("Gemm", [x, *weights], transB=1)
    weight = call.constant("weight_t", module.weight.t())
    if module.bias is None:
        return call.add("MatMul", [x, weight])
    return call.add("Add", [call.part("MatMul", [x, weight]), call.constant("bias", module.bias)])


def _sum(call: _Call) -> str:
    terms = []
    for index, (x, weight) in enumerate(zip(call.inputs, call.module.weights, strict=True)):
        terms.append(
            x if weight == 1 else call.part("Mul", [x, call.constant(f"weight_{index}", torch.tensor(weight))])
        )
    total = terms[0]
    for term in terms[1:-1]:
        total = call.part("Add", [total, term])
    return call.add("Add", [total, terms[-1]]) if len(terms) > 1 else call.add("Identity", [total])


def _affine(call: _Call) -> str:
    scaled = call.part("Mul", [call.inputs[0], call.constant("scale", call.module.scale)])
    return call.add("Add", [scaled, call.constant("shift", call.module.shift)])


def _grid(call: _Call) -> str:
    step = call.constant("step", torch.tensor(call.module.step))
    return call.add("Mul", [call.part("Round", [call.part("Div", [call.inputs[0], step])]), step])


def _average(call: _Call) -> str:
    module, rank = call.module, len(call.before) - 1
    size, stride, padding = (_spread(value, rank) for value in (module.kernel_size, module.stride, module.padding))
    _require_floor(call, size, stride, padding, [1] * rank)
    divisor = getattr(module, "divisor_override", None)
    if divisor is None:
        return call.add(
            "AveragePool", call.inputs[:1], kernel_shape=size, strides=stride, pads=padding * 2,
            count_include_pad=int(module.count_include_pad),
        )  # fmt: skip
    channels = call.before[0]  # a sum: ONNX has none but a convolution with ones
    ones = call.constant("ones", torch.ones(channels, 1, *size))
    pooled = {"strides": stride, "pads": padding * 2, "group": channels}
    if divisor == 1:
        return call.add("Conv", [call.inputs[0], ones], **pooled)
    total = call.part("Conv", [call.inputs[0], ones], **pooled)
    return call.add("Div", [total, call.constant("divisor", torch.tensor(float(divisor)))])


def maximum(call: _Call) -> str:
    """A max-pool."""
    module, rank = call.module, len(call.before) - 1
    size, stride, padding, dilation = (
        _spread(value, rank) for value in (module.kernel_size, module.stride, module.padding, module.dilation)
    )
    _require_floor(call, size, stride, padding, dilation)
    return call.add(
        "MaxPool", call.inputs[:1], kernel_shape=size, strides=stride, pads=padding * 2, dilations=dilation
    )  # fmt: skip


def _adaptive(kind: str) -> Callable[[_Call], str]:
    def rule(call: _Call) -> str:
        before, after = call.before[1:], call.node.shape[1:]
        if any(size % parts for size, parts in zip(before, after, strict=True)):
            raise call.refuse(f"its windows differ in size, {list(before)} pixels to {list(after)}")
        size = [length // parts for length, parts in zip(before, after, strict=True)]
        return call.add(kind, call.inputs[:1], kernel_shape=size, strides=size)

    return rule


def _require_floor(call: _Call, size: list[int], stride: list[int], padding: list[int], dilation: list[int]) -> None:
    """Programs differ in windows that reach beyond the image."""
    rows = zip(call.before[1:], size, stride, padding, dilation, strict=True)
    floors = tuple(1 + (n + 2 * p - d * (k - 1) - 1) // s for n, k, s, p, d in rows)
    if floors != call.node.shape[1:]:
        raise call.refuse("its last windows reach beyond the image (ceil_mode)")


def _spread(value: Any, rank: int) -> list[int]:
    return [int(value)] * rank if isinstance(value, int) else [int(part) for part in value]


def _reshape(call: _Call) -> str:
    return call.add("Reshape", [call.inputs[0], call.constant("shape", [-1, *call.module.shape])])


def _permute(call: _Call) -> str:
    return call.add("Transpose", call.inputs[:1], perm=list(call.module.dims))


def _concat(call: _Call) -> str:
    return call.add("Concat", call.inputs, axis=call.module.dim)


def _reduce(call: _Call) -> str:
    module = call.module
    if module.mean:
        return call.add("ReduceMean", call.inputs[:1], axes=list(module.dims), keepdims=int(module.keepdim))
    axes = call.constant("axes", list(module.dims))
    return call.add("ReduceSum", [call.inputs[0], axes], keepdims=int(module.keepdim))


def _slice(call: _Call) -> str:
    module = call.module
    parts = {"start": module.start, "stop": module.stop, "dim": module.dim, "step": module.step}
    return call.add("Slice", [call.inputs[0], *(call.constant(name, [value]) for name, value in parts.items())])


def _pad(call: _Call) -> str:
    module, rank = call.module, len(call.before) + 1
    pairs = [module.pad[i : i + 2] for i in range(0, len(module.pad), 2)]
    pairs = [*[(0, 0)] * (rank - len(pairs)), *reversed(pairs)]
    sides = [*(pair[0] for pair in pairs), *(pair[1] for pair in pairs)]
    return _padded(call, call.inputs[0], sides, module.mode, module.value, call.output)


def _padded(call: _Call, x: str, sides: list[int], mode: str, value: float, output: str | None = None) -> str:
    if mode not in _PADDING:
        raise call.refuse(f"it pads by {mode!r}")
    rank = len(call.before) + 1
    missing = rank - len(sides) // 2
    half = len(sides) // 2
    full = [*[0] * missing, *sides[:half], *[0] * missing, *sides[half:]]
    inputs = [x, call.constant("pads", full)]
    inputs += [call.constant("value", torch.tensor(float(value)))] if mode == "constant" else []
    return call.sheet.add("Pad", inputs, output or f"{call.output}:Pad", mode=_PADDING[mode])


def _upsample(call: _Call) -> str:
    module, before, after = call.module, call.before[1:], call.node.shape[1:]
    linear = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "trilinear": "linear"}.get(module.mode)
    if linear is None or any(large % small for large, small in zip(after, before, strict=True)):
        raise call.refuse(
            f"it enlarges {list(before)} to {list(after)} by {module.mode!r}; whole factors, nearest or linear, can be"
        )
    scales = call.constant("scales", torch.tensor([1.0, 1.0, *(a / b for a, b in zip(after, before, strict=True))]))
    if linear == "nearest":
        settings = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    else:
        settings = {"coordinate_transformation_mode": "align_corners" if module.align_corners else "half_pixel"}
    return call.add("Resize", [call.inputs[0], "", scales], mode=linear, **settings)


def _to_space(call: _Call) -> str:
    return call.add("DepthToSpace", call.inputs[:1], blocksize=call.module.upscale_factor, mode="CRD")


def _to_depth(call: _Call) -> str:
    factor, (channels, rows, columns) = call.module.downscale_factor, call.before
    shape = [-1, channels, rows // factor, factor, columns // factor, factor]
    split = call.part("Reshape", [call.inputs[0], call.constant("split", shape)])
    moved = call.part("Transpose", [split], perm=[0, 1, 3, 5, 2, 4])
    return call.add("Reshape", [moved, call.constant("shape", [-1, *call.node.shape])])


def _shuffle(call: _Call) -> str:
    channels, *space = call.before
    groups = call.module.groups
    split = call.part(
        "Reshape", [call.inputs[0], call.constant("split", [-1, groups, channels // groups, math.prod(space)])]
    )
    moved = call.part("Transpose", [split], perm=[0, 2, 1, 3])
    return call.add("Reshape", [moved, call.constant("shape", [-1, *call.before])])


def _softmax(kind: str) -> Callable[[_Call], str]:
    return lambda call: call.add(kind, call.inputs[:1], axis=call.module.dim)


def _plain(kind: str) -> Callable[[_Call], str]:
    return lambda call: call.add(kind, call.inputs[:1])


_RULES: list[tuple[tuple[type[nn.Module], ...], Callable[[_Call], str]]] = [
    (Convolution, _convolution),
    (TransposedConvolution, _transposed),
    ((nn.Linear,), _linear),
    ((Sum,), _sum),
    ((Affine,), _affine),
    ((Grid,), _grid),
    (_AVERAGES, _average),
    (_MAXIMA, maximum),
    (_ADAPTIVE_AVERAGES, _adaptive("AveragePool")),
    (_ADAPTIVE_MAXIMA, _adaptive("MaxPool")),
    ((Reshape,), _reshape),
    ((Permute,), _permute),
    ((Concat,), _concat),
    ((Reduce,), _reduce),
    ((Slice,), _slice),
    ((Pad,), _pad),
    ((nn.Upsample,), _upsample),
    ((nn.PixelShuffle,), _to_space),
    ((nn.PixelUnshuffle,), _to_depth),
    ((nn.ChannelShuffle,), _shuffle),
    ((nn.Softmax,), _softmax("Softmax")),
    ((nn.LogSoftmax,), _softmax("LogSoftmax")),
    ((nn.Sigmoid,), _plain("Sigmoid")),
    ((nn.Tanh,), _plain("Tanh")),
]
