"""Calibration images in any form a user has them in: a tensor, a data loader, a list of batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ftbc.data import Images
from ftbc.errors import InputError, NotFiniteError
from ftbc.processes import Team

MOST_IMAGES = 4096
"""A calibration uses a few hundred to a few thousand images; of longer data the first so many are taken."""


def gather_images(calibration: Any, model: nn.Module) -> Tensor:
    """The images as one tensor ``[N, ...]``, checked; labels are dropped unread."""
    if isinstance(calibration, Tensor):
        batches = [_batch(calibration)]
    elif isinstance(calibration, Iterable):
        batches = _first_images(calibration)
    else:
        raise InputError(f"calibration is a {type(calibration).__name__}: give a tensor [N, ...] or batches of images")
    if not sum(len(batch) for batch in batches):
        raise InputError("calibration holds no images: give at least one, better 100 or more")
    shapes = sorted({tuple(batch.shape[1:]) for batch in batches})
    if len(shapes) > 1:
        raise InputError(f"calibration batches differ in shape, {_few(shapes)} an image: give images of one shape")
    kinds = sorted({f"{batch.dtype} on {batch.device}" for batch in batches})
    if len(kinds) > 1:
        raise InputError(f"calibration batches differ in kind, {_few(kinds)}: convert the images to one")
    images = torch.cat(batches)[:MOST_IMAGES]
    if images.ndim < 2:
        raise InputError(f"calibration has shape {list(images.shape)}: the first dimension must be the batch, [N, ...]")
    _check_fits(images, model)
    return images


def placed(images: Images, team: Team) -> Images | Tensor:
    """Images where a team computes."""
    return images if team.device.type == "cpu" else images.tensor().to(team.device)


def check_model(model: nn.Module) -> None:
    """Refuse what cannot be simulated: reduced or mixed precision, and weights that are not numbers."""
    if not isinstance(model, nn.Module):
        remedy = ": give its .module()" if isinstance(model, torch.export.ExportedProgram) else ""
        raise InputError(f"the model is a {type(model).__name__}, not an nn.Module{remedy}")
    for name, part in model.named_modules():
        if isinstance(part, torch.jit.ScriptModule):
            whole = f"'{name}'" if name else "the model"
            raise InputError(
                f"{whole} is TorchScript, whose forward cannot be followed: give the module it was made of"
            )
    first = None
    for name, weight in [*model.named_parameters(), *model.named_buffers()]:
        if is_lazy(weight):
            raise InputError(f"'{name}' has no shape yet: run the model once on an image before it is converted")
        if weight.device.type == "meta":
            raise InputError(f"'{name}' is on the meta device and holds no numbers: load the weights first")
        if weight.is_complex() or (weight.is_floating_point() and weight.dtype not in (torch.float32, torch.float64)):
            raise InputError(
                f"'{name}' is {weight.dtype}: membranes lose small currents in half precision; convert model.float()"
            )
        if weight.is_floating_point() and not bool(torch.isfinite(weight).all()):
            raise NotFiniteError(f"'{name}' of the model holds NaN or infinity: load or train the weights again")
        if isinstance(weight, nn.Parameter) and weight.is_floating_point():
            first = first or (name, weight)
            if (weight.dtype, weight.device) != (first[1].dtype, first[1].device):
                raise InputError(
                    f"'{name}' is {weight.dtype} on {weight.device}, '{first[0]}' {first[1].dtype} on "
                    f"{first[1].device}: bring the model to one type and device, as with model.float()"
                )


def _first_images(calibration: Iterable[Any]) -> list[Tensor]:
    batches, count = [], 0
    for entry in calibration:
        batches.append(_batch(entry[0] if isinstance(entry, tuple | list) and entry else entry))
        count += len(batches[-1])
        if count >= MOST_IMAGES:
            break
    return batches


def _batch(value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise InputError(f"calibration yields {type(value).__name__}: give tensors [N, ...] or pairs (tensor, labels)")
    if not value.ndim:
        raise InputError("calibration yields single numbers: give tensors [N, ...]")
    return value


def _check_fits(images: Tensor, model: nn.Module) -> None:
    weight = next((p for p in model.parameters() if p.is_floating_point()), None)
    dtype = weight.dtype if weight is not None else torch.get_default_dtype()
    if images.dtype != dtype:
        raise InputError(
            f"calibration is {images.dtype}, the model {dtype}: convert the images with .to({dtype}), "
            "or the model with .float()"
        )
    if weight is not None and images.device != weight.device:
        raise InputError(f"calibration is on {images.device}, the model on {weight.device}: move one of them")
    if images.device.type == "meta":
        raise InputError("calibration is on the meta device and holds no numbers: give real images")
    if not bool(torch.isfinite(images).all()):
        raise NotFiniteError("calibration holds NaN or infinity: check how the images are read and normalised")


def _few(things: list[Any]) -> str:
    return ", ".join(str(thing) for thing in things[:4]) + (" ..." if len(things) > 4 else "")
