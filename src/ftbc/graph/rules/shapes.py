"""Views: other shapes and orders of the same numbers, and copies along a dimension."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ftbc.graph import ops
from ftbc.graph.call import Call, Refused, Value
from ftbc.graph.rules.arithmetic import affine
from ftbc.graph.rules.registry import rule


@rule("reshape", "view", "flatten", "unflatten", "squeeze", "unsqueeze", "_unsafe_view", "view_as", "reshape_as")
def reshape(call: Call, x: Value, *_: Any, **__: Any) -> Value:
    """The items keep their numbers and take the shape of the result."""
    return x if call.shape == x.shape else call.emit(ops.Reshape(call.shape), x)


@rule("Flatten", "Unflatten")
def _reshape_module(call: Call, module: nn.Module, x: Value) -> Value:
    return reshape(call, x)


@rule("permute")
def _permute(call: Call, x: Value, *order: Any, dims: Any = None) -> Value:
    given = order if dims is None else dims
    return _reorder(call, x, [d % x.ndim for d in _listed(given)])


@rule("transpose", "swapdims")
def _transpose(call: Call, x: Value, dim0: int, dim1: int) -> Value:
    order = list(range(x.ndim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return _reorder(call, x, order)


@rule("swapaxes")
def _swapaxes(call: Call, x: Value, axis0: int, axis1: int) -> Value:
    return _transpose(call, x, axis0, axis1)


@rule("movedim", "moveaxis")
def _movedim(call: Call, x: Value, source: Any, destination: Any) -> Value:
    # Dimension d of the probe has size d, so that the result's sizes tell the order.
    moved = torch.empty(tuple(range(x.ndim)), device="meta").movedim(source, destination)
    return _reorder(call, x, list(moved.shape))


@rule("mT")
def _matrix_transpose(call: Call, x: Value) -> Value:
    return _transpose(call, x, -1, -2)


@rule("getattr")
def _attribute(call: Call, x: Value, name: str) -> Value:
    if name == "data":
        return x
    if name == "mT":
        return _matrix_transpose(call, x)
    raise Refused(f"the attribute .{name} has no rule; use transpose or permute, or compute it outside")


def _reorder(call: Call, x: Value, order: list[int]) -> Value:
    if order[0] != 0:
        raise Refused("it moves the batch; keep the batch in dimension 0")
    return x if order == sorted(order) else call.emit(ops.Permute(order), x)


@rule("expand", "expand_as", "broadcast_to")
def _expand(call: Call, x: Value, *_: Any, **__: Any) -> Value:
    if len(call.shape) != len(x.shape):
        raise Refused("it adds dimensions in front of the batch; use unsqueeze first")
    return affine(call, x, torch.ones((1, *call.shape), dtype=call.dtype, device=call.device), 0.0)


@rule("repeat", "tile")
def _repeat(call: Call, x: Value, *counts: Any) -> Value:
    times = _listed(counts)
    if len(times) != x.ndim or times[0] != 1:
        raise Refused("it repeats the batch; give one number a dimension and 1 for the batch")
    for dim, count in enumerate(times):
        if count != 1:
            shape = tuple(size * (count if d == dim else 1) for d, size in enumerate(x.shape, 1))
            x = call.emit(ops.Concat(dim), *[x] * count, shape=shape)
    return x


def _listed(numbers: Any) -> Any:
    """Numbers given one by one or as one list."""
    return numbers[0] if isinstance(numbers[0], tuple | list) else numbers
