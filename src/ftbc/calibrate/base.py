"""What every calibration is given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ftbc.graph.ir import Graph
from ftbc.progress import Progress, silent


@dataclass
class Calibration:
    """The ANN (clean graph with activations), its spiking copy (same names, neurons in their place), and images.

    ``generator`` is the only source of chance. readout: how the outputs of the steps are weighed, if a calibration
    sets it (see `simulate/readout.py`).
    """

    ann: Graph
    snn: Graph
    steps: int
    images: Tensor
    generator: torch.Generator
    progress: Progress = silent
    readout: Tensor | None = None

    def draw(self, batch: int, batches: int = 1) -> Iterator[Tensor]:
        """The indices of ``batches`` batches of ``batch`` images, none twice; fewer where there are no more images."""
        order = torch.randperm(len(self.images), generator=self.generator)[: batch * batches]
        return iter(order.to(self.images.device).split(batch))


class Calibrator(Protocol):
    """Changes the spiking graph of a `Calibration` in place."""

    def __call__(self, calibration: Calibration) -> None:
        """Calibrate."""
        ...
