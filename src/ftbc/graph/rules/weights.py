"""Layers with weights: linear, convolution, transposed convolution."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from ftbc.graph import ops, spec
from ftbc.graph.call import Call, Refused, Value
from ftbc.graph.remedies import remedy_for
from ftbc.graph.rules.registry import RULES, Rule, rule, whole


@rule(*(kind.__name__ for kind in (*ops.Convolution, nn.Linear)))
def _layer(call: Call, module: nn.Module, x: Value) -> Value:
    return call.emit(spec.clone(module), x)


@rule(*(kind.__name__ for kind in ops.TransposedConvolution))
def _transposed_layer(call: Call, module: Any, x: Value, output_size: Any = None) -> Value:
    layer: Any = spec.clone(module)
    if output_size is not None:
        layer.output_padding = tuple(
            wanted - ((size - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1)
            for wanted, size, stride, padding, dilation, kernel in zip(
                call.shape[1:], x.shape[1:], layer.stride, layer.padding, layer.dilation, layer.kernel_size, strict=True
            )
        )
    return call.emit(layer, x)


@rule("NonDynamicallyQuantizableLinear")
def _plain_linear(call: Call, module: nn.Linear, x: Value) -> Value:
    return linear(call, x, module.weight, module.bias)


@rule("linear")
def linear(call: Call, x: Value, weight: Any, bias: Any = None) -> Value:
    """``x W^T + b`` over the last dimension."""
    x, weight = _value(x), _constant(weight)
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias is not None, device="meta")
    return call.emit(_with_tensors(layer, weight, bias), x)


@rule("matmul", "mm")
def _matmul(call: Call, x: Value, other: Any = None, mat2: Any = None) -> Value:
    weight = _constant(other if mat2 is None else mat2)
    if weight.ndim != 2:
        raise Refused(remedy_for("matmul"))
    return linear(call, x, weight.T)


@rule("addmm")
def _addmm(call: Call, bias: Any, mat1: Value, mat2: Any) -> Value:
    weight = _constant(mat2)
    return linear(call, mat1, weight.T, _constant(bias).expand(weight.shape[1]))


def _convolution(kind: type[nn.Module]) -> Rule:
    def convolve(call: Call, x: Value, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1) -> Value:  # fmt: skip
        weight = _constant(weight)
        layer = kind(weight.shape[1] * groups, weight.shape[0], tuple(weight.shape[2:]), whole(stride),
                     whole(padding), whole(dilation), groups, bias is not None, device="meta")  # fmt: skip
        return call.emit(_with_tensors(layer, weight, bias), _value(x))

    return convolve


def _transposed_convolution(kind: type[nn.Module]) -> Rule:
    def convolve(call: Call, x: Value, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
                 output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Value:  # fmt: skip
        weight = _constant(weight)
        layer = kind(weight.shape[0], weight.shape[1] * groups, tuple(weight.shape[2:]), whole(stride),
                     whole(padding), whole(output_padding), groups, bias is not None, whole(dilation),
                     device="meta")  # fmt: skip
        return call.emit(_with_tensors(layer, weight, bias), _value(x))

    return convolve


for _rank, _kind, _transposed_kind in zip("123", ops.Convolution, ops.TransposedConvolution, strict=True):
    RULES[f"conv{_rank}d"] = _convolution(_kind)
    RULES[f"conv_transpose{_rank}d"] = _transposed_convolution(_transposed_kind)


def _with_tensors(layer: nn.Module, weight: Tensor, bias: Any) -> nn.Module:
    layer.weight = nn.Parameter(weight.detach().clone(), requires_grad=False)
    if bias is not None:
        layer.bias = nn.Parameter(_constant(bias).detach().clone(), requires_grad=False)
    return layer.eval()


def _value(x: Any) -> Value:
    if not isinstance(x, Value):
        raise Refused(remedy_for("matmul"))
    return x


def _constant(weight: Any) -> Tensor:
    """A weight that is computed from the input would make a product of activations."""
    if not isinstance(weight, Tensor):
        raise Refused(remedy_for("matmul"))
    return weight
