"""Accuracy at each time step of a network and of what was made of it, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ftbc.errors import InputError
from ftbc.measure.batches import labelled_batches
from ftbc.measure.evaluation import shown_steps
from ftbc.network import SpikingNetwork
from ftbc.progress import Progress, silent

Run = Callable[[Tensor], Tensor]
"""The answers after each step, ``[T, N, classes]``, for images ``[N, ...]``."""


@dataclass(frozen=True)
class Score:
    """Accuracy in percent at t = 1 .. T: of the network, and of others by name.

    >>> print(Score(10, [50.0, 60.0], {"file": [50.0, 59.5]}))
       t  network     file
       1   50.00%   50.00%
       2   60.00%   59.50%
    10 images
    """

    images: int
    network: list[float]
    others: dict[str, list[float]]

    def __str__(self) -> str:
        columns = {"network": self.network, **self.others}
        widths = {name: max(len(name), 7) + 2 for name in columns}
        lines = ["   t" + "".join(f"{name:>{width}}" for name, width in widths.items())]
        for t in shown_steps(len(self.network)):
            lines.append(
                f"{t:4}" + "".join(f"{columns[name][t - 1]:{width - 1}.2f}%" for name, width in widths.items())
            )
        return "\n".join([*lines, f"{self.images} images"])


@torch.no_grad()
def score(snn: SpikingNetwork, others: Mapping[str, Run], data: Any, progress: Progress = silent) -> Score:
    """Classify labelled data, given as for `ftbc.evaluate`, by a network and by others."""
    runs: dict[str, Run] = {"network": snn, **others}
    right = {name: torch.zeros(snn.steps, dtype=torch.float64) for name in runs}
    images = 0
    for x, y in labelled_batches(data):
        for name, run in runs.items():
            right[name] += (run(x).argmax(2) == y).sum(1).double().cpu()
        images += len(y)
        progress("classifying", images, images)
    if not images:
        raise InputError("the data to measure on holds no images")
    percent = {name: (100 * hits / images).tolist() for name, hits in right.items()}
    return Score(images, percent.pop("network"), percent)
