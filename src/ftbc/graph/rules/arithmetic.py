"""Sums of branches, and sums and products with constants."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ftbc.graph import ops
from ftbc.graph.call import Call, Refused, Value, Varies
from ftbc.graph.remedies import remedy_for
from ftbc.graph.rules.registry import rule


@rule("add", "iadd", "add_")
def _add(call: Call, a: Any, other: Any, alpha: float = 1.0) -> Value:
    return _combine(call, a, 1.0, other, alpha)


@rule("sub", "isub", "sub_", "subtract", "subtract_")
def _sub(call: Call, a: Any, other: Any, alpha: float = 1.0) -> Value:
    return _combine(call, a, 1.0, other, -alpha)


@rule("rsub")
def _rsub(call: Call, a: Any, other: Any, alpha: float = 1.0) -> Value:
    return _combine(call, other, 1.0, a, -alpha)


@rule("mul", "imul", "mul_", "multiply", "multiply_")
def _mul(call: Call, a: Any, other: Any) -> Value:
    if isinstance(a, Value) and isinstance(other, Value):
        raise Refused(remedy_for("mul"))
    x, constant = (a, other) if isinstance(a, Value) else (other, a)
    return affine(call, x, _constant(call, constant, x), 0.0)


@rule("truediv", "itruediv", "div", "div_", "divide", "divide_", "true_divide", "true_divide_")
def _div(call: Call, a: Any, other: Any, rounding_mode: Any = None) -> Value:
    if not isinstance(a, Value) or isinstance(other, Value) or rounding_mode is not None:
        raise Refused(remedy_for("div"))
    return affine(call, a, 1.0 / _constant(call, other, a), 0.0)


@rule("neg", "negative", "neg_", "negative_")
def _neg(call: Call, x: Value) -> Value:
    return affine(call, x, -1.0, 0.0)


def _combine(call: Call, a: Any, weight_a: float, b: Any, weight_b: float) -> Value:
    if isinstance(a, Value) and isinstance(b, Value):
        return call.emit(ops.Sum((weight_a, weight_b)), a, b)
    x, scale, constant, weight = (a, weight_a, b, weight_b) if isinstance(a, Value) else (b, weight_b, a, weight_a)
    return affine(call, x, scale, _constant(call, constant, x) * weight)


def affine(call: Call, x: Value, scale: Any, shift: Any, suffix: str = "") -> Value:
    """``scale * x + shift``; a map that changes nothing is left out."""
    ones = torch.ones((1,) * x.ndim, dtype=call.dtype, device=call.device)
    scale, shift = (ones * scale).contiguous(), (ones * shift).contiguous()
    if call.shape == x.shape and bool((scale == 1).all()) and bool((shift == 0).all()):
        return x
    return call.emit(ops.Affine(scale, shift), x, suffix=suffix)


def _constant(call: Call, constant: Any, x: Value) -> Tensor:
    """A constant operand with as many dimensions as a batch of ``x``; it must not differ between items."""
    if isinstance(constant, Varies):
        raise Refused("it depends on the batch size")
    value = torch.as_tensor(constant, dtype=call.dtype, device=call.device).detach()
    value = value.reshape((1,) * (x.ndim - value.ndim) + tuple(value.shape))
    if value.ndim > x.ndim or value.shape[0] != 1:
        raise Refused("the constant has an entry for each image of the batch")
    return value
