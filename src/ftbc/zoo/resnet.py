"""ResNets for ImageNet (He et al. 2016), with the names of the public weights of torchvision."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ftbc.zoo.parts import Activation, Pool, initialise, norm, scaled
from ftbc.zoo.residual import ResidualBlock, projection

_CHANNELS = (64, 128, 256, 512)
"""Of the four stages; a bottleneck block gives four times as many."""


class ResNet(nn.Module):
    """A stem, four stages of ``blocks`` blocks, global average pooling, one linear layer.

    bottleneck: blocks of three convolutions (1 x 1, 3 x 3, 1 x 1) in place of two. deep_stem: three 3 x 3 convolutions
    in place of one 7 x 7, with the names of the ResNet-34 of SNN Calibration (Li et al. 2021), which FTBC uses too.
    """

    def __init__(
        self,
        blocks: tuple[int, int, int, int] = (2, 2, 2, 2),
        bottleneck: bool = False,
        deep_stem: bool = False,
        *,
        classes: int = 1000,
        width: float = 1.0,
        pool: Pool = nn.MaxPool2d,
        batch_norm: bool = True,
        activation: Activation = nn.ReLU,
        zero_residual: bool = False,
    ) -> None:
        super().__init__()
        channels = scaled(64, width)
        if deep_stem:
            self.conv1: nn.Module = _deep_stem(channels, batch_norm, activation)
        else:
            self.conv1 = nn.Conv2d(3, channels, 7, 2, 3, bias=not batch_norm)
        self.bn1 = norm(channels, batch_norm)
        self.act1 = activation()
        self.pool = pool(3, 2, 1)
        stages, branches = [], []
        for stage, count in enumerate(blocks):
            inner = scaled(_CHANNELS[stage], width)
            layers = []
            for block in range(count):
                convolutions = _convolutions(inner, 2 if stage and not block else 1, bottleneck)
                beside = _shortcut(channels, convolutions, batch_norm)
                layers.append(ResidualBlock(channels, convolutions, ("downsample", beside), batch_norm, activation))
                branches.append(layers[-1].branch)
                channels = convolutions[-1][0]
            stages.append(nn.Sequential(*layers))
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.fc = nn.Linear(channels, classes)
        initialise(self, self.fc, branches, zero_residual)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.act1(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = F.adaptive_avg_pool2d(x, 1)
        return self.fc(torch.flatten(x, 1))


def _deep_stem(channels: int, batch_norm: bool, activation: Activation) -> nn.Module:
    """Three convolutions; the BatchNorm and the activation of the last are those of the network."""
    half = max(1, channels // 2)
    return nn.Sequential(
        nn.Conv2d(3, half, 3, 2, 1, bias=not batch_norm), norm(half, batch_norm), activation(),
        nn.Conv2d(half, half, 3, 1, 1, bias=not batch_norm), norm(half, batch_norm), activation(),
        nn.Conv2d(half, channels, 3, 1, 1, bias=not batch_norm),
    )  # fmt: skip


def _convolutions(inner: int, stride: int, bottleneck: bool) -> list[tuple[int, int, int]]:
    """Output channels, kernel and stride of the convolutions of a block."""
    if bottleneck:
        return [(inner, 1, 1), (inner, 3, stride), (4 * inner, 1, 1)]
    return [(inner, 3, stride), (inner, 3, 1)]


def _shortcut(channels: int, convolutions: list[tuple[int, int, int]], batch_norm: bool) -> nn.Module:
    out, stride = convolutions[-1][0], max(stride for _, _, stride in convolutions)
    if stride == 1 and channels == out:
        return nn.Identity()
    return projection(channels, out, stride, batch_norm)
