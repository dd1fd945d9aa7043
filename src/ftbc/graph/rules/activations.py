"""Every spelling of the rectifier, with and without an upper bound: one neuron site for each call."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn

from ftbc.graph import ops, spec
from ftbc.graph.call import Call, Refused, Value
from ftbc.graph.remedies import remedy_for
from ftbc.graph.rules.registry import rule


@rule("relu", "relu_")
def _relu(call: Call, x: Value, inplace: bool = False) -> Value:
    return _site(call, ops.Activation(), x)


@rule("relu6", "relu6_")
def _relu6(call: Call, x: Value, inplace: bool = False) -> Value:
    return _site(call, ops.Activation(6.0), x)


@rule("hardtanh", "hardtanh_")
def _hardtanh(call: Call, x: Value, min_val: Any = -1.0, max_val: Any = 1.0, inplace: bool = False) -> Value:
    return _clamp(call, x, min_val, max_val)


@rule("clamp", "clamp_", "clip", "clip_", "clamp_min", "clamp_min_")
def _clamp(call: Call, x: Value, min: Any = None, max: Any = None) -> Value:
    low, high = _number(min), _number(max)
    if low != 0 or (high is not None and not high > 0):
        raise Refused(f"only clamps from 0 to a positive bound convert, this one runs from {low} to {high}")
    return _site(call, ops.Activation(None if high is None or math.isinf(high) else float(high)), x)


@rule("maximum", "max", "fmax")
def _maximum(call: Call, a: Any, other: Any) -> Value:
    x, zero = (a, other) if isinstance(a, Value) else (other, a)
    if not isinstance(x, Value) or not isinstance(zero, Tensor) or bool((zero != 0).any()) or call.shape != x.shape:
        raise Refused(remedy_for("max"))
    return _site(call, ops.Activation(), x)


@rule("threshold", "_threshold", "threshold_")  # F.threshold calls itself _threshold
def _threshold(call: Call, x: Value, threshold: float, value: float, inplace: bool = False) -> Value:
    if threshold != 0 or value != 0:
        raise Refused(remedy_for("threshold"))
    return _site(call, ops.Activation(), x)


@rule("ReLU")
def _relu_module(call: Call, module: nn.ReLU, x: Value) -> Value:
    return _relu(call, x)


@rule("ReLU6", "Hardtanh")
def _hardtanh_module(call: Call, module: nn.Hardtanh, x: Value) -> Value:
    return _clamp(call, x, module.min_val, module.max_val)


@rule("Threshold")
def _threshold_module(call: Call, module: nn.Threshold, x: Value) -> Value:
    return _threshold(call, x, module.threshold, module.value)


@rule("Activation", "Staircase")
def _own_activation(call: Call, module: ops.Activation, x: Value) -> Value:
    return _site(call, spec.clone(module), x)


def _site(call: Call, activation: ops.Activation, x: Value) -> Value:
    """A site for neurons; a lone number per item is a channel while it passes them."""
    if x.shape:
        return call.emit(activation, x)
    channel = call.emit(ops.Reshape((1,)), x, shape=(1,), suffix=".channel")
    sent = call.emit(activation, channel, shape=(1,))
    return call.emit(ops.Reshape(()), sent, suffix=".number")


def _number(bound: Any) -> Any:
    """A bound given as a tensor of one number is that number."""
    return bound.item() if isinstance(bound, Tensor) and bound.numel() == 1 else bound
