"""Well-known architectures in miniature, written as their public code is."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def conv_bn(into: int, out: int, size: int = 3, stride: int = 1, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(into, out, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(out),
        nn.ReLU(inplace=True),
    )


class Bottleneck(nn.Module):
    """A ResNet block: one in-place ReLU module for three sites, and += onto the shortcut."""

    def __init__(self, into: int, width: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(into, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 2 * width, 1, bias=False), nn.BatchNorm2d(2 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or into != 2 * width:
            self.downsample = nn.Sequential(
                nn.Conv2d(into, 2 * width, 1, stride, bias=False), nn.BatchNorm2d(2 * width)
            )

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


def resnet() -> nn.Module:
    return nn.Sequential(
        conv_bn(3, 8), nn.MaxPool2d(3, 2, 1), Bottleneck(8, 4), Bottleneck(8, 6, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 5),
    )  # fmt: skip


class InvertedResidual(nn.Module):
    """A MobileNetV2 block."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(width, 12, 1, bias=False), nn.BatchNorm2d(12), nn.ReLU6(True),
            nn.Conv2d(12, 12, 3, 1, 1, groups=12, bias=False), nn.BatchNorm2d(12), nn.ReLU6(True),
            nn.Conv2d(12, width, 1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x)


class MobileNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(conv_bn(3, 6, stride=2), InvertedResidual(6), InvertedResidual(6))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(6, 5))

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        x = nn.functional.adaptive_avg_pool2d(x, (1, 1))
        return self.classifier(torch.flatten(x, 1))


class DenseBlock(nn.Module):
    """BatchNorm and ReLU in front of each convolution, and a list of features that grows."""

    def __init__(self, into: int, layers: int = 3, growth: int = 4) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.BatchNorm2d(into + i * growth) for i in range(layers)])
        self.convs = nn.ModuleList([nn.Conv2d(into + i * growth, growth, 3, padding=1) for i in range(layers)])

    def forward(self, x: Tensor) -> Tensor:
        features = [x]
        for norm, layer in zip(self.norms, self.convs, strict=True):
            features.append(F.dropout(layer(F.relu(norm(torch.cat(features, 1)))), 0.2, training=self.training))
        return torch.cat(features, 1)


def densenet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), DenseBlock(4), nn.Conv2d(16, 6, 1), nn.AvgPool2d(2), DenseBlock(6),
        nn.BatchNorm2d(18), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(18, 5),
    )  # fmt: skip


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    batchsize, num_channels, height, width = x.size()
    x = x.view(batchsize, groups, num_channels // groups, height, width)
    x = torch.transpose(x, 1, 2).contiguous()
    return x.view(batchsize, num_channels, height, width)


class ShuffleUnit(nn.Module):
    """A ShuffleNetV2 unit."""

    def __init__(self) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            conv_bn(4, 4, 1), nn.Conv2d(4, 4, 3, 1, 1, groups=4), nn.BatchNorm2d(4), conv_bn(4, 4, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        x1, x2 = x.chunk(2, dim=1)
        return channel_shuffle(torch.cat((x1, self.branch(x2)), dim=1), 2)


def shufflenet() -> nn.Module:
    return nn.Sequential(conv_bn(3, 8, stride=2), ShuffleUnit(), ShuffleUnit(), nn.Flatten(), nn.Linear(128, 5))


class Inception(nn.Module):
    """Four branches, one of them behind a max-pool, and a maximum over the whole image at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.one, self.three = conv_bn(3, 6), conv_bn(6, 3, 1), conv_bn(6, 3, 3)
        self.five, self.pool = nn.Sequential(conv_bn(6, 2, 1), conv_bn(2, 3, 5)), conv_bn(6, 2, 1)
        self.fc = nn.Linear(11, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        branches = [self.one(x), self.three(x), self.five(x), self.pool(F.max_pool2d(x, 3, stride=1, padding=1))]
        return F.log_softmax(self.fc(torch.cat(branches, 1).amax(dim=(2, 3))), dim=1)


class UNet(nn.Module):
    """Down, up by a transposed convolution, and a shortcut whose size is compared and made to fit."""

    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2, self.bottom = conv_bn(3, 4), conv_bn(4, 6), conv_bn(6, 8)
        self.up1, self.up2 = (
            nn.ConvTranspose2d(8, 6, 2, 2),
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
        )
        self.fuse1, self.fuse2, self.out = conv_bn(12, 6), conv_bn(10, 4), nn.Conv2d(4, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        y = self.up1(self.bottom(F.max_pool2d(b, 2)))
        if y.shape[-2:] != b.shape[-2:]:
            y = F.interpolate(y, size=b.shape[-2:], mode="nearest")
        y = self.fuse1(torch.cat([b, y], dim=1))
        y = self.fuse2(torch.cat([a, self.up2(y)], dim=1))
        return torch.sigmoid(self.out(y))


class PyramidBlock(nn.Module):
    """A shortcut padded with zero channels, made for the size of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(4), nn.Conv2d(4, 6, 3, 2, 1), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 7, 1)
        )
        self.downsample = nn.AvgPool2d(2, ceil_mode=True)

    def forward(self, x: Tensor) -> Tensor:
        out, shortcut = self.body(x), self.downsample(x)
        if out.size(1) != shortcut.size(1):
            extra = torch.zeros(
                out.size(0), out.size(1) - shortcut.size(1), *out.shape[2:], dtype=x.dtype, device=x.device
            )
            out += torch.cat((shortcut, extra), 1)
        else:
            out += shortcut
        return out


class LambdaLayer(nn.Module):
    def __init__(self, lambd) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, x: Tensor) -> Tensor:
        return self.lambd(x)


def pyramid() -> nn.Module:
    pad = LambdaLayer(lambda x: F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 1, 1), "constant", 0))
    return nn.Sequential(conv_bn(3, 4), PyramidBlock(), nn.ReLU(), pad, nn.Flatten(), nn.Linear(9 * 4, 5))


ARCHITECTURES = {
    "ResNet": (resnet, 7),
    "MobileNetV2": (MobileNet, 5),
    "DenseNet": (densenet, 7),
    "ShuffleNetV2": (shufflenet, 5),
    "Inception": (Inception, 6),
    "U-Net": (UNet, 5),
    "PyramidNet": (pyramid, 3),
}
"""How each is made, and how many layers of neurons it has."""
