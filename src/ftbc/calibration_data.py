"""Calibration images in any form a user has them in: a tensor, a data loader, a list of batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from ftbc.errors import InputError, NotFiniteError

MOST_IMAGES = 4096
"""A calibration uses a few hundred to a few thousand images; of longer data the first so many are taken."""


def gather_images(calibration: Any, model: nn.Module) -> Tensor:
    """The images as one tensor ``[N, ...]``, checked; labels are dropped unread."""
    if isinstance(calibration, Tensor):
        batches = [calibration]
    elif isinstance(calibration, Iterable):
        batches = _first_images(calibration)
    else:
        raise InputError(f"calibration is a {type(calibration).__name__}: give a tensor [N, ...] or an iterable of batches")
    if not batches or not sum(len(batch) for batch in batches):
        raise InputError("calibration holds no images: give at least one, better 100 or more")
    shapes = {tuple(batch.shape[1:]) for batch in batches}
    if len(shapes) > 1:
        raise InputError(f"calibration batches differ in shape: {sorted(shapes)}")
    images = torch.cat(batches)[:MOST_IMAGES]
    if images.ndim < 2:
        raise InputError(f"calibration has shape {list(images.shape)}: the first dimension must be the batch, [N, ...]")
    _check_fits(images, model)
    return images


def check_model(model: nn.Module) -> None:
    """Refuse what cannot be simulated: reduced precision, and weights that are not numbers."""
    if not isinstance(model, nn.Module):
        raise InputError(f"the model is a {type(model).__name__}, not an nn.Module")
    for name, weight in [*model.named_parameters(), *model.named_buffers()]:
        if weight.dtype in (torch.float16, torch.bfloat16):
            raise InputError(
                f"'{name}' is {weight.dtype}: membranes lose small currents in half precision; convert model.float()"
            )
        if weight.is_floating_point() and weight.device.type != "meta" and not bool(torch.isfinite(weight).all()):
            raise NotFiniteError(f"'{name}' of the model holds NaN or infinity: load or train the weights again")


def _first_images(calibration: Iterable[Any]) -> list[Tensor]:
    batches, count = [], 0
    for entry in calibration:
        batch = entry[0] if isinstance(entry, tuple | list) and entry else entry
        if not isinstance(batch, Tensor):
            raise InputError(
                f"calibration yields {type(batch).__name__}: each entry must be a tensor [N, ...] or a pair "
                "(tensor, labels)"
            )
        batches.append(batch)
        count += len(batch)
        if count >= MOST_IMAGES:
            break
    return batches


def _check_fits(images: Tensor, model: nn.Module) -> None:
    weight = next((p for p in model.parameters() if p.is_floating_point()), None)
    dtype = weight.dtype if weight is not None else torch.get_default_dtype()
    if images.dtype != dtype:
        raise InputError(f"calibration is {images.dtype}, the model {dtype}: convert the images with .to({dtype})")
    if weight is not None and images.device != weight.device:
        raise InputError(f"calibration is on {images.device}, the model on {weight.device}: move one of them")
    if not bool(torch.isfinite(images).all()):
        raise NotFiniteError("calibration holds NaN or infinity: check how the images are read and normalised")
