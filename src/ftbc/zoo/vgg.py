"""VGG-16 (Simonyan and Zisserman 2015), for ImageNet with the names of the public weights of torchvision."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ftbc.zoo.parts import Activation, Pool, initialise, norm, scaled

_STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
"""Channels of the 13 convolutions; a pool ends each stage."""


class VGG16(nn.Module):
    """13 convolutions of 3 x 3 and five pools, then linear layers.

    grid: side of the feature map that the linear layers see, 7 for images of 224 x 224 and 1 for 32 x 32. hidden: sizes
    of the linear layers before the last, at width 1: none in the network for CIFAR of SNN Calibration (Li et al. 2021),
    (4096, 4096) in that of QCFS (Bu et al. 2022). Both pool by averages.
    """

    def __init__(
        self,
        *,
        classes: int = 1000,
        width: float = 1.0,
        grid: int = 7,
        hidden: tuple[int, ...] = (4096, 4096),
        dropout: float = 0.5,
        pool: Pool = nn.AvgPool2d,
        batch_norm: bool = True,
        activation: Activation = nn.ReLU,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for stage in _STAGES:
            for out in (scaled(each, width) for each in stage):
                layers.append(nn.Conv2d(channels, out, 3, 1, 1))
                # No identity in the place of a missing BatchNorm: public weights count the layers without it.
                layers += [norm(out, batch_norm), activation()] if batch_norm else [activation()]
                channels = out
            layers.append(pool(2, 2))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(grid)
        layers = []
        features = channels * grid**2
        for out in (scaled(each, width) for each in hidden):
            layers += [nn.Linear(features, out), activation(), nn.Dropout(dropout)]
            features = out
        readout = nn.Linear(features, classes)
        self.classifier = nn.Sequential(*layers, readout)
        initialise(self, readout)

    def forward(self, x: Tensor) -> Tensor:
        x = self.avgpool(self.features(x))
        return self.classifier(torch.flatten(x, 1))
