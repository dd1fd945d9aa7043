"""Learning from the answers of trained networks, and not from the labels alone.

    loss = (1 - w) CE(y, softmax z) + w tau^2 KL( p || softmax(z / tau) )
    p    = mean over teachers k of softmax(z_k / tau)

A label says which class is right, a teacher also which others are near; tau makes these visible, and tau^2 keeps the
size of the gradients. It helps where a network learns its training images by heart, as those with few levels do.
Reference: Hinton, Vinyals, Dean: Distilling the Knowledge in a Neural Network, 2015.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ftbc import zoo
from ftbc.data import NORMALISATIONS, Normalise
from ftbc.errors import FileError, InputError
from ftbc.train.compiled import compiled
from ftbc.train.settings import TrainSettings


class Objective:
    """What training makes small: the loss of a batch ``x`` with labels ``y`` whose outputs are ``z``."""

    def __init__(self, settings: TrainSettings, teachers: Sequence[nn.Module] = ()) -> None:
        for teacher in teachers:
            teacher.eval().requires_grad_(False).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.settings = settings
        self.teachers = [compiled(teacher) if settings.compile else teacher for teacher in teachers]

    def __call__(self, x: Tensor, z: Tensor, y: Tensor) -> Tensor:
        loss = F.cross_entropy(z, y, label_smoothing=self.settings.label_smoothing)
        if not self.teachers:
            return loss
        weight, tau = self.settings.teacher_weight, self.settings.temperature
        with torch.no_grad():
            told = torch.stack([F.softmax(teacher(x) / tau, 1) for teacher in self.teachers]).mean(0)
        divergence = F.kl_div(F.log_softmax(z / tau, 1), told, reduction="batchmean")
        return (1 - weight) * loss + weight * tau**2 * divergence


def teacher(name: str, classes: int, normalise: Normalise) -> nn.Module:
    """A trained network of the zoo by its name, or one that `ftbc train` wrote, by its file."""
    if name in zoo.entries():
        shipped = zoo.entries()[name]
        blueprint, model = zoo.Blueprint.from_dict(shipped.network), zoo.load(name)
        if NORMALISATIONS[shipped.normalisation] != normalise:
            raise InputError(f"teacher '{name}' reads images that are normalised for {shipped.normalisation}")
    else:
        blueprint = zoo.blueprint_of(Path(name))
        if blueprint is None:
            raise FileError(
                f"teacher '{name}' is no trained network of the zoo, nor a file that ftbc train wrote: ftbc.zoo.list() "
                "names the networks"
            )
        model = zoo.load_weights(blueprint.build(), name)
    if blueprint.classes != classes:
        raise InputError(f"teacher '{name}' knows {blueprint.classes} classes, and the images have {classes}")
    return model
