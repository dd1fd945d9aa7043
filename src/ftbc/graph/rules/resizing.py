"""Upsampling, padding, and moving pixels between space and channels."""

from __future__ import annotations

from typing import Any

from torch import nn

from ftbc.graph import ops, spec
from ftbc.graph.call import Call, Refused, Value
from ftbc.graph.rules.registry import rule, whole


@rule(*(kind.__name__ for kind in ops.Rearrangement))
def _layer(call: Call, module: nn.Module, x: Value) -> Value:
    return call.emit(spec.clone(module), x)


@rule("UpsamplingNearest2d", "UpsamplingBilinear2d")
def _upsampling(call: Call, module: nn.Upsample, x: Value) -> Value:
    return call.emit(nn.Upsample(module.size, module.scale_factor, module.mode, module.align_corners), x)


@rule("interpolate", "upsample")
def _interpolate(call: Call, x: Value, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                 align_corners: Any = None, recompute_scale_factor: Any = None,
                 antialias: bool = False) -> Value:  # fmt: skip
    if antialias:
        raise Refused("antialiased resizing is not converted; use antialias=False")
    layer = nn.Upsample(whole(size), whole(scale_factor), mode, align_corners, recompute_scale_factor)
    return call.emit(layer, x)


@rule(*(f"{name}{rank}d" for name in ("upsample_nearest", "_upsample_nearest_exact") for rank in "123"))
def _exported_nearest(call: Call, x: Value, size: Any, scale_factors: Any = None) -> Value:
    mode = "nearest-exact" if "exact" in call.operation else "nearest"
    return call.emit(nn.Upsample(whole(size), whole(scale_factors), mode), x)


@rule("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d")
def _exported_linear(call: Call, x: Value, size: Any, align_corners: bool, scale_factors: Any = None) -> Value:
    mode = call.operation.removeprefix("upsample_")[:-2]
    return call.emit(nn.Upsample(whole(size), whole(scale_factors), mode, align_corners), x)


@rule("pixel_shuffle")
def _pixel_shuffle(call: Call, x: Value, upscale_factor: int) -> Value:
    return call.emit(nn.PixelShuffle(upscale_factor), x)


@rule("pixel_unshuffle")
def _pixel_unshuffle(call: Call, x: Value, downscale_factor: int) -> Value:
    return call.emit(nn.PixelUnshuffle(downscale_factor), x)


@rule("channel_shuffle", "native_channel_shuffle")
def _channel_shuffle(call: Call, x: Value, groups: int) -> Value:
    return call.emit(nn.ChannelShuffle(groups), x)


@rule("pad")
def _pad(call: Call, x: Value, pad: Any, mode: str = "constant", value: Any = None) -> Value:
    if len(pad) > 2 * (x.ndim - 1):
        raise Refused("it pads the batch; keep to the other dimensions")
    return call.emit(ops.Pad(pad, mode, 0.0 if value is None else float(value)), x)


def _register_padding_layers() -> None:
    modes = {"Zero": "constant", "Constant": "constant", "Reflection": "reflect", "Replication": "replicate",
             "Circular": "circular"}  # fmt: skip
    for word, mode in modes.items():

        @rule(*(f"{word}Pad{rank}d" for rank in "123"))
        def _module(call: Call, module: Any, x: Value, mode: str = mode) -> Value:
            return _pad(call, x, module.padding, mode, getattr(module, "value", None))


_register_padding_layers()
