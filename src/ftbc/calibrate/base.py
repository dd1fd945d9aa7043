"""What every calibration is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ftbc.graph.ir import Graph

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


def silent(what: str, done: int, total: int) -> None:
    """Progress that nobody sees."""


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


class Calibrator(Protocol):
    """Changes the spiking graph of a `Calibration` in place."""

    def __call__(self, calibration: Calibration) -> None:
        """Calibrate."""
        ...
