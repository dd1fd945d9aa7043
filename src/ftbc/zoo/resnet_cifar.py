"""ResNets for 32 x 32 images (He et al. 2016, section 4.2): a 3 x 3 stem and no pool before the first stage."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ftbc.zoo.parts import Activation, initialise, norm, scaled
from ftbc.zoo.residual import ResidualBlock, projection

Shortcut = Literal["projection", "pad"]


class PadShortcut(nn.Module):
    """Shortcut without parameters ("option A"): every second pixel, new channels filled with zeros."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.before = (channels_out - channels_in) // 2
        self.after = channels_out - channels_in - self.before

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.before, self.after))


class CifarResNet(nn.Module):
    """A stem, stages of ``blocks`` basic blocks each, global average pooling, one linear layer.

    widths: channels of the stages, times ``width``; three stages make the 6 n + 2 layers of ResNet-20 to ResNet-110,
    four of 64 to 512 ResNet-18. The names of the parameters are those of the widespread public checkpoints for CIFAR,
    which therefore load as they are (``shortcut="pad"`` for those without shortcut weights).
    """

    def __init__(
        self,
        blocks: int = 3,
        widths: tuple[int, ...] = (16, 32, 64),
        classes: int = 10,
        shortcut: Shortcut = "projection",
        *,
        width: float = 1.0,
        batch_norm: bool = True,
        activation: Activation = nn.ReLU,
        zero_residual: bool = False,
    ) -> None:
        super().__init__()
        channels = scaled(widths[0], width)
        self.conv1 = nn.Conv2d(3, channels, 3, 1, 1, bias=not batch_norm)
        self.bn1 = norm(channels, batch_norm)
        self.act1 = activation()
        self.stages = [f"layer{stage + 1}" for stage in range(len(widths))]
        branches = []
        for stage, out in zip(self.stages, (scaled(each, width) for each in widths), strict=True):
            layers = []
            for block in range(blocks):
                stride = 2 if stage != "layer1" and not block else 1
                beside = _shortcut(channels, out, stride, shortcut, batch_norm)
                convolutions = [(out, 3, stride), (out, 3, 1)]
                layers.append(ResidualBlock(channels, convolutions, ("shortcut", beside), batch_norm, activation))
                branches.append(layers[-1].branch)
                channels = out
            self.add_module(stage, nn.Sequential(*layers))
        self.linear = nn.Linear(channels, classes)
        initialise(self, self.linear, branches, zero_residual)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act1(self.bn1(self.conv1(x)))
        for stage in self.stages:
            x = self.get_submodule(stage)(x)
        x = F.adaptive_avg_pool2d(x, 1)
        return self.linear(torch.flatten(x, 1))


def _shortcut(channels: int, out: int, stride: int, kind: Shortcut, batch_norm: bool) -> nn.Module:
    if stride == 1 and channels == out:
        return nn.Identity()
    return PadShortcut(channels, out) if kind == "pad" else projection(channels, out, stride, batch_norm)
