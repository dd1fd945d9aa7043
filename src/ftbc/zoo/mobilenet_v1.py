"""MobileNet v1 (Howard et al. 2017): depthwise separable convolutions and ReLU6, in the layout of the Keras weights."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))
"""(output channels at width 1, stride) of the 13 blocks."""


class MobileNetV1(nn.Module):
    """Stem, 13 blocks of a depthwise and a pointwise convolution, global mean, classifier.

    Convolutions of stride 2 are padded to the right and at the bottom only, as the published weights expect.
    """

    def __init__(self, width: float = 1.0, classes: int = 1000) -> None:
        super().__init__()
        channels = int(32 * width)
        self.conv1 = nn.Conv2d(3, channels, 3, 2, bias=False)
        self.conv1_bn = nn.BatchNorm2d(channels, eps=1e-3)
        for index, (out, stride) in enumerate(_BLOCKS, 1):
            out = int(out * width)
            depthwise = nn.Conv2d(channels, channels, 3, stride, 0 if stride == 2 else 1, groups=channels, bias=False)
            self.add_module(f"conv_dw_{index}", depthwise)
            self.add_module(f"conv_dw_{index}_bn", nn.BatchNorm2d(channels, eps=1e-3))
            self.add_module(f"conv_pw_{index}", nn.Conv2d(channels, out, 1, bias=False))
            self.add_module(f"conv_pw_{index}_bn", nn.BatchNorm2d(out, eps=1e-3))
            channels = out
        self.conv_preds = nn.Conv2d(channels, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu6(self.conv1_bn(self.conv1(F.pad(x, (0, 1, 0, 1)))))
        for index, (_, stride) in enumerate(_BLOCKS, 1):
            if stride == 2:
                x = F.pad(x, (0, 1, 0, 1))
            x = F.relu6(self.get_submodule(f"conv_dw_{index}_bn")(self.get_submodule(f"conv_dw_{index}")(x)))
            x = F.relu6(self.get_submodule(f"conv_pw_{index}_bn")(self.get_submodule(f"conv_pw_{index}")(x)))
        x = self.conv_preds(x.mean((2, 3), keepdim=True))
        return torch.flatten(x, 1)
