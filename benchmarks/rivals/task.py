"""What every program is given, and what it offers to run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import ftbc

NETWORK = "resnet20-cifar10"
"""The network of the package: every process loads the same trained weights."""
_FILES = ("network.snn", "images.safetensors")


@dataclass(frozen=True)
class Task:
    """The ANN, the spiking network that ftbc made of it, images, and how many threads to use."""

    ann: nn.Module
    snn: ftbc.SpikingNetwork
    images: Tensor
    folder: Path
    threads: int

    @staticmethod
    def write(folder: Path, snn: ftbc.SpikingNetwork, images: Tensor) -> None:
        """Put the spiking network and the images into a folder."""
        snn.save(folder / _FILES[0])
        save_file({"images": images.contiguous()}, folder / _FILES[1])

    @classmethod
    def read(cls, folder: Path, threads: int) -> Task:
        """What `write` wrote, for so many threads."""
        torch.set_num_threads(threads)
        images = load_file(folder / _FILES[1])["images"]
        return cls(ftbc.zoo.load(NETWORK), ftbc.load(folder / _FILES[0]), images, folder, threads)


@dataclass(frozen=True)
class Offer:
    """Something a program can run: it gives the output, ``[N, classes]`` (the mean over T), for so many images."""

    run: Callable[[], Tensor]
    items: int


def in_batches(model: Callable[[Tensor], Tensor], images: Tensor, batch: int) -> Offer:
    """All images through a model, a batch at a time."""
    parts = images.split(batch)
    return Offer(lambda: torch.cat([model(part) for part in parts]), len(images))


def sizes(wanted: tuple[int, ...], images: Tensor) -> list[int]:
    """Batch sizes that there are images for."""
    return sorted({min(batch, len(images)) for batch in wanted})
