"""What every rule for thresholds gives, and the common kind, which looks at one site at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import torch
from torch import Tensor

from ftbc.graph.ir import Graph
from ftbc.processes import ALONE, Team
from ftbc.progress import Progress
from ftbc.settings import Piece
from ftbc.threshold.activations import Activations, Grain, gather

_BATCH = 128


class Threshold(Protocol):
    """Gives each neuron site of a network its threshold."""

    def choose(
        self,
        ann: Graph,
        images: Tensor,
        steps: int,
        generator: torch.Generator,
        progress: Progress,
        team: Team = ALONE,
    ) -> dict[str, Tensor]:
        """Theta by name of site, each ``[1]``, ``[C]`` or ``[C, H, W]``; team: processes that share the images."""
        ...


class SiteBySite(Piece, ABC):
    """A rule to which maxima and histograms of a site's activations are enough; ``grain`` tells what shares a theta."""

    grain: Grain

    @abstractmethod
    def __call__(self, activations: Activations, steps: int) -> Tensor:
        """The threshold of each group."""

    def choose(
        self,
        ann: Graph,
        images: Tensor,
        steps: int,
        generator: torch.Generator,
        progress: Progress,
        team: Team = ALONE,
    ) -> dict[str, Tensor]:
        """Theta by name of site."""
        own = images[team.own(len(images))].split(_BATCH)
        return {name: self(seen, steps) for name, seen in gather(ann, own, self.grain, team).items()}
