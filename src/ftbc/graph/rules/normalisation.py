"""Batch normalisation in evaluation is an affine map; `fold` then puts it into the weights beside it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ftbc.graph import ops
from ftbc.graph.call import Call, Refused, Value
from ftbc.graph.rules.registry import rule


@rule("batch_norm")
def batch_norm(call: Call, x: Value, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None,
               training: bool = False, momentum: Any = 0.1, eps: float = 1e-5) -> Value:  # fmt: skip
    """``(x - mean) / sqrt(var + eps) * weight + bias`` with constants."""
    if training or not isinstance(running_mean, Tensor) or not isinstance(running_var, Tensor):
        raise Refused("it uses the statistics of each batch; train with track_running_stats=True")
    # In float64 and rounded once: thousands of spikes are multiplied with the result.
    deviation = torch.sqrt(running_var.detach().double() + eps)
    scale = (1.0 if weight is None else weight.detach().double()) / deviation
    shift = (0.0 if bias is None else bias.detach().double()) - running_mean.detach().double() * scale
    shape = (1, -1, *[1] * (x.ndim - 2))
    return call.emit(ops.Affine(scale.to(call.dtype).view(shape), shift.to(call.dtype).view(shape)), x)


@rule("aten.batch_norm")
def _aten_batch_norm(call: Call, x: Value, weight: Any, bias: Any, running_mean: Any, running_var: Any,
                     training: bool, momentum: float, eps: float, *_: Any) -> Value:  # fmt: skip
    return batch_norm(call, x, running_mean, running_var, weight, bias, training, momentum, eps)


@rule("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")
def _module(call: Call, module: nn.BatchNorm2d, x: Value) -> Value:
    return batch_norm(call, x, module.running_mean, module.running_var, module.weight, module.bias, eps=module.eps)
