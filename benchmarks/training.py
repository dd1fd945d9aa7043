"""Training against a plain loop: images varied one by one in Python, and tensors in torch's usual memory order."""

from __future__ import annotations

import copy
import random
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ftbc
from benchmarks import results
from benchmarks.settings import Settings
from ftbc.activation import QCFS
from ftbc.data import Images
from ftbc.measure.timing import Way, interleaved
from ftbc.train import TrainSettings, fit
from ftbc.train.source import source_of

SETTINGS = TrainSettings(epochs=1, batch=128)


def run(settings: Settings) -> None:
    """Seconds of the plain loop over ours: an epoch with ReLU and with QCFS, each also compiled, and batches alone."""
    images = ftbc.data.load("cifar10-sample", calibration=settings.pick(512, 128))[0]
    rows = []
    for name, activation in (("ReLU", nn.ReLU()), ("QCFS", QCFS(4))):
        model = ftbc.zoo.build("resnet20", activation=activation)
        for words, own in (("", SETTINGS), (", compiled", replace(SETTINGS, compile=True))):
            ways = {
                "plain": Way(lambda model=model: _plain_epoch(copy.deepcopy(model), images)),
                "ours": Way(lambda model=model, own=own: _our_epoch(copy.deepcopy(model), images, own)),
            }
            rows.append(_row(f"epoch, {name}{words}", ways, len(images), settings))
    ways = {"plain": Way(lambda: list(_plain_batches(images))), "ours": Way(lambda: _our_batches(images))}
    rows.append(_row("batches alone", ways, len(images), settings))
    results.write(settings, "training", rows)


def _row(what: str, ways: dict[str, Way], images: int, settings: Settings) -> dict[str, Any]:
    timings = interleaved(ways, settings.repeats)
    ratio = timings["ours"].speed_over(timings["plain"])
    print(f"ftbc train over a plain loop, ResNet-20, {images} images, {what}: {ratio} x", flush=True)
    return {
        "what": what,
        "network": "ResNet-20",
        "n": images,
        "threads": torch.get_num_threads(),
        "repeats": settings.repeats,
        "ratio": ratio.to_dict(),
    }


def _our_epoch(model: nn.Module, images: Images, own: TrainSettings) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fit(model, images, own, Path(folder) / "net.checkpoint")


def _our_batches(images: Images) -> None:
    source, generator = source_of(images, SETTINGS), torch.Generator().manual_seed(0)
    for chosen in torch.randperm(len(images), generator=generator).split(SETTINGS.batch):
        source.batch(chosen, slice(0, len(chosen)), generator)


def _plain_epoch(model: nn.Module, images: Images) -> None:
    optimiser = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    model.train()
    for x, y in _plain_batches(images):
        loss = F.cross_entropy(model(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def _plain_batches(images: Images) -> Iterator[tuple[Tensor, Tensor]]:
    """As data loaders do: an image at a time, then stacked."""
    order = torch.randperm(len(images)).tolist()
    for start in range(0, len(order), SETTINGS.batch):
        chosen = order[start : start + SETTINGS.batch]
        yield torch.stack([_varied(images, index) for index in chosen]), images.labels[chosen]


def _varied(images: Images, index: int) -> Tensor:
    image = F.pad(images.images[index], (4,) * 4)
    top, left = random.randint(0, 8), random.randint(0, 8)
    image = image[:, top : top + 32, left : left + 32]
    image = image.flip(2) if random.random() < 0.5 else image
    mean, std = (torch.tensor(values)[:, None, None] for values in (images.normalise.mean, images.normalise.std))
    return (image.float() / 255 - mean) / std
