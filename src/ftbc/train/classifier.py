"""Train a classifier on images held in memory: SGD with a one-cycle learning rate, resumable after a kill."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ftbc.atomic import make_folder, replacing
from ftbc.errors import FileError, InputError, first_line
from ftbc.train.augment import crop_and_mirror


@dataclass(frozen=True)
class TrainSettings:
    """Everything that decides the final weights, apart from the network and the images."""

    epochs: int = 40
    batch: int = 128
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    warm_up: float = 0.15
    label_smoothing: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch) < 1 or not 0 < self.learning_rate < math.inf or not 0 < self.warm_up < 1:
            raise InputError(f"{self}: epochs and batch must be at least 1, learning_rate above 0, warm_up in 0 .. 1")
        if not 0 < self.momentum < 1 or not 0 <= self.weight_decay < math.inf or not 0 <= self.label_smoothing <= 1:
            raise InputError(f"{self}: momentum must lie in 0 .. 1, weight_decay be at least 0, label_smoothing 0 to 1")


@dataclass(frozen=True)
class Epoch:
    """What one epoch did, for the log."""

    epoch: int
    loss: float
    accuracy: float
    learning_rate: float
    images_per_second: float


def train_classifier(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    normalise: Callable[[Tensor], Tensor],
    settings: TrainSettings,
    checkpoint: Path,
    report: Callable[[Epoch], None] = lambda epoch: None,
) -> nn.Module:
    """Train ``model`` in place and return it; the state after each epoch is kept in ``checkpoint``.

    A run that finds its own checkpoint goes on from there and ends with the weights an unbroken run would
    have: order, augmentation and learning rate of an epoch depend on the seed and its number alone.

    images: uint8 ``[N, C, H, W]``; labels: int64 ``[N]``; normalise: uint8 batch -> float batch.
    """
    steps = len(images) // settings.batch
    if not steps:
        raise InputError(f"{len(images)} images do not fill a batch of {settings.batch}: choose a smaller batch")
    _require_runs(model, normalise(images[:1]))
    make_folder(checkpoint.parent)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimiser = torch.optim.SGD(
        _decayed(model, settings.weight_decay), settings.learning_rate, settings.momentum, nesterov=True
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, settings.learning_rate, total_steps=steps * settings.epochs, pct_start=settings.warm_up,
        cycle_momentum=False, div_factor=10, final_div_factor=1e4,
    )  # fmt: skip
    start = _resume(checkpoint, model, optimiser, schedule, settings)
    for epoch in range(start, settings.epochs):
        generator = torch.Generator().manual_seed(settings.seed * 100_003 + epoch)
        order = torch.randperm(len(images), generator=generator)
        model.train()
        total, right, begun = 0.0, 0, time.perf_counter()
        for step in range(steps):
            chosen = order[step * settings.batch : (step + 1) * settings.batch]
            batch = normalise(crop_and_mirror(images[chosen], generator))
            outputs = model(batch.contiguous(memory_format=torch.channels_last))
            loss = F.cross_entropy(outputs, labels[chosen], label_smoothing=settings.label_smoothing)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            schedule.step()
            total += float(loss.detach())
            right += int((outputs.argmax(1) == labels[chosen]).sum())
        seen = steps * settings.batch
        speed = seen / (time.perf_counter() - begun)
        _keep(checkpoint, epoch + 1, model, optimiser, schedule, settings)
        report(Epoch(epoch + 1, total / steps, 100 * right / seen, schedule.get_last_lr()[0], speed))
    return model.eval()


def _require_runs(model: nn.Module, x: Tensor) -> None:
    try:
        with torch.no_grad():
            model.eval()(x)
    except Exception as error:  # whatever the network's own code raises
        raise InputError(f"the network does not run on images {list(x.shape[1:])}: {first_line(error)}") from error


def _decayed(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Parameter groups: weights decay, biases and BatchNorm parameters (all one-dimensional) do not."""
    weights = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    return [{"params": weights, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


def _keep(path: Path, epoch: int, model: nn.Module, optimiser: Any, schedule: Any, settings: TrainSettings) -> None:
    content = {
        "epoch": epoch,
        "settings": asdict(settings),
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "schedule": schedule.state_dict(),
    }
    with replacing(path) as file:
        torch.save(content, file)


def _resume(path: Path, model: nn.Module, optimiser: Any, schedule: Any, settings: TrainSettings) -> int:
    """Take up what `_keep` wrote and return the number of finished epochs; none without a checkpoint."""
    if not path.exists():
        return 0
    remedy = "delete it to begin anew, or choose another name"
    try:
        kept = torch.load(path, weights_only=True)
        written_with, total_steps = dict(kept["settings"]), kept["schedule"]["total_steps"]
    except Exception as error:  # torch raises what its many formats raise
        raise FileError(f"'{path}' is not a complete checkpoint ({first_line(error)}): {remedy}") from error
    differing = [name for name, value in asdict(settings).items() if written_with.get(name) != value]
    if differing:
        names = ", ".join(f"{name}={written_with.get(name)!r}" for name in differing)
        raise FileError(f"'{path}' was written with other settings ({names}): {remedy}")
    if total_steps != schedule.total_steps:
        raise FileError(f"'{path}' was written with another number of images: {remedy}")
    try:
        model.load_state_dict(kept["model"])
        optimiser.load_state_dict(kept["optimiser"])
        schedule.load_state_dict(kept["schedule"])
        return int(kept["epoch"])
    except Exception as error:
        raise FileError(f"'{path}' belongs to another network ({first_line(error)}): {remedy}") from error
