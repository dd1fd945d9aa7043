"""What every calibration is given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ftbc.errors import RecipeError
from ftbc.graph.ir import Graph, Node
from ftbc.neuron.integrate_fire import IntegrateFire
from ftbc.neuron.spiking import Spiking
from ftbc.processes import ALONE, Team
from ftbc.progress import Progress, silent


@dataclass
class Calibration:
    """The ANN (clean graph with activations), its spiking copy (same names, neurons in their place), and images.

    ``generator`` is the only source of chance. readout: how the outputs of the steps are weighed, if a calibration
    sets it (see `simulate/readout.py`). team: the processes that share the work. All of them hold the same images and
    draw the same batches; each computes its `part` of a batch, and what is learnt is learnt from all parts together, by
    `mean_over` with the team, `Team.sum`, `Team.largest` and `Team.rows`: nothing else may depend on a single part.
    """

    ann: Graph
    snn: Graph
    steps: int
    images: Tensor
    generator: torch.Generator
    progress: Progress = silent
    readout: Tensor | None = None
    team: Team = ALONE

    def draw(self, batch: int, batches: int = 1) -> Iterator[Tensor]:
        """The indices of ``batches`` batches of ``batch`` images, none twice; fewer where there are no more images."""
        order = torch.randperm(len(self.images), generator=self.generator)[: batch * batches]
        return iter(order.to(self.images.device).split(batch))

    def part(self, chosen: Tensor) -> Tensor:
        """This process's images of a batch, given by the indices of all of its images."""
        return self.images[chosen[self.team.own(len(chosen))]]

    def neurons(self) -> list[Node]:
        """The layers of neurons, in order."""
        return self.snn.of_type(Spiking)

    def plain_neurons(self, piece: str) -> list[Node]:
        """The layers of neurons, for a piece that knows plain integrate-and-fire alone."""
        for node in self.neurons():
            if not isinstance(node.module, IntegrateFire):
                raise RecipeError(f"{piece} is for plain neurons, but {node.place} is of another kind: leave it out")
        return self.neurons()

    def stepped_neurons(self, piece: str) -> list[Node]:
        """The layers of neurons, for a piece that looks at one step after another."""
        for node in self.neurons():
            assert isinstance(node.module, Spiking)
            if node.module.together > 1:
                raise RecipeError(
                    f"{piece} looks at one step after another, but {node.place} sees {node.module.together} at once: "
                    "leave it out"
                )
        return self.neurons()


class Calibrator(Protocol):
    """Changes the spiking graph of a `Calibration` in place."""

    def __call__(self, calibration: Calibration) -> None:
        """Calibrate."""
        ...
