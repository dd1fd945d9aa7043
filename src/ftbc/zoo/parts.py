"""What all networks of the zoo share: the width multiplier, BatchNorm or none, and the weights training begins with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn

from ftbc.errors import ModelError

Activation = Callable[[], nn.Module]
"""Makes the module of one activation; called once for each place, so that each can have parameters of its own."""

Pool = Callable[..., nn.Module]
"""Makes a pool of kernel, stride and padding: `nn.AvgPool2d` or `nn.MaxPool2d`."""

Branch = tuple[nn.Module, nn.Module]
"""The last convolution of a residual branch and the BatchNorm (or identity) behind it."""


def check_width(width: float) -> None:
    """Refuse a width multiplier that leaves no channels."""
    if not width > 0:
        raise ModelError(f"width={width!r}: give a number above 0")


def scaled(channels: int, width: float) -> int:
    """Channels of a network ``width`` times as wide."""
    check_width(width)
    return max(1, int(channels * width))


def norm(channels: int, batch_norm: bool, eps: float = 1e-5) -> nn.Module:
    """BatchNorm, or an identity in its place: the modules beside it keep their names."""
    return nn.BatchNorm2d(channels, eps) if batch_norm else nn.Identity()


@torch.no_grad()
def initialise(
    model: nn.Module, readout: nn.Module, branches: Sequence[Branch] = (), zero_residual: bool = False
) -> None:
    """Weights that keep the variance of signals through ReLUs (He et al. 2015), and biases of 0.

    ``readout``, which no ReLU follows, stays as torch made it. Where no BatchNorm holds them back, n residual branches
    of this kind would double the variance n times: the last weights of each are divided by sqrt(n) (De and Smith 2020).
    With ``zero_residual`` each branch begins at zero (Goyal et al. 2017).
    """
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear) and module is not readout:
            nn.init.kaiming_normal_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    for convolution, normalisation in branches:
        has_norm = isinstance(normalisation, nn.BatchNorm2d)
        if zero_residual:
            nn.init.zeros_((normalisation if has_norm else convolution).weight)  # type: ignore[arg-type]
        elif not has_norm:
            convolution.weight.div_(len(branches) ** 0.5)  # type: ignore[union-attr, operator]
