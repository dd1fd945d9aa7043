"""What each node of a NIR file computes, as a module of ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ftbc.errors import FileError
from ftbc.graph.ops import Affine, Reshape


def kind_of(node: Any) -> str:
    """The name of a node's type, such as "Conv2d"."""
    return type(node).__name__


def module_of(node: Any) -> nn.Module:
    """The module of a node without state; what we do not write is refused."""
    kind = kind_of(node)
    if kind in ("Conv1d", "Conv2d"):
        return _convolution(node)
    if kind in ("Affine", "Linear"):
        return _linear(node)
    if kind == "Scale":
        return _scale(node)
    if kind in ("AvgPool2d", "SumPool2d"):
        size, stride, padding = (_whole(value) for value in (node.kernel_size, node.stride, node.padding))
        return nn.AvgPool2d(size, stride, padding, divisor_override=1 if kind == "SumPool2d" else None)  # type: ignore[arg-type]
    if kind == "Flatten":
        return Reshape([int(size) for size in node.output_type["output"]])
    raise FileError(f"it has a node of the kind {kind}, which ftbc does not write")


def by_channel(values: Tensor) -> Tensor:
    """``[N, C, ...]`` without the entries for each pixel, ``[N, C]``, where these are all the same."""
    if values.ndim < 3:
        return values
    first = values.flatten(2)[:, :, :1]
    return first.squeeze(2) if bool((values.flatten(2) == first).all()) else values


def _convolution(node: Any) -> nn.Module:
    weight, bias = _tensor(node.weight), _tensor(node.bias)
    kind = nn.Conv1d if weight.ndim == 3 else nn.Conv2d
    groups = int(node.groups)
    module = kind(
        weight.shape[1] * groups, weight.shape[0], tuple(weight.shape[2:]), _whole(node.stride), _whole(node.padding),
        _whole(node.dilation), groups, device="meta",
    )  # type: ignore[arg-type]  # fmt: skip
    return _with(module, weight, bias)


def _linear(node: Any) -> nn.Module:
    weight = _tensor(node.weight)
    bias = _tensor(node.bias) if kind_of(node) == "Affine" else None
    return _with(nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta"), weight, bias)


def _with(module: nn.Module, weight: Tensor, bias: Tensor | None) -> nn.Module:
    module.weight = nn.Parameter(weight, requires_grad=False)
    module.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)
    return module.eval()


def _scale(node: Any) -> Affine:
    scale = _tensor(node.scale).unsqueeze(0)
    factors = by_channel(scale)
    factors = factors.view(*factors.shape, *[1] * (scale.ndim - factors.ndim))
    return Affine(factors, torch.zeros((1,) * scale.ndim, dtype=scale.dtype))


def _tensor(values: Any) -> Tensor:
    found = torch.from_numpy(np.array(values))
    if found.dtype not in (torch.float32, torch.float64):
        raise FileError(f"it holds numbers of the kind {found.dtype}")
    return found


def _whole(value: Any) -> Any:
    numbers = np.asarray(value)
    return int(numbers) if numbers.ndim == 0 else tuple(int(number) for number in numbers)
