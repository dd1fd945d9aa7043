"""ResNets for 32 x 32 images (He et al. 2016, section 4.2): 6 n + 2 layers in three stages."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Shortcut = Literal["projection", "pad"]


class PadShortcut(nn.Module):
    """Shortcut without parameters ("option A"): every second pixel, new channels filled with zeros."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.before = (channels_out - channels_in) // 2
        self.after = channels_out - channels_in - self.before

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.before, self.after))


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions around a shortcut; ReLU after the addition."""

    def __init__(self, channels_in: int, channels_out: int, stride: int, shortcut: Shortcut) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels_out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels_out:
            self.shortcut = (
                PadShortcut(channels_in, channels_out)
                if shortcut == "pad"
                else nn.Sequential(
                    nn.Conv2d(channels_in, channels_out, 1, stride, bias=False), nn.BatchNorm2d(channels_out)
                )
            )

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + self.shortcut(x))


class CifarResNet(nn.Module):
    """A stem, three stages of ``blocks`` basic blocks each, global average pooling, one linear layer.

    The names of the parameters are those of the widespread public checkpoints of ResNet-20 to ResNet-110
    for CIFAR, which therefore load as they are (``shortcut="pad"`` for those without shortcut weights).
    """

    def __init__(
        self,
        blocks: int = 3,
        widths: tuple[int, int, int] = (16, 32, 64),
        classes: int = 10,
        shortcut: Shortcut = "projection",
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, widths[0], 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        stages = []
        channels = widths[0]
        for stage, width in enumerate(widths):
            layers = []
            for block in range(blocks):
                layers.append(BasicBlock(channels, width, 2 if stage and not block else 1, shortcut))
                channels = width
            stages.append(nn.Sequential(*layers))
        self.layer1, self.layer2, self.layer3 = stages
        self.linear = nn.Linear(channels, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        x = F.adaptive_avg_pool2d(x, 1)
        return self.linear(torch.flatten(x, 1))
