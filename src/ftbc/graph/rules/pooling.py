"""Pooling and reductions. What becomes of a max-pool is decided later, by the policies of `graph/pool.py`."""

from __future__ import annotations

import operator
from typing import Any

from torch import Tensor, nn

from ftbc.graph import ops, spec
from ftbc.graph.call import Call, Refused, Value
from ftbc.graph.remedies import remedy_for
from ftbc.graph.rules.registry import RULES, Rule, dimension, rule, whole


@rule(*(kind.__name__ for kind in (*ops.AveragePool, *ops.MaxPool)))
def _layer(call: Call, module: nn.Module, x: Value) -> Any:
    return _pool(call, spec.clone(module), x)


def _average(kind: Any) -> Rule:
    def pool(call: Call, x: Value, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
             count_include_pad: bool = True, divisor_override: Any = None) -> Value:  # fmt: skip
        divisor = {} if divisor_override is None else {"divisor_override": divisor_override}
        layer = kind(whole(kernel_size), _stride(stride), whole(padding), ceil_mode, count_include_pad, **divisor)
        return _pool(call, layer, x)

    return pool


def _maximum(kind: Any) -> Rule:
    def pool(call: Call, x: Value, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
             ceil_mode: bool = False, return_indices: bool = False) -> Any:  # fmt: skip
        layer = kind(whole(kernel_size), _stride(stride), whole(padding), whole(dilation), ceil_mode=ceil_mode)
        return _pool(call, layer, x)

    return pool


def _adaptive(kind: Any) -> Rule:
    def pool(call: Call, x: Value, output_size: Any, return_indices: bool = False) -> Any:
        return _pool(call, kind(whole(output_size)), x)

    return pool


for _rank in "123":
    RULES[f"avg_pool{_rank}d"] = _average(getattr(nn, f"AvgPool{_rank}d"))
    RULES[f"adaptive_avg_pool{_rank}d"] = _adaptive(getattr(nn, f"AdaptiveAvgPool{_rank}d"))
    for _ending in ("", "_with_indices"):
        RULES[f"max_pool{_rank}d{_ending}"] = _maximum(getattr(nn, f"MaxPool{_rank}d"))
        RULES[f"adaptive_max_pool{_rank}d{_ending}"] = _adaptive(getattr(nn, f"AdaptiveMaxPool{_rank}d"))


def _pool(call: Call, layer: nn.Module, x: Value) -> Any:
    if isinstance(call.two, Tensor):
        return call.emit(layer, x)
    # Values and their indices: exported programs write it so even where nobody asks for the indices.
    if not all(user.target is operator.getitem and user.args[1] == 0 for user in call.node.users):
        raise Refused("the indices of a max-pool have no spiking counterpart; use return_indices=False")
    return call.emit(layer, x, shape=call.item(call.two[0], call.three[0])), None


def _stride(stride: Any) -> Any:
    """Exported programs write an omitted stride as an empty list."""
    return whole(stride) or None


@rule("mean", "sum")
def _reduce(call: Call, x: Value, dim: Any = None, keepdim: bool = False, axis: Any = None, dtype: Any = None) -> Value:
    dims = _dims(x, dim if axis is None else axis)
    return call.emit(ops.Reduce(dims, keepdim, mean=call.operation == "mean"), x)


@rule("amax")
def _global_maximum(call: Call, x: Value, dim: Any = (), keepdim: bool = False) -> Value:
    dims = _dims(x, dim)
    if sorted(dims) != list(range(2, x.ndim)) or len(dims) > 3:
        raise Refused(remedy_for("max"))
    ones = (x.shape[0], *[1] * len(dims))
    pooled = call.emit(getattr(nn, f"AdaptiveMaxPool{len(dims)}d")(1), x, shape=ones)
    return pooled if keepdim else call.emit(ops.Reshape(call.shape), pooled)


def _dims(x: Value, dim: Any) -> list[int]:
    dims = list(dim) if isinstance(dim, tuple | list) else [0 if dim is None else dim]
    return [dimension(d, x.ndim, "it mixes the images of a batch") for d in dims or [0]]
