"""Parts of a tensor: slices, splits, single entries."""

from __future__ import annotations

from typing import Any

from ftbc.graph import ops
from ftbc.graph.call import Call, Refused, Value, Varies
from ftbc.graph.ir import Shape
from ftbc.graph.rules.registry import dimension, rule
from ftbc.graph.rules.shapes import reshape

_ONE_IMAGE = "it picks images of the batch"


@rule("chunk", "split", "tensor_split", "split_with_sizes", "unsafe_chunk", "unsafe_split")
def _split(call: Call, x: Value, how: Any = None, dim: int = 0, **_: Any) -> tuple[Value, ...]:
    dim = dimension(dim, x.ndim, "it splits the batch")
    parts, start = [], 0
    for shape in call.shapes:
        parts.append(_cut(call, x, dim, slice(start, start + shape[dim - 1])))
        start += shape[dim - 1]
    return tuple(parts)


@rule("unbind")
def _unbind(call: Call, x: Value, dim: int = 0) -> tuple[Value, ...]:
    dim = dimension(dim, x.ndim, _ONE_IMAGE)
    return tuple(_pick(call, x, dim, index, shape) for index, shape in enumerate(call.shapes))


@rule("select")
def _select(call: Call, x: Value, dim: int, index: int) -> Value:
    dim = dimension(dim, x.ndim, _ONE_IMAGE)
    return _pick(call, x, dim, index % x.shape[dim - 1], call.shape)


@rule("narrow")
def _narrow(call: Call, x: Value, dim: int, start: int, length: int) -> Value:
    dim = dimension(dim, x.ndim, _ONE_IMAGE)
    start = start % x.shape[dim - 1]
    return _cut(call, x, dim, slice(start, start + length))


@rule("aten.slice")
def _aten_slice(call: Call, x: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Value:
    return _cut(call, x, dim % x.ndim, slice(start, end, step))


@rule("getitem")
def _getitem(call: Call, x: Any, index: Any) -> Any:
    if isinstance(x, tuple):
        return x[index]
    entries = list(index) if isinstance(index, tuple | list) else [index]
    if any(isinstance(e, bool) or not (e is None or e is Ellipsis or isinstance(e, slice | int)) for e in entries):
        raise Refused("only slices, whole numbers, None and ... can index an activation")
    if Ellipsis in entries:
        at = entries.index(Ellipsis)
        missing = x.ndim - sum(e is not None and e is not Ellipsis for e in entries)
        entries[at : at + 1] = [slice(None)] * missing
    for dim, entry in enumerate(e for e in entries if e is not None):
        if isinstance(entry, int):
            entry = entry % x.shape[dimension(dim, x.ndim, _ONE_IMAGE) - 1]
            entry = slice(entry, entry + 1)
        x = _cut(call, x, dim, entry)
    return reshape(call, x)


def _pick(call: Call, x: Value, dim: int, index: int, shape: Shape) -> Value:
    return call.emit(ops.Reshape(shape), _cut(call, x, dim, slice(index, index + 1)), shape=shape)


def _cut(call: Call, x: Value, dim: int, part: slice) -> Value:
    if dim == 0:
        end_of_batch = part.stop is None or isinstance(part.stop, Varies) or part.stop > 1 << 60
        if part.start in (None, 0) and part.step in (None, 1) and end_of_batch:
            return x
        raise Refused(_ONE_IMAGE)
    start, stop, step = part.indices(x.shape[dim - 1])
    if (start, stop, step) == (0, x.shape[dim - 1], 1):
        return x
    shape = (*x.shape[: dim - 1], len(range(start, stop, step)), *x.shape[dim:])
    return call.emit(ops.Slice(dim, start, stop, step), x, shape=shape)
