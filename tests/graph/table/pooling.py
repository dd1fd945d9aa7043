"""Pooling, reductions, resizing and padding; and what changes nothing."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.graph.table.entries import conv, entry

for _name, _run in {
    "F.avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "F.avg_pool2d with settings": lambda x: F.avg_pool2d(x, 3, 2, 1, True, False),
    "F.avg_pool2d divisor": lambda x: F.avg_pool2d(x, 3, divisor_override=4),
    "F.avg_pool2d over all": lambda x: F.avg_pool2d(x, x.size()[2:]),
    "F.adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, (3, 1)),
    "F.adaptive_avg_pool2d, one side": lambda x: F.adaptive_avg_pool2d(x, (None, 2)),
    "F.max_pool2d": lambda x: F.max_pool2d(x, 2),
    "F.max_pool2d with settings": lambda x: F.max_pool2d(x, 3, 2, 1, 1, True),
    "F.max_pool2d, all positional": lambda x: F.max_pool2d(x, 3, 2, 1, 1, True, False),
    "F.max_pool2d dilated": lambda x: F.max_pool2d(x, kernel_size=2, stride=1, dilation=2),
    "torch.max_pool2d": lambda x: torch.max_pool2d(x, (2, 1)),
    "F.adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, output_size=1),
    "amax": lambda x: x.amax((2, 3)),
    "amax, kept": lambda x: torch.amax(x, dim=(-1, -2), keepdim=True),
    "mean over space": lambda x: x.mean([2, 3]),
    "mean, negative, kept": lambda x: x.mean((-2, -1), keepdim=True),
    "mean, positional keepdim": lambda x: x.mean(3, True),
    "mean twice": lambda x: x.mean(3).mean(2),
    "torch.mean": lambda x: torch.mean(x, dim=1),
    "torch.mean with axis": lambda x: torch.mean(x, axis=(2, 3)),
    "sum over channels": lambda x: x.sum(1, keepdim=True),
    "F.interpolate nearest": lambda x: F.interpolate(x, scale_factor=2),
    "F.interpolate nearest-exact": lambda x: F.interpolate(x, scale_factor=1.5, mode="nearest-exact"),
    "F.interpolate bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "F.interpolate to a size": lambda x: F.interpolate(x, size=(11, 5), mode="bilinear", align_corners=True),
    "F.interpolate to another's size": lambda x: F.interpolate(F.avg_pool2d(x, 2), size=x.shape[-2:]),
    "F.interpolate area": lambda x: F.interpolate(x, size=4, mode="area"),
    "F.interpolate bicubic": lambda x: F.interpolate(x, scale_factor=0.5, mode="bicubic"),
    "F.pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "F.pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
    "F.channel_shuffle": lambda x: F.channel_shuffle(x, 2),
    "F.pad": lambda x: F.pad(x, (1, 2, 0, 1)),
    "F.pad channels": lambda x: F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 1, 2), "constant", 0),
    "F.pad with a value": lambda x: F.pad(x, (1, 1), value=0.5),
    "F.pad negative": lambda x: F.pad(x, (-1, -2)),
    "F.pad reflect": lambda x: F.pad(x, (1, 1, 2, 2), mode="reflect"),
    "F.pad replicate": lambda x: F.pad(x, (1, 1, 2, 2), mode="replicate"),
    "F.pad circular": lambda x: F.pad(x, (1, 1, 2, 2), mode="circular"),
}.items():
    entry(_name, lambda m, x, f=_run: f(F.relu(m.a(x))), a=conv(4, 4))

for _name, _layer in {
    "AvgPool2d": nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
    "AdaptiveAvgPool2d": nn.AdaptiveAvgPool2d((1, 3)),
    "MaxPool2d": nn.MaxPool2d(3, 2, 1),
    "MaxPool2d, ceil mode": nn.MaxPool2d(3, 2, ceil_mode=True),
    "AdaptiveMaxPool2d": nn.AdaptiveMaxPool2d(2),
    "Upsample": nn.Upsample(scale_factor=2),
    "Upsample bilinear": nn.Upsample(size=(5, 7), mode="bilinear", align_corners=True),
    "UpsamplingBilinear2d": nn.UpsamplingBilinear2d(scale_factor=2),
    "UpsamplingNearest2d": nn.UpsamplingNearest2d(size=4),
    "PixelShuffle": nn.PixelShuffle(2),
    "PixelUnshuffle": nn.PixelUnshuffle(2),
    "ChannelShuffle": nn.ChannelShuffle(2),
    "ZeroPad2d": nn.ZeroPad2d((1, 0, 2, 1)),
    "ConstantPad2d": nn.ConstantPad2d(1, 0.3),
    "ReflectionPad2d": nn.ReflectionPad2d(2),
    "ReplicationPad2d": nn.ReplicationPad2d(2),
    "CircularPad2d": nn.CircularPad2d(2),
    "Identity": nn.Identity(),
    "Dropout": nn.Dropout(),
    "Dropout2d": nn.Dropout2d(),
    "AlphaDropout": nn.AlphaDropout(),
    "Flatten": nn.Flatten(),
    "Unflatten": nn.Unflatten(1, (2, 2)),
}.items():
    entry(_name, lambda m, x: m.f(F.relu(m.a(x))), a=conv(4, 4), f=_layer)

for _rank in (1, 3):
    for _kind in ("AvgPool", "MaxPool", "AdaptiveAvgPool", "AdaptiveMaxPool"):
        _layer = getattr(nn, f"{_kind}{_rank}d")(2)
        entry(f"{_kind}{_rank}d", lambda m, x: m.f(F.relu(x)), shape=(4, *[6] * _rank), f=_layer)
