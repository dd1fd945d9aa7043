"""Public weights fit by name: every name and shape, written down here as the published files have them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from ftbc import zoo

Layout = dict[str, tuple[int, ...]]


def _norm(name: str, channels: int) -> Layout:
    parts = ("weight", "bias", "running_mean", "running_var")
    return {**{f"{name}.{part}": (channels,) for part in parts}, f"{name}.num_batches_tracked": ()}


def _linear(name: str, out: int, into: int, *kernel: int) -> Layout:
    return {f"{name}.weight": (out, into, *kernel), f"{name}.bias": (out,)}


def cifar_resnet(blocks: int) -> Layout:
    """Of github.com/akamaster/pytorch_resnet_cifar10."""
    found: Layout = {"conv1.weight": (16, 3, 3, 3), **_norm("bn1", 16)}
    for stage, (into, out) in enumerate([(16, 16), (16, 32), (32, 64)], 1):
        for block in range(blocks):
            at = f"layer{stage}.{block}"
            found |= {f"{at}.conv1.weight": (out, out if block else into, 3, 3), **_norm(f"{at}.bn1", out)}
            found |= {f"{at}.conv2.weight": (out, out, 3, 3), **_norm(f"{at}.bn2", out)}
    return found | _linear("linear", 10, 64)


def _four_stages(blocks: tuple[int, ...], bottleneck: bool) -> Layout:
    found: Layout = {}
    into = 64
    for stage, (count, width) in enumerate(zip(blocks, (64, 128, 256, 512), strict=True), 1):
        out = 4 * width if bottleneck else width
        for block in range(count):
            at = f"layer{stage}.{block}"
            basic = [(width, into, 3, 3), (width, width, 3, 3)]
            shapes = [(width, into, 1, 1), (width, width, 3, 3), (out, width, 1, 1)] if bottleneck else basic
            for index, shape in enumerate(shapes, 1):
                found |= {f"{at}.conv{index}.weight": shape, **_norm(f"{at}.bn{index}", shape[0])}
            if block == 0 and (stage > 1 or bottleneck):
                found |= {f"{at}.downsample.0.weight": (out, into, 1, 1), **_norm(f"{at}.downsample.1", out)}
            into = out
    return found | _linear("fc", 1000, into)


def resnet(*blocks: int, bottleneck: bool = False) -> Layout:
    """Of torchvision."""
    return {"conv1.weight": (64, 3, 7, 7), **_norm("bn1", 64), **_four_stages(blocks, bottleneck)}


def deep_stem_resnet34() -> Layout:
    """Of github.com/yhhhli/SNN_Calibration, whose ImageNet weights the paper uses."""
    stem = {"conv1.0.weight": (32, 3, 3, 3), "conv1.3.weight": (32, 32, 3, 3), "conv1.6.weight": (64, 32, 3, 3)}
    stem |= _norm("conv1.1", 32) | _norm("conv1.4", 32) | _norm("bn1", 64)
    return stem | _four_stages((3, 4, 6, 3), bottleneck=False)


def vgg16(*places: int, batch_norm: bool) -> Layout:
    """Of torchvision: ``places`` are the numbers of the convolutions."""
    channels = (3, 64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512)
    found: Layout = {}
    for index, place in enumerate(places):
        found |= _linear(f"features.{place}", channels[index + 1], channels[index], 3, 3)
        found |= _norm(f"features.{place + 1}", channels[index + 1]) if batch_norm else {}
    sizes = {0: (4096, 25088), 3: (4096, 4096), 6: (1000, 4096)}
    return found | {k: v for place, size in sizes.items() for k, v in _linear(f"classifier.{place}", *size).items()}


def mobilenet_v1() -> Layout:
    """Of Keras, with the names of its layers."""
    found: Layout = {"conv1.weight": (32, 3, 3, 3), **_norm("conv1_bn", 32)}
    channels = (32, 64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024)
    for index in range(1, 14):
        into, out = channels[index - 1 : index + 1]
        found |= {f"conv_dw_{index}.weight": (into, 1, 3, 3), **_norm(f"conv_dw_{index}_bn", into)}
        found |= {f"conv_pw_{index}.weight": (out, into, 1, 1), **_norm(f"conv_pw_{index}_bn", out)}
    return found | _linear("conv_preds", 1000, 1024, 1, 1)


def mobilenet_v2() -> Layout:
    """Of torchvision; the first block does not expand."""
    found: Layout = {"features.0.0.weight": (32, 3, 3, 3), **_norm("features.0.1", 32)}
    found |= {"features.1.conv.0.0.weight": (32, 1, 3, 3), **_norm("features.1.conv.0.1", 32)}
    found |= {"features.1.conv.1.weight": (16, 32, 1, 1), **_norm("features.1.conv.2", 16)}
    channels = (16, 24, 24, 32, 32, 32, 64, 64, 64, 64, 96, 96, 96, 160, 160, 160, 320)
    for block in range(2, 18):
        into, out = channels[block - 2 : block]
        at = f"features.{block}.conv"
        found |= {f"{at}.0.0.weight": (6 * into, into, 1, 1), **_norm(f"{at}.0.1", 6 * into)}
        found |= {f"{at}.1.0.weight": (6 * into, 1, 3, 3), **_norm(f"{at}.1.1", 6 * into)}
        found |= {f"{at}.2.weight": (out, 6 * into, 1, 1), **_norm(f"{at}.3", out)}
    found |= {"features.18.0.weight": (1280, 320, 1, 1), **_norm("features.18.1", 1280)}
    return found | _linear("classifier.1", 1000, 1280)


PLAIN_VGG = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)
NORMED_VGG = (0, 3, 7, 10, 14, 17, 20, 24, 27, 30, 34, 37, 40)

# The layout, and how many entries the published file has in the form in which torch writes it today.
LAYOUTS: dict[str, tuple[Callable[[], Layout], int]] = {
    "resnet20-pad": (lambda: cifar_resnet(3), 116),
    "resnet56-pad": (lambda: cifar_resnet(9), 332),
    "resnet18": (lambda: resnet(2, 2, 2, 2), 122),
    "resnet34": (lambda: resnet(3, 4, 6, 3), 218),
    "resnet50": (lambda: resnet(3, 4, 6, 3, bottleneck=True), 320),
    "resnet34-deep-stem": (deep_stem_resnet34, 230),
    "vgg16": (lambda: vgg16(*PLAIN_VGG, batch_norm=False), 32),
    "vgg16-bn": (lambda: vgg16(*NORMED_VGG, batch_norm=True), 97),
    "vgg16-average": (lambda: vgg16(*NORMED_VGG, batch_norm=True), 97),
    "mobilenet-v1": (mobilenet_v1, 164),
    "mobilenet-v2": (mobilenet_v2, 314),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_names_and_shapes(name: str) -> None:
    layout, entries = LAYOUTS[name]
    with torch.device("meta"):
        model = zoo.build(name)
    assert {key: tuple(value.shape) for key, value in model.state_dict().items()} == layout()
    assert len(layout()) == entries


def test_a_file_in_the_layout_of_torchvision_loads(tmp_path: Path) -> None:
    published = {key: torch.rand(shape) for key, shape in mobilenet_v2().items() if "num_batches" not in key}
    torch.save(published, tmp_path / "mobilenet_v2.pth")
    model = zoo.load_weights(zoo.build("mobilenet-v2"), tmp_path / "mobilenet_v2.pth")
    assert all(torch.equal(model.state_dict()[key], value) for key, value in published.items())
