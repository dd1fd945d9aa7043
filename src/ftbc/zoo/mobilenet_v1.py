"""MobileNet v1 (Howard et al. 2017): depthwise separable convolutions, in the layout of the Keras weights."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ftbc.zoo.parts import Activation, initialise, norm, scaled

_BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))
"""(output channels at width 1, stride) of the 13 blocks."""


class MobileNetV1(nn.Module):
    """Stem, 13 blocks of a depthwise and a pointwise convolution, global mean, classifier.

    Convolutions of stride 2 are padded to the right and at the bottom only, as the published weights expect.
    stem_stride: 2 for ImageNet; 1 for images of 32 x 32, of which 2 x 2 pixels are left at the end.
    """

    def __init__(
        self,
        width: float = 1.0,
        classes: int = 1000,
        *,
        stem_stride: int = 2,
        batch_norm: bool = True,
        activation: Activation = nn.ReLU6,
    ) -> None:
        super().__init__()
        self.layers: list[str] = []

        def add(name: str, channels: int, out: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
            padding = kernel // 2 if stride == 1 else 0
            self.add_module(name, nn.Conv2d(channels, out, kernel, stride, padding, 1, groups, bias=not batch_norm))
            self.add_module(f"{name}_bn", norm(out, batch_norm, eps=1e-3))
            self.add_module(f"{name}_act", activation())
            self.layers.append(name)

        channels = scaled(32, width)
        add("conv1", 3, channels, 3, stem_stride)
        for index, (out, stride) in enumerate(_BLOCKS, 1):
            out = scaled(out, width)
            add(f"conv_dw_{index}", channels, channels, 3, stride, groups=channels)
            add(f"conv_pw_{index}", channels, out, 1)
            channels = out
        self.conv_preds = nn.Conv2d(channels, classes, 1)
        initialise(self, self.conv_preds)

    def forward(self, x: Tensor) -> Tensor:
        for name in self.layers:
            convolution = self.get_submodule(name)
            if convolution.stride == (2, 2):
                x = F.pad(x, (0, 1, 0, 1))
            x = self.get_submodule(f"{name}_act")(self.get_submodule(f"{name}_bn")(convolution(x)))
        x = self.conv_preds(x.mean((2, 3), keepdim=True))
        return torch.flatten(x, 1)
