"""Parameters and multiply-accumulates of every network against figures that others published."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from ftbc import zoo


class Size(NamedTuple):
    parameters: float
    within: float
    """How far the parameters may be off: 0 for an exact figure, half a unit of its last digit for a rounded one."""
    macs: float
    """In millions, for one image."""
    source: str


HE = "He et al. 2016, as quoted in the README of github.com/akamaster/pytorch_resnet_cifar10"
CHENYAOFO = "github.com/chenyaofo/pytorch-cifar-models, README"
THOP = "the networks of github.com/kuangliu/pytorch-cifar, counted by others with thop, which adds BatchNorm"
TORCHVISION = "torchvision 0.28, num_params and _ops of the weights"
TIMM = "timm, results/benchmark-infer-fp32-nchw-pt240-cpu-i9_10940x-dynamo.csv, row resnet34d, which has the same stem"
HOWARD = "Howard et al. 2017, table 6; trainable parameters of Keras"

# No figure was found for the multiply-accumulates of the wide ResNet-20: by hand, for each size of feature map.
WIDE = (
    32**2 * (27 * 64 + 6 * 9 * 64 * 64)
    + 16**2 * (9 * 64 * 128 + 5 * 9 * 128 * 128 + 64 * 128)
    + 8**2 * (9 * 128 * 256 + 5 * 9 * 256 * 256 + 128 * 256)
    + 256 * 10
)

# Networks whose shortcuts have no weights do without two projections of 1 x 1.
PROJECTIONS = (16**2 * 16 * 32 + 8**2 * 32 * 64) / 1e6

PUBLISHED = {
    "resnet20": Size(0.27e6, 0.005e6, 40.81, CHENYAOFO),
    "resnet32": Size(0.47e6, 0.005e6, 69.12, CHENYAOFO),
    "resnet56": Size(0.86e6, 0.005e6, 125.75, CHENYAOFO),
    "resnet20-pad": Size(0.27e6, 0.005e6, 40.81 - PROJECTIONS, f"{HE}; MACs: {CHENYAOFO}"),
    "resnet32-pad": Size(0.46e6, 0.005e6, 69.12 - PROJECTIONS, f"{HE}; MACs: {CHENYAOFO}"),
    "resnet56-pad": Size(0.85e6, 0.005e6, 125.75 - PROJECTIONS, f"{HE}; MACs: {CHENYAOFO}"),
    "resnet20-wide": Size(4_327_754, 0, WIDE / 1e6, "counted by others for ResNet-20 of channels 64, 128, 256"),
    "resnet18-cifar": Size(11_173_962, 0, 556.65, THOP),
    "vgg16-cifar": Size(14_728_266, 0, 314.03, THOP),
    "mobilenet-v1-cifar": Size(3_217_226, 0, 47.18, THOP),
    "resnet18": Size(11_689_512, 0, 1814, TORCHVISION),
    "resnet34": Size(21_797_672, 0, 3664, TORCHVISION),
    "resnet50": Size(25_557_032, 0, 4089, TORCHVISION),
    "resnet34-deep-stem": Size(21.82e6, 0.005e6, 3910, TIMM),
    "vgg16": Size(138_357_544, 0, 15470, TORCHVISION),
    "vgg16-bn": Size(138_365_992, 0, 15470, TORCHVISION),
    "vgg16-average": Size(138_365_992, 0, 15470, f"{TORCHVISION}; pools have no weights"),
    "mobilenet-v1": Size(4_231_976, 0, 569, HOWARD),
    "mobilenet-v1-0.25": Size(0.5e6, 0.05e6, 41, HOWARD),
    "mobilenet-v2": Size(3_504_872, 0, 301, TORCHVISION),
}


@pytest.mark.parametrize("name", zoo.architectures())
def test_size(name: str) -> None:
    published, side = PUBLISHED[name], zoo.architectures()[name].side
    with torch.device("meta"):
        model = zoo.build(name).eval()
        with FlopCounterMode(display=False) as counter:
            model(torch.empty(1, 3, side, side))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert abs(parameters - published.parameters) <= published.within, published.source
    macs = counter.get_total_flops() / 2 / 1e6
    assert macs == pytest.approx(published.macs, rel=0.02), published.source
