"""The rules of `canonical`: what each operation of PyTorch is in a clean graph, under every name it goes by."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ftbc.graph import ops, spec
from ftbc.graph.canonical import VARIES, Call, Refused, Value
from ftbc.graph.remedies import remedy_for

RULES: dict[str, Callable[..., Any]] = {}
__all__ = ["RULES", "remedy_for"]


def rule(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function for operations of these names (functions, methods, module types)."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        RULES.update(dict.fromkeys(names, function))
        return function

    return enter


def _needs(kind: type, value: Any, why: str) -> Any:
    if not isinstance(value, kind):
        raise Refused(why)
    return value


# ---- layers with weights ---------------------------------------------------------------------------------


@rule(*(kind.__name__ for kind in (*ops.Synapses, *ops.AveragePool, *ops.MaxPool, *ops.Rearrangement)))
def _layer(call: Call, module: nn.Module, x: Value, *_: Any) -> Value:
    if getattr(module, "return_indices", False):
        raise Refused("max-pool with return_indices has no spiking counterpart; use return_indices=False")
    return call.emit(spec.clone(module), x)


@rule("NonDynamicallyQuantizableLinear")
def _plain_linear(call: Call, module: nn.Linear, x: Value) -> Value:
    return linear(call, x, module.weight, module.bias)


@rule("linear")
def linear(call: Call, x: Value, weight: Any, bias: Any = None) -> Value:
    weight = _needs(Tensor, weight, remedy_for("matmul"))
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias is not None, dtype=weight.dtype, device=weight.device)
    return call.emit(_with_tensors(layer, weight, bias), x)


@rule("matmul", "mm")
def _matmul(call: Call, x: Any, weight: Any) -> Value:
    if not isinstance(x, Value) or not isinstance(weight, Tensor) or weight.ndim != 2:
        raise Refused(remedy_for("matmul"))
    return linear(call, x, weight.T.contiguous())


@rule("addmm")
def _addmm(call: Call, bias: Any, x: Any, weight: Any) -> Value:
    if not isinstance(x, Value) or not isinstance(weight, Tensor) or not isinstance(bias, Tensor):
        raise Refused(remedy_for("matmul"))
    return linear(call, x, weight.T.contiguous(), bias.expand(weight.shape[1]))


def _convolution(kind: type[nn.Module]) -> Callable[..., Value]:
    def convolve(call: Call, x: Value, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1) -> Value:  # fmt: skip
        weight = _needs(Tensor, weight, remedy_for("matmul"))
        layer = kind(weight.shape[1] * groups, weight.shape[0], tuple(weight.shape[2:]), _whole(stride),
                     _whole(padding), _whole(dilation), groups, bias is not None, dtype=weight.dtype,
                     device=weight.device)  # fmt: skip
        return call.emit(_with_tensors(layer, weight, bias), x)

    return convolve


def _transposed(kind: type[nn.Module]) -> Callable[..., Value]:
    def convolve(call: Call, x: Value, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
                 output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Value:  # fmt: skip
        weight = _needs(Tensor, weight, remedy_for("matmul"))
        layer = kind(weight.shape[0], weight.shape[1] * groups, tuple(weight.shape[2:]), _whole(stride),
                     _whole(padding), _whole(output_padding), groups, bias is not None, _whole(dilation),
                     dtype=weight.dtype, device=weight.device)  # fmt: skip
        return call.emit(_with_tensors(layer, weight, bias), x)

    return convolve


for _rank, _kind, _transposed_kind in zip("123", ops.Convolution, ops.TransposedConvolution, strict=True):
    RULES[f"conv{_rank}d"] = _convolution(_kind)
    RULES[f"conv_transpose{_rank}d"] = _transposed(_transposed_kind)


def _with_tensors(layer: nn.Module, weight: Tensor, bias: Any) -> nn.Module:
    layer.weight = nn.Parameter(weight.detach().clone(), requires_grad=False)
    if bias is not None:
        layer.bias = nn.Parameter(_needs(Tensor, bias, remedy_for("matmul")).detach().clone(), requires_grad=False)
    return layer


def _whole(setting: Any) -> Any:
    """A number, or a tuple of numbers: exported programs write lists."""
    return tuple(setting) if isinstance(setting, list | tuple) else setting


# ---- normalisation becomes an affine map -----------------------------------------------------------------


@rule("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")
def _batch_norm_module(call: Call, module: nn.BatchNorm2d, x: Value) -> Value:
    return batch_norm(call, x, module.running_mean, module.running_var, module.weight, module.bias, eps=module.eps)


@rule("batch_norm")
def batch_norm(call: Call, x: Value, mean: Any, var: Any, weight: Any = None, bias: Any = None,
               training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Value:  # fmt: skip
    if mean is None or var is None or training:
        raise Refused("it uses the statistics of each batch; train with track_running_stats=True")
    # In float64 and rounded once: thousands of spikes are multiplied with the result.
    deviation = torch.sqrt(var.detach().double() + eps)
    scale = (1.0 if weight is None else weight.detach().double()) / deviation
    shift = (0.0 if bias is None else bias.detach().double()) - mean.detach().double() * scale
    shape = (1, -1, *[1] * (len(x.shape) - 1))
    return call.emit(ops.Affine(scale.to(mean.dtype).view(shape), shift.to(mean.dtype).view(shape)), x)


@rule("aten.batch_norm")
def _aten_batch_norm(call: Call, x: Value, weight: Any, bias: Any, mean: Any, var: Any, training: bool,
                     momentum: float, eps: float, _: bool = False) -> Value:  # fmt: skip
    return batch_norm(call, x, mean, var, weight, bias, training, momentum, eps)


# ---- activations -----------------------------------------------------------------------------------------


@rule("relu", "relu_")
def relu(call: Call, x: Value, inplace: bool = False) -> Value:
    return call.emit(ops.Activation(), x)


@rule("relu6", "relu6_")
def relu6(call: Call, x: Value, inplace: bool = False) -> Value:
    return call.emit(ops.Activation(6.0), x)


@rule("hardtanh", "hardtanh_", "clamp", "clamp_", "clip", "clip_")
def clamp(call: Call, x: Value, min: Any = None, max: Any = None, inplace: bool = False, **names: Any) -> Value:
    low, high = names.get("min_val", min), names.get("max_val", max)
    if isinstance(low, Tensor) or isinstance(high, Tensor) or low != 0 or (high is not None and not high > 0):
        raise Refused(f"only clamps from 0 to a positive bound convert, this one runs from {low} to {high}")
    return call.emit(ops.Activation(None if high is None or math.isinf(high) else float(high)), x)


@rule("clamp_min", "clamp_min_")
def _clamp_min(call: Call, x: Value, min: Any) -> Value:
    return clamp(call, x, min)


@rule("maximum", "max")
def _maximum(call: Call, x: Value, other: Any, **_: Any) -> Value:
    if not isinstance(x, Value) or not isinstance(other, Tensor) or bool((other != 0).any()):
        raise Refused(remedy_for("max"))
    return call.emit(ops.Activation(), x)


@rule("threshold", "threshold_")
def _threshold(call: Call, x: Value, threshold: float, value: float, inplace: bool = False) -> Value:
    if threshold != 0 or value != 0:
        raise Refused(remedy_for("threshold"))
    return call.emit(ops.Activation(), x)


@rule("ReLU")
def _relu_module(call: Call, module: nn.Module, x: Value) -> Value:
    return relu(call, x)


@rule("ReLU6", "Hardtanh")
def _hardtanh_module(call: Call, module: nn.Hardtanh, x: Value) -> Value:
    return clamp(call, x, module.min_val, module.max_val)


@rule("Threshold")
def _threshold_module(call: Call, module: nn.Threshold, x: Value) -> Value:
    return _threshold(call, x, module.threshold, module.value)


@rule("Activation")
def _own_activation(call: Call, module: nn.Module, x: Value) -> Value:
    return call.emit(spec.clone(module), x)


# ---- functions that may only come last -------------------------------------------------------------------


@rule("softmax", "log_softmax", "Softmax", "LogSoftmax", "Softmax2d", "sigmoid", "Sigmoid")
def _head(call: Call, first: Any, *rest: Any, dim: Any = None, **_: Any) -> Value:
    module = first if isinstance(first, nn.Module) else None
    x = rest[0] if module is not None else first
    if not call.is_last:
        raise Refused(remedy_for(call.operation))
    if "igmoid" in call.operation:
        call.cleaned.head = nn.Sigmoid()
        return x
    dim = getattr(module, "dim", 1) if module is not None else (rest[0] if rest else dim)
    dim = (1 if dim is None else dim) % (len(x.shape) + 1)
    if dim == 0:
        raise Refused("it mixes the images of a batch")
    call.cleaned.head = nn.LogSoftmax(dim) if "og" in call.operation else nn.Softmax(dim)
    return x


# ---- pooling and resizing --------------------------------------------------------------------------------


def _pool(kind: type[nn.Module]) -> Callable[..., Value]:
    def pool(call: Call, x: Value, *settings: Any, **named: Any) -> Value:
        if named.pop("return_indices", False):
            raise Refused("max-pool with return_indices has no spiking counterpart; use return_indices=False")
        settings = tuple(_whole(s) for s in settings)
        if settings[1:2] == ((),):  # exported programs write an omitted stride as an empty list
            settings = (settings[0], None, *settings[2:])
        if "Max" in kind.__name__ and "Adaptive" not in kind.__name__ and len(settings) == 5:
            named["ceil_mode"] = settings[4]  # nn.MaxPool has return_indices in the function's fifth place
            settings = settings[:4]
        return call.emit(kind(*settings, **{name: _whole(value) for name, value in named.items()}), x)

    return pool


for _kind in (*ops.AveragePool, *ops.MaxPool):
    _words = _kind.__name__.replace("Adaptive", "adaptive_").replace("Avg", "avg_").replace("Max", "max_")
    RULES[_words.replace("Pool", "pool")] = _pool(_kind)


@rule("UpsamplingNearest2d", "UpsamplingBilinear2d")
def _upsampling(call: Call, module: nn.Upsample, x: Value) -> Value:
    return call.emit(nn.Upsample(module.size, module.scale_factor, module.mode, module.align_corners), x)


@rule("interpolate", "upsample")
def _interpolate(call: Call, x: Value, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                 align_corners: Any = None, recompute_scale_factor: Any = None, antialias: bool = False) -> Value:  # fmt: skip
    if antialias:
        raise Refused("antialiased resizing is not converted; use antialias=False")
    return call.emit(
        nn.Upsample(_whole(size), _whole(scale_factor), mode, align_corners, recompute_scale_factor), x
    )


@rule("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d")
def _aten_nearest(call: Call, x: Value, size: Any = None, scale_factors: Any = None) -> Value:
    return call.emit(nn.Upsample(_whole(size), _whole(scale_factors)), x)


@rule("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d")
def _aten_linear(call: Call, x: Value, size: Any, align_corners: bool, scale_factors: Any = None) -> Value:
    mode = call.operation.removeprefix("upsample_")[:-2]
    return call.emit(nn.Upsample(_whole(size), _whole(scale_factors), mode, align_corners), x)


@rule("pixel_shuffle", "pixel_unshuffle", "channel_shuffle")
def _shuffle(call: Call, x: Value, factor: int) -> Value:
    kinds = {"pixel_shuffle": nn.PixelShuffle, "pixel_unshuffle": nn.PixelUnshuffle}
    return call.emit(kinds.get(call.operation, nn.ChannelShuffle)(factor), x)


@rule("mean", "sum")
def _reduce(call: Call, x: Value, dim: Any = None, keepdim: bool = False, **names: Any) -> Value:
    dim = names.get("axis", dim)
    dims = [d % (len(x.shape) + 1) for d in (dim if isinstance(dim, tuple | list) else [0 if dim is None else dim])]
    if 0 in dims:
        raise Refused("it mixes the images of a batch; reduce over other dimensions")
    return call.emit(ops.Reduce(dims, keepdim, mean=call.operation == "mean"), x)


@rule("pad")
def _pad(call: Call, x: Value, pad: Any, mode: str = "constant", value: Any = None) -> Value:
    return call.emit(ops.Pad(pad, mode, 0.0 if value is None else float(value)), x)


@rule(*(f"{mode}Pad{rank}d" for mode in ("Zero", "Constant", "Reflection", "Replication", "Circular") for rank in "123"))
def _pad_module(call: Call, module: Any, x: Value) -> Value:
    mode = {"R": "reflect" if "Reflection" in call.operation else "replicate"}.get(call.operation[0], "constant")
    mode = "circular" if call.operation.startswith("Circular") else mode
    return _pad(call, x, module.padding, mode, getattr(module, "value", 0.0))


# ---- arithmetic ------------------------------------------------------------------------------------------


@rule("add", "iadd", "add_")
def _add(call: Call, a: Any, b: Any, alpha: float = 1.0) -> Value:
    return _combine(call, a, 1.0, b, alpha)


@rule("sub", "isub", "sub_", "subtract")
def _sub(call: Call, a: Any, b: Any, alpha: float = 1.0) -> Value:
    return _combine(call, a, 1.0, b, -alpha)


@rule("rsub")
def _rsub(call: Call, a: Any, b: Any, alpha: float = 1.0) -> Value:
    return _combine(call, b, 1.0, a, -alpha)


def _combine(call: Call, a: Any, weight_a: float, b: Any, weight_b: float) -> Value:
    if isinstance(a, Value) and isinstance(b, Value):
        return call.emit(ops.Sum((weight_a, weight_b)), a, b)
    x, scale, constant, weight = (a, weight_a, b, weight_b) if isinstance(a, Value) else (b, weight_b, a, weight_a)
    return _affine(call, x, scale, _constant(call, constant, x) * weight)


@rule("mul", "imul", "mul_", "multiply")
def _mul(call: Call, a: Any, b: Any) -> Value:
    if isinstance(a, Value) and isinstance(b, Value):
        raise Refused(remedy_for("mul"))
    x, constant = (a, b) if isinstance(a, Value) else (b, a)
    return _affine(call, x, _constant(call, constant, x), 0.0)


@rule("truediv", "itruediv", "div", "div_", "true_divide")
def _div(call: Call, a: Any, b: Any, rounding_mode: Any = None) -> Value:
    if not isinstance(a, Value) or isinstance(b, Value) or rounding_mode is not None:
        raise Refused(remedy_for("div"))
    return _affine(call, a, 1.0 / _constant(call, b, a), 0.0)


@rule("neg", "negative")
def _neg(call: Call, x: Value) -> Value:
    return _affine(call, x, -1.0, 0.0)


def _constant(call: Call, constant: Any, x: Value) -> Tensor:
    """A constant operand with as many dimensions as a batch of ``x``; it must not differ between items."""
    if constant is VARIES:
        raise Refused("it depends on the batch size")
    like = call.result
    value = torch.as_tensor(constant, dtype=like.dtype).detach()
    value = value.reshape((1,) * (len(x.shape) + 1 - value.ndim) + tuple(value.shape))
    if value.ndim > len(x.shape) + 1 or value.shape[0] != 1:
        raise Refused("the constant has an entry for each image of the batch")
    return value


def _affine(call: Call, x: Value, scale: Any, shift: Any) -> Value:
    ones = torch.ones((1,) * (len(x.shape) + 1), dtype=call.result.dtype)
    device = next((t.device for t in (scale, shift) if isinstance(t, Tensor)), ones.device)
    return call.emit(ops.Affine((ones.to(device) * scale).contiguous(), (ones.to(device) * shift).contiguous()), x)


# ---- joining, cutting and rearranging --------------------------------------------------------------------


@rule("cat", "concat", "concatenate")
def _cat(call: Call, tensors: Any, dim: int = 0, **names: Any) -> Value:
    dim = names.get("axis", dim) % (len(call.shape_of(call.result)) + 1)
    if dim == 0 or not all(isinstance(t, Value) for t in tensors):
        raise Refused("only tensors that come from the input can be joined, and not along the batch")
    return call.emit(ops.Concat(dim), *tensors)


@rule("stack")
def _stack(call: Call, tensors: Any, dim: int = 0) -> Value:
    dim = dim % (len(call.shape_of(call.result)) + 1)
    if dim == 0 or not all(isinstance(t, Value) for t in tensors):
        raise Refused("only tensors that come from the input can be stacked, and not along the batch")
    wide = tensors[0].shape[: dim - 1] + (1,) + tensors[0].shape[dim - 1 :]
    return call.emit(ops.Concat(dim), *[call.emit(ops.Reshape(wide), t, shape=wide) for t in tensors])


@rule("reshape", "view", "flatten", "unflatten", "squeeze", "unsqueeze", "Flatten", "Unflatten", "_unsafe_view")
def _reshape(call: Call, *args: Any, **_: Any) -> Value:
    x = next(a for a in args if isinstance(a, Value))
    shape = call.shape_of(call.result)
    return x if shape == x.shape else call.emit(ops.Reshape(shape), x)


@rule("permute")
def _permute(call: Call, x: Value, *dims: Any, **names: Any) -> Value:
    dims = names.get("dims", dims)
    order = [d % (len(x.shape) + 1) for d in (dims[0] if isinstance(dims[0], tuple | list) else dims)]
    return _reorder(call, x, order)


@rule("transpose", "swapaxes", "swapdims")
def _transpose(call: Call, x: Value, a: int, b: int) -> Value:
    order = list(range(len(x.shape) + 1))
    order[a], order[b] = order[b], order[a]
    return _reorder(call, x, order)


@rule("movedim", "moveaxis")
def _movedim(call: Call, x: Value, source: Any, destination: Any) -> Value:
    marks = torch.empty(range(2, len(x.shape) + 3), device="meta").movedim(source, destination)
    return _reorder(call, x, [size - 2 for size in marks.shape])


def _reorder(call: Call, x: Value, order: list[int]) -> Value:
    if order[0] != 0:
        raise Refused("it moves the batch; keep the batch in dimension 0")
    return x if order == sorted(order) else call.emit(ops.Permute(order), x)


@rule("chunk", "split", "tensor_split", "split_with_sizes", "unsafe_chunk")
def _split(call: Call, x: Value, _: Any = None, dim: int = 0, **__: Any) -> tuple[Value, ...]:
    dim = dim % (len(x.shape) + 1)
    if dim == 0:
        raise Refused("it splits the batch; split other dimensions")
    parts, start = [], 0
    for part in call.result:
        stop = start + part.shape[dim]
        parts.append(call.emit(ops.Slice(dim, start, stop), x, shape=call.shape_of(part)))
        start = stop
    return tuple(parts)


@rule("unbind")
def _unbind(call: Call, x: Value, dim: int = 0) -> tuple[Value, ...]:
    return tuple(_select(call, x, dim, i, part) for i, part in enumerate(call.result))


@rule("select")
def _select(call: Call, x: Value, dim: int, index: int, result: Tensor | None = None) -> Value:
    dim = dim % (len(x.shape) + 1)
    if dim == 0:
        raise Refused("it picks one image of the batch")
    index = index % x.shape[dim - 1]
    wide = x.shape[: dim - 1] + (1,) + x.shape[dim:]
    cut = call.emit(ops.Slice(dim, index, index + 1), x, shape=wide)
    return call.emit(ops.Reshape(shape := call.shape_of(call.result if result is None else result)), cut, shape=shape)


@rule("narrow")
def _narrow(call: Call, x: Value, dim: int, start: int, length: int) -> Value:
    return _cut(call, x, dim % (len(x.shape) + 1), slice(start, start + length), call.shape_of(call.result))


@rule("aten.slice")
def _aten_slice(call: Call, x: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Value:
    return _cut(call, x, dim % (len(x.shape) + 1), slice(start, end, step), call.shape_of(call.result))


@rule("getitem")
def _getitem(call: Call, x: Any, index: Any) -> Any:
    if isinstance(x, tuple):
        return x[index]
    index = index if isinstance(index, tuple) else (index,)
    if any(not isinstance(i, slice | int) and i is not None and i is not Ellipsis for i in index):
        raise Refused("only slices, whole numbers, None and ... can index an activation")
    if Ellipsis in index:
        at = index.index(Ellipsis)
        missing = len(x.shape) + 1 - sum(i is not None and i is not Ellipsis for i in index)
        index = index[:at] + (slice(None),) * missing + index[at + 1 :]
    dim, shape = 0, list(x.shape)
    for entry in index:
        if entry is None:
            continue
        if dim == 0 and entry != slice(None):
            raise Refused("it picks images of the batch")
        if dim > 0 and isinstance(entry, int):
            entry = slice(entry % shape[dim - 1], entry % shape[dim - 1] + 1)
        if dim > 0:
            shape[dim - 1] = len(range(*entry.indices(shape[dim - 1])))
            x = _cut(call, x, dim, entry, tuple(shape))
        dim += 1
    return _reshape(call, x)


def _cut(call: Call, x: Value, dim: int, part: slice, shape: tuple[int, ...]) -> Value:
    if dim == 0:
        if part.start in (None, 0) and (part.stop is None or part.stop is VARIES or part.stop > 1 << 60):
            return x
        raise Refused("it picks images of the batch")
    start, stop, step = part.indices(x.shape[dim - 1])
    if (start, stop, step) == (0, x.shape[dim - 1], 1):
        return x
    return call.emit(ops.Slice(dim, start, stop, step), x, shape=shape)


# ---- what changes nothing --------------------------------------------------------------------------------


@rule("contiguous", "clone", "detach", "alias", "identity", "dropout", "dropout1d", "dropout2d", "dropout3d",
      "dropout_", "alpha_dropout", "feature_dropout", "float", "double", "to", "type", "requires_grad_", "lift_fresh_copy", "_assert_tensor_metadata")  # fmt: skip
def _nothing(call: Call, x: Value, *args: Any, **names: Any) -> Value:
    if "dropout" in call.operation and (names.get("training", args[1] if len(args) > 1 else True)):
        raise Refused("this dropout stays active in evaluation; pass training=self.training")
    return x


@rule("Identity", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout")
def _nothing_module(call: Call, module: nn.Module, x: Value) -> Value:
    return x
