"""MobileNet v2 (Sandler et al. 2018): inverted residuals, with the names of the public weights of torchvision."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ftbc.zoo.parts import Activation, check_width, initialise, norm

_BLOCKS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""(expansion, output channels at width 1, number of blocks, stride of the first) as in table 2 of the paper."""


class InvertedResidual(nn.Module):
    """Expansion, depthwise convolution, and a projection that no activation follows."""

    def __init__(
        self, channels: int, out: int, stride: int, expansion: int, batch_norm: bool, activation: Activation
    ) -> None:
        super().__init__()
        inner = channels * expansion
        layers: list[nn.Module] = []
        if expansion > 1:
            layers.append(_layer(channels, inner, 1, 1, 1, batch_norm, activation))
        layers.append(_layer(inner, inner, 3, stride, inner, batch_norm, activation))
        self.conv = nn.Sequential(*layers, nn.Conv2d(inner, out, 1, bias=not batch_norm), norm(out, batch_norm))
        self.has_shortcut = stride == 1 and channels == out

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.has_shortcut else self.conv(x)


class MobileNetV2(nn.Module):
    """Stem, 17 inverted residuals, a last pointwise convolution, global average pooling, one linear layer."""

    def __init__(
        self,
        *,
        width: float = 1.0,
        classes: int = 1000,
        dropout: float = 0.2,
        batch_norm: bool = True,
        activation: Activation = nn.ReLU6,
        zero_residual: bool = False,
    ) -> None:
        super().__init__()
        check_width(width)
        channels = _in_eights(32 * width)
        layers: list[nn.Module] = [_layer(3, channels, 3, 2, 1, batch_norm, activation)]
        for expansion, out, count, stride in _BLOCKS:
            for block in range(count):
                first = stride if not block else 1
                layers.append(
                    InvertedResidual(channels, _in_eights(out * width), first, expansion, batch_norm, activation)
                )
                channels = _in_eights(out * width)
        last = _in_eights(1280 * max(1.0, width))
        self.features = nn.Sequential(*layers, _layer(channels, last, 1, 1, 1, batch_norm, activation))
        readout = nn.Linear(last, classes)
        self.classifier = nn.Sequential(nn.Dropout(dropout), readout)
        branches = [
            (layer.conv[-2], layer.conv[-1])
            for layer in layers
            if isinstance(layer, InvertedResidual) and layer.has_shortcut
        ]
        initialise(self, readout, branches, zero_residual)

    def forward(self, x: Tensor) -> Tensor:
        x = F.adaptive_avg_pool2d(self.features(x), 1)
        return self.classifier(torch.flatten(x, 1))


def _layer(
    channels: int, out: int, kernel: int, stride: int, groups: int, batch_norm: bool, activation: Activation
) -> nn.Module:
    convolution = nn.Conv2d(channels, out, kernel, stride, kernel // 2, 1, groups, bias=not batch_norm)
    return nn.Sequential(convolution, norm(out, batch_norm), activation())


def _in_eights(channels: float) -> int:
    """The nearest multiple of 8 that is not below 90 % of ``channels``, as the authors round widths."""
    nearest = max(8, int(channels + 4) // 8 * 8)
    return nearest if nearest >= 0.9 * channels else nearest + 8
