"""What a run of the benchmarks is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import torch

Kind = TypeVar("Kind")


def _one_and_all() -> tuple[int, ...]:
    return tuple(dict.fromkeys((1, torch.get_num_threads())))


@dataclass(frozen=True)
class Settings:
    """to: folder for the results; repeats: how often everything is measured; threads: the numbers of threads.

    shared: a folder with ``weights/`` and ``data/`` of networks that are not part of the repository; vgg: trained
    weights for vgg16-cifar; peers: the Python that has the peers; networks: those to measure the engines on, none for
    all. quick: a few images and steps, to see that all runs.
    """

    to: Path = Path("results")
    repeats: int = 5
    threads: tuple[int, ...] = field(default_factory=_one_and_all)
    shared: Path | None = None
    vgg: Path | None = None
    peers: Path = Path(".venv-peers/bin/python")
    networks: tuple[str, ...] = ()
    quick: bool = False

    def pick(self, usual: Kind, quick: Kind) -> Kind:
        """One value for real measurements, another for a quick look."""
        return quick if self.quick else usual
