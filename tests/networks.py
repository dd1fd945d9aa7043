"""Small networks with the structures that conversions stumble over, shared by the tests."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Rectifier = Callable[[Tensor], Tensor]


def plain(activation: nn.Module | None = None) -> nn.Module:
    """Convolution, BatchNorm, pooling, a hidden linear layer."""
    one, two = _rectifiers(activation, (nn.ReLU(), nn.ReLU()))
    return settled(
        nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), one, nn.AvgPool2d(2), nn.Flatten(),
            nn.Linear(6 * 16, 12), two, nn.Linear(12, 5),
        )
    )  # fmt: skip


class _Residual(nn.Module):
    def __init__(self, activation: nn.Module | None) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, padding=1)
        self.conv1, self.bn1 = nn.Conv2d(6, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.conv2, self.bn2 = nn.Conv2d(6, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.down = nn.Conv2d(6, 8, 1, stride=2)
        self.conv3 = nn.Conv2d(6, 8, 3, stride=2, padding=1)
        self.head = nn.Linear(8, 5)
        self.rectify = _rectifiers(activation, (F.relu,) * 4)

    def forward(self, x: Tensor) -> Tensor:
        a, b, c, d = self.rectify
        x = a(self.stem(x))
        x = c(self.bn2(self.conv2(b(self.bn1(self.conv1(x))))) + x)
        x = d(self.conv3(x) + self.down(x))
        return self.head(x.mean((2, 3)))


def residual(activation: nn.Module | None = None) -> nn.Module:
    """Identity and projection shortcuts."""
    return settled(_Residual(activation))


class _Depthwise(nn.Module):
    def __init__(self, activation: nn.Module | None) -> None:
        super().__init__()
        self.wide = nn.Conv2d(3, 8, 1)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.narrow = nn.Conv2d(16, 6, 1)
        self.head = nn.Linear(6 * 4, 5)
        self.rectify = _rectifiers(activation, (F.relu6, F.relu6, F.relu))

    def forward(self, x: Tensor) -> Tensor:
        a, b, c = self.rectify
        x = a(self.wide(x))
        x = torch.cat([x, b(self.depthwise(x))], 1)
        x = F.max_pool2d(c(self.narrow(x)), 4)
        return self.head(x.flatten(1))


def depthwise(activation: nn.Module | None = None) -> nn.Module:
    """Depthwise convolution, ReLU6, concatenation, max-pool."""
    return settled(_Depthwise(activation))


def _rectifiers(activation: nn.Module | None, usual: Sequence[Rectifier]) -> Sequence[Rectifier]:
    """Copies of an activation that networks are trained with, one for each place, or what usually stands there."""
    return usual if activation is None else nn.ModuleList(copy.deepcopy(activation) for _ in usual)  # type: ignore


def settled(model: nn.Module) -> nn.Module:
    """Double precision, and BatchNorms with statistics that are not the trivial ones."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-0.3, 0.3)
            module.running_var.uniform_(0.5, 2.0)
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.uniform_(-0.3, 0.3)
    return model.double().eval()


NETWORKS = {"plain": plain, "residual": residual, "depthwise": depthwise}
INPUT_SHAPE = (3, 8, 8)
