"""AutoAugment (Cubuk et al. 2019), its operations by kornia (the extra ``train``), on tensors.

kornia chooses one of a policy's 25 pairs of operations for a whole batch. Here each `TOGETHER` images of a batch, which
are a random sample, get a pair of their own: an image sees each pair as often as by itself, in far fewer calls.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from ftbc.errors import MissingExtraError

TOGETHER = 16


def auto_augment(images: Tensor, policy: str, seed: int) -> Tensor:
    """Vary images ``[N, 3, H, W]`` from 0 to 255 by a policy: cifar10, imagenet or svhn; the result is float32."""
    x = images.to(torch.float32) / 255
    with torch.random.fork_rng():  # kornia draws from the generator that all the world shares
        torch.manual_seed(seed)
        parts = [_policy(policy)(part) for part in x.split(TOGETHER)]
    return torch.cat(parts).clamp_(0, 1).mul_(255)


def require_kornia() -> None:
    """Say what to install before the work begins."""
    _policy("cifar10")


@functools.cache
def _policy(name: str) -> Any:
    try:
        from kornia.augmentation.auto import AutoAugment
    except ModuleNotFoundError as error:
        raise MissingExtraError("kornia", "AutoAugment", "train") from error
    return AutoAugment(name)
