"""A module as plain data and back: its type's name and the arguments that rebuild it, without its tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn

from ftbc.errors import FileError
from ftbc.graph import ops

M = TypeVar("M", bound=nn.Module)

_CONVOLUTION = (
    "in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode"
)  # fmt: skip
_POOL = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")

# Which attributes of a module are its constructor's arguments. Nothing outside this table is ever built.
_ARGUMENTS: dict[type[nn.Module], tuple[str, ...]] = {
    **dict.fromkeys(ops.Convolution, _CONVOLUTION),
    **dict.fromkeys(ops.TransposedConvolution, (*_CONVOLUTION, "output_padding")),
    nn.Linear: ("in_features", "out_features"),
    nn.AvgPool1d: _POOL,
    nn.AvgPool2d: (*_POOL, "divisor_override"),
    nn.AvgPool3d: (*_POOL, "divisor_override"),
    **dict.fromkeys((nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d), (*_POOL[:4], "dilation")),
    **dict.fromkeys((nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d), ("output_size",)),
    **dict.fromkeys((nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d), ("output_size",)),
    nn.Upsample: ("size", "scale_factor", "mode", "align_corners", "recompute_scale_factor"),
    nn.PixelShuffle: ("upscale_factor",),
    nn.PixelUnshuffle: ("downscale_factor",),
    nn.ChannelShuffle: ("groups",),
    nn.Softmax: ("dim",),
    nn.LogSoftmax: ("dim",),
    nn.Sigmoid: (),
    nn.Tanh: (),
    ops.Activation: ("upper",),
    ops.Staircase: ("upper", "levels", "slope", "clip_shift", "step_shift"),
    ops.Sum: ("weights",),
    ops.Affine: (),
    ops.Concat: ("dim",),
    ops.Reshape: ("shape",),
    ops.Permute: ("dims",),
    ops.Reduce: ("dims", "keepdim", "mean"),
    ops.Grid: ("step",),
    ops.Slice: ("dim", "start", "stop", "step"),
    ops.Pad: ("pad", "mode", "value"),
}
_BY_NAME = {kind.__name__: kind for kind in _ARGUMENTS}


def register(*arguments: str) -> Callable[[type[M]], type[M]]:
    """Class decorator: let modules of this type appear in saved graphs, rebuilt from these arguments."""

    def enter(kind: type[M]) -> type[M]:
        _ARGUMENTS[kind] = arguments
        _BY_NAME[kind.__name__] = kind
        return kind

    return enter


def known(module: nn.Module) -> bool:
    """Whether a module can be described by `describe`."""
    return type(module) in _ARGUMENTS


def describe(module: nn.Module) -> dict[str, Any]:
    """``{"type": ..., arguments...}`` of JSON values; `rebuild` gives a module alike with tensors unset."""
    text: dict[str, Any] = {"type": type(module).__name__}
    for name in _ARGUMENTS[type(module)]:
        text[name] = getattr(module, name)
    if isinstance(module, ops.Synapses):
        text["bias"] = module.bias is not None
    return text


def rebuild(text: dict[str, Any], tensors: dict[str, torch.Tensor]) -> nn.Module:
    """The module of a description with these parameters and buffers; anything unknown is refused."""
    arguments = dict(text)
    kind = _BY_NAME.get(str(arguments.pop("type", None)))
    if kind is None:
        raise FileError(
            f"the file asks for an operation of type {text.get('type')!r}, which this version does not know"
        )
    expected = {*_ARGUMENTS[kind], *({"bias"} if issubclass(kind, ops.Synapses) else ())}
    if set(arguments) != expected:
        raise FileError(
            f"an operation {kind.__name__} of the file has arguments {sorted(arguments)}, not {sorted(expected)}"
        )
    arguments = {name: tuple(value) if isinstance(value, list) else value for name, value in arguments.items()}
    if kind is ops.Affine:
        arguments = {"scale": torch.empty(0), "shift": torch.empty(0)}
    # On the meta device: the sizes come from the file, so nothing is allocated until they are checked.
    try:
        with torch.device("meta"):
            module = kind(**arguments)
    except (TypeError, ValueError, RuntimeError) as error:
        raise FileError(f"an operation {kind.__name__} of the file cannot be built: {error}") from error
    own = {**dict(module.named_parameters()), **{k: b for k, b in module.named_buffers() if b is not None}}
    missing = set(own) - set(tensors) - module._non_persistent_buffers_set
    if missing or set(tensors) - set(own):
        raise FileError(f"an operation {kind.__name__} of the file lacks or exceeds its tensors: has {sorted(tensors)}")
    for name, tensor in tensors.items():
        free_size = own[name].numel() == 0 and kind not in ops.Synapses
        if not free_size and own[name].shape != tensor.shape:
            raise FileError(
                f"tensor '{name}' of an operation {kind.__name__} has shape {tuple(tensor.shape)}, "
                f"but its description asks for {tuple(own[name].shape)}"
            )
        if isinstance(own[name], nn.Parameter):
            module._parameters[name] = nn.Parameter(tensor, requires_grad=False)
        else:
            module._buffers[name] = tensor
    return module.eval()


def clone(module: nn.Module) -> nn.Module:
    """A copy with its own tensors and nothing else: no hooks, no training state, no gradients."""
    return rebuild(describe(module), {name: t.detach().clone() for name, t in module.state_dict().items()})
