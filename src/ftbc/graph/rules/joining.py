"""Concatenation and stacking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ftbc.graph import ops
from ftbc.graph.call import Call, Refused, Value
from ftbc.graph.rules.arithmetic import affine
from ftbc.graph.rules.registry import dimension, rule


@rule("cat", "concat", "concatenate")
def _cat(call: Call, tensors: Sequence[Any], dim: int = 0, axis: int | None = None) -> Value:
    dim = dimension(dim if axis is None else axis, len(call.shape) + 1, "it joins along the batch")
    values = [t for t in tensors if isinstance(t, Value)]
    if len(values) == len(tensors):
        return call.emit(ops.Concat(dim), *values)
    return _cat_with_constants(call, list(tensors), dim)


@rule("stack")
def _stack(call: Call, tensors: Sequence[Any], dim: int = 0) -> Value:
    dim = dimension(dim, len(call.shape) + 1, "it stacks along the batch")
    if not all(isinstance(t, Value) for t in tensors):
        raise Refused("only tensors that come from the input can be stacked; use cat for constants")
    wide = (*call.shape[: dim - 1], 1, *call.shape[dim:])
    return call.emit(ops.Concat(dim), *[call.emit(ops.Reshape(wide), t, shape=wide) for t in tensors])


def _cat_with_constants(call: Call, tensors: list[Any], dim: int) -> Value:
    """Room for the constants is padded with zeros, and a shift fills it: shortcuts padded with zero channels."""
    own = [isinstance(t, Value) for t in tensors]
    first, last = own.index(True), len(own) - own[::-1].index(True)
    if not all(own[first:last]):
        raise Refused("a constant stands between two activations; join the activations first")
    shift = torch.zeros((1, *call.shape), dtype=call.dtype, device=call.device)
    sizes = [t.shape[dim - 1 if isinstance(t, Value) else dim] for t in tensors]
    for tensor, room in zip(tensors, shift.split(sizes, dim), strict=True):
        if isinstance(tensor, Tensor):
            room.copy_(tensor)
    x = tensors[first]
    if last - first > 1:
        joined = tuple(sum(sizes[first:last]) if d == dim else size for d, size in enumerate(call.shape, 1))
        x = call.emit(ops.Concat(dim), *tensors[first:last], shape=joined)
    # Padding is written from the last dimension backwards, so the pair for `dim` comes last.
    pad = [0] * (2 * (len(call.shape) - dim)) + [sum(sizes[:first]), sum(sizes[last:])]
    return affine(call, call.emit(ops.Pad(pad), x), 1.0, shift)
