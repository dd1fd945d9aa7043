"""The networks that are measured, with what has to be said about their weights and images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

import ftbc
from benchmarks.settings import Settings
from ftbc.recipe import Recipe
from ftbc.zoo.trained import entries

WEIGHTS = Path("weights/mobilenet_v1_0.25_224_imagenet.pt")
PICTURES = Path("data/imagenet_calibration_512.npz")


@dataclass(frozen=True)
class Subject:
    """A network to measure: weights and pictures say in words what they are.

    batch: how many images run at once, many: where an engine is compared with the ANN; alone: over how many images one
    at a time is measured.
    """

    name: str
    model: nn.Module
    images: Tensor
    weights: str
    pictures: str
    recipe: Recipe
    batch: int
    many: int
    alone: int = 4

    def about(self) -> dict[str, str]:
        """What a result row says of the network."""
        return {"network": self.name, "weights": self.weights, "pictures": self.pictures, "recipe": self.recipe.name}


def subjects(settings: Settings) -> Iterator[Subject]:
    """The networks that were asked for, else all, one after another."""
    for name, make in SUBJECTS.items():
        if not settings.networks or name in settings.networks:
            yield make(settings)


def resnet20(settings: Settings, recipe: str = "ftbc") -> Subject:
    """The trained ResNet-20 of the package."""
    return Subject(
        name="ResNet-20",
        model=ftbc.zoo.load("resnet20-cifar10"),
        images=cifar(settings.pick(256, 16)),
        weights=_trained("resnet20-cifar10"),
        pictures="CIFAR-10",
        recipe=_quick(ftbc.recipe(recipe), settings),
        batch=settings.pick(64, 4),
        many=settings.pick(256, 4),
        alone=settings.pick(16, 2),
    )


def wide_resnet20(settings: Settings, width: int) -> Subject:
    """ResNet-20 with so many times the channels, untrained."""
    torch.manual_seed(0)
    images = cifar(settings.pick(64, 8))
    return Subject(
        name=f"ResNet-20 x {width}",
        model=with_statistics(ftbc.zoo.build("resnet20", width=width), images),
        images=images,
        weights="untrained, BatchNorm statistics of the images",
        pictures="CIFAR-10",
        recipe=ftbc.recipe("mean-square"),
        batch=settings.pick(16, 2),
        many=settings.pick(16, 2),
    )


def vgg16(settings: Settings) -> Subject:
    """VGG-16 for CIFAR, with trained weights if there are any."""
    torch.manual_seed(0)
    images = cifar(settings.pick(128, 8))
    model = ftbc.zoo.build("vgg16-cifar")
    if settings.vgg is not None:
        model = ftbc.zoo.load_weights(model, settings.vgg).eval()
    else:
        model = with_statistics(model, images)
    return Subject(
        name="VGG-16",
        model=model,
        images=images,
        weights="untrained, BatchNorm statistics of the images" if settings.vgg is None else "trained",
        pictures="CIFAR-10",
        recipe=ftbc.recipe("mean-square"),
        batch=settings.pick(16, 2),
        many=settings.pick(32, 2),
    )


def trained_vgg16(settings: Settings) -> Subject:
    """The trained VGG-16 of the package, of three eighths of the channels."""
    return Subject(
        name="VGG-16 x 3/8",
        model=ftbc.zoo.load("vgg16-cifar10"),
        images=cifar(settings.pick(128, 8)),
        weights=_trained("vgg16-cifar10"),
        pictures="CIFAR-10",
        recipe=_quick(ftbc.recipe("ftbc"), settings),
        batch=settings.pick(64, 2),
        many=settings.pick(128, 2),
    )


def mobilenet(settings: Settings) -> Subject:
    """MobileNet v1 of width 0.25 at 224 x 224, with public weights and images if the shared folder has them."""
    torch.manual_seed(0)
    model = ftbc.zoo.build("mobilenet-v1-0.25")
    shared = settings.shared or Path("nowhere")
    count = settings.pick(64, 2)
    if (shared / PICTURES).is_file():
        images = ftbc.data.read(shared / PICTURES, "train", limit=count).with_normalise(
            ftbc.data.NORMALISATIONS["symmetric"]
        )
        photographs, x = "ImageNet", images.tensor()
    else:
        photographs, x = "random pixels", torch.rand(count, 3, 224, 224) * 2 - 1
    trained = (shared / WEIGHTS).is_file()
    model = ftbc.zoo.load_weights(model, shared / WEIGHTS).eval() if trained else with_statistics(model, x)
    calibration = ftbc.FTBC(iterations=4, batch=32, batches=1)
    return Subject(
        name="MobileNet v1 0.25",
        model=model,
        images=x,
        weights="trained, public weights of Keras" if trained else "untrained, BatchNorm statistics of the images",
        pictures=photographs,
        recipe=_quick(ftbc.recipe("ftbc", name="ftbc, 4 iterations of 32 images", calibrate=(calibration,)), settings),
        batch=settings.pick(8, 2),
        many=settings.pick(32, 2),
    )


SUBJECTS: dict[str, Callable[[Settings], Subject]] = {
    "resnet20": resnet20,
    "vgg16": vgg16,
    "vgg16-trained": trained_vgg16,
    "mobilenet": mobilenet,
}


def _trained(name: str) -> str:
    entry = entries()[name]
    return f"trained, {entry.accuracy:.2f} % on CIFAR-10"


def cifar(count: int) -> Tensor:
    """Training images of the sample in the package."""
    return ftbc.data.load("cifar10-sample")[0].take(count).tensor()


@torch.no_grad()
def with_statistics(model: nn.Module, images: Tensor) -> nn.Module:
    """An untrained network whose BatchNorms have the statistics of the images: its activations are of usual size."""
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean over all batches
    model.train()
    for part in images.split(64):
        model(part)
    return model.eval()


def _quick(recipe: Recipe, settings: Settings) -> Recipe:
    if not settings.quick or not recipe.calibrate:
        return recipe
    return ftbc.recipe("ftbc", name=recipe.name, calibrate=(ftbc.FTBC(iterations=1, batch=4, batches=1),))
