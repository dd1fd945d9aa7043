"""Functions that may come last: they are not spiked through but applied to the averaged output."""

from __future__ import annotations

from typing import Any

from torch import nn

from ftbc.graph.call import Call, Refused, Value
from ftbc.graph.remedies import remedy_for
from ftbc.graph.rules.registry import dimension, rule


@rule("sigmoid", "sigmoid_")
def _sigmoid(call: Call, x: Value) -> Value:
    return _head(call, nn.Sigmoid(), x)


@rule("tanh", "tanh_")
def _tanh(call: Call, x: Value) -> Value:
    return _head(call, nn.Tanh(), x)


@rule("Sigmoid", "Tanh")
def _module(call: Call, module: nn.Module, x: Value) -> Value:
    return _head(call, type(module)(), x)


@rule("softmax", "log_softmax")
def _softmax(call: Call, x: Value, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Value:
    if dim is None:
        dim = 0 if x.ndim == 3 else 1  # what torch takes where no dimension is given
    kind = nn.LogSoftmax if call.operation.lower().startswith("log") else nn.Softmax
    return _head(call, kind(dimension(dim, x.ndim, "it mixes the images of a batch")), x)


@rule("Softmax", "LogSoftmax")
def _softmax_module(call: Call, module: nn.Softmax, x: Value) -> Value:
    return _softmax(call, x, module.dim)


@rule("Softmax2d")
def _softmax_2d(call: Call, module: nn.Softmax2d, x: Value) -> Value:
    return _softmax(call, x, -3)


def _head(call: Call, head: nn.Module, x: Value) -> Value:
    if not call.is_last or call.shape != x.shape:
        raise Refused(remedy_for(call.operation))
    call.cleaned.head = head
    return x
