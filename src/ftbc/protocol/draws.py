"""The images of a comparison: a draw of calibration images for each seed, and test images that are always the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from ftbc.calibration_data import gather_images
from ftbc.data import Images
from ftbc.data.balance import draw_balanced
from ftbc.errors import InputError

USUAL_IMAGES = 256
_TEST_SEED = 0
Draw = Callable[[int], Any]
Labelled = Images | tuple[Tensor, Tensor]


def draw_from(calibration: Any, images: int | None, model: nn.Module) -> Draw:
    """What gives the calibration images of a seed.

    calibration: `Images`, of which ``images`` are drawn as `ftbc.data.load` does, balanced over the classes; a tensor
    or batches, of which so many are drawn; or a function of the seed, which is taken as it is.
    """
    if callable(calibration) and not isinstance(calibration, Iterable):
        return calibration
    pool = calibration if isinstance(calibration, Images) else gather_images(calibration, model)
    count = min(USUAL_IMAGES, len(pool)) if images is None else images
    if type(count) is not int or not 1 <= count <= len(pool):
        raise InputError(f"cannot draw {count!r} of {len(pool)} calibration images: ask for 1 to {len(pool)}")

    def draw(seed: int) -> Any:
        if isinstance(pool, Images):
            return pool.subset(draw_balanced(pool.labels, count, seed))
        return pool[torch.randperm(len(pool), generator=torch.Generator().manual_seed(seed))[:count]]

    return draw


def labelled(test: Any) -> Labelled:
    """Test images in memory: `Images` as they are, a pair of tensors, or all batches of a data loader together."""
    if isinstance(test, Images):
        return test
    if isinstance(test, tuple) and len(test) == 2 and all(isinstance(part, Tensor) for part in test):
        pair = test
    else:
        if not isinstance(test, Iterable) or isinstance(test, Tensor | str):
            raise InputError("the test images must be ftbc.data.Images, (images, labels) batches or a pair of tensors")
        batches = list(test)
        if not batches or not all(isinstance(entry, tuple | list) and len(entry) == 2 for entry in batches):
            raise InputError("the test images must give (images, labels) pairs, at least one")
        try:
            pair = (torch.cat([x for x, _ in batches]), torch.cat([y for _, y in batches]))
        except (TypeError, RuntimeError) as error:
            raise InputError("the batches of test images do not fit together: give tensors of one shape") from error
    x, y = pair
    if y.dtype != torch.int64 or y.ndim != 1 or len(y) != len(x) or not len(y) or int(y.min()) < 0:
        raise InputError(
            f"the labels of {len(x)} test images are {y.dtype} of shape {list(y.shape)}: give int64 [N], from 0 on"
        )
    return pair


def few_of(test: Labelled, count: int) -> Labelled:
    """So many of the test images, balanced over the classes and always the same."""
    labels = test.labels if isinstance(test, Images) else test[1]
    chosen = draw_balanced(labels.cpu(), count, _TEST_SEED)
    return test.subset(chosen) if isinstance(test, Images) else (test[0][chosen], test[1][chosen])


def size_of(test: Labelled) -> int:
    """The number of test images."""
    return len(test) if isinstance(test, Images) else len(test[1])
