"""Networks to export, converted for a few steps: every structure that formats have to spell."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ftbc
from ftbc.calibrate import FTBC
from tests.networks import INPUT_SHAPE, plain, residual, settled

STEPS = 5
RECIPE = ftbc.recipe("ftbc", calibrate=(FTBC(iterations=2),), pool="average")


class _Joined(nn.Module):
    """A shortcut without parameters, a join, a slice of channels, weighted sums, a value added twice."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.c, self.d = nn.Conv2d(10, 6, 3, padding=1), nn.Linear(6 * 16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.a(x).relu()
        y = torch.relu(self.b(x) + F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 2, 2)))
        z = torch.cat([y, x[:, 1:3, 1::2, 1::2]], 1)
        z = self.c(z).relu()
        z = F.relu(z + 0.5 * z - 0.25)
        return self.d((z + z).flatten(1))


class _Mobile(nn.Module):
    """Padding on unequal sides, depthwise convolutions, ReLU6, a mean over the image that keeps its dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.wide = nn.Conv2d(3, 8, 3, 2), nn.Conv2d(8, 8, 3, 1, 1, groups=8)
        self.point, self.head = nn.Conv2d(8, 6, 1), nn.Conv2d(6, 5, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu6(self.stem(F.pad(x, (0, 1, 0, 1))))
        x = F.relu6(self.point(F.relu6(self.wide(x))))
        return self.head(x.mean((2, 3), keepdim=True)).flatten(1)


class _Before(nn.Module):
    """A normalisation of the image itself, and one between padding and weights, whose shift differs at the border."""

    def __init__(self) -> None:
        super().__init__()
        self.image, self.a = nn.BatchNorm2d(3), nn.Conv2d(3, 6, 3, padding=1)
        self.norm, self.b = nn.BatchNorm2d(6), nn.Conv2d(6, 6, 3, padding=1)
        self.head = nn.Linear(6 * 16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.avg_pool2d(self.a(self.image(x)).relu(), 2)
        return self.head(self.b(self.norm(x)).relu().flatten(1))


def _hidden() -> nn.Module:
    return nn.Sequential(nn.Linear(7, 12), nn.ReLU(), nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 4), nn.Softmax(1))


def _waves() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(2, 5, 3, padding=1), nn.ReLU(), nn.Conv1d(5, 6, 4, stride=2), nn.ReLU(), nn.Flatten(),
        nn.Linear(6 * 5, 4),
    )  # fmt: skip


def _pooled() -> nn.Module:
    """Max-pools, for formats that have them."""
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 6, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, 5),
    )  # fmt: skip


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "plain": (plain, INPUT_SHAPE),
    "residual": (residual, INPUT_SHAPE),
    "joined": (_Joined, INPUT_SHAPE),
    "mobile": (_Mobile, INPUT_SHAPE),
    "before": (_Before, INPUT_SHAPE),
    "hidden": (_hidden, (7,)),
    "waves": (_waves, (2, 12)),
    "pooled": (_pooled, INPUT_SHAPE),
}


def converted(name: str, recipe: ftbc.Recipe = RECIPE) -> tuple[ftbc.SpikingNetwork, Tensor]:
    """A network of the table, converted in double precision, and images for it; a copy, to do anything with."""
    snn, images = _converted(name, recipe)
    return copy.deepcopy(snn), images.clone()


@functools.cache
def _converted(name: str, recipe: ftbc.Recipe) -> tuple[ftbc.SpikingNetwork, Tensor]:
    torch.manual_seed(3)
    make, shape = NETWORKS[name]
    images = torch.randn(24, *shape, dtype=torch.float64)
    return ftbc.convert(settled(make()), images, STEPS, recipe), images[:6]
