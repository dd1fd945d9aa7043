"""What every rule for thresholds gives, and the common kind, which looks at one site at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from ftbc.errors import RecipeError
from ftbc.graph.ir import Graph
from ftbc.graph.ops import Activation
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


def require_thresholds(found: Any, ann: Graph, rule: Threshold) -> None:
    """Refuse what a rule of the user's own cannot mean: each site has thresholds, all of them finite and positive."""
    name = type(rule).__name__
    if not isinstance(found, Mapping):
        raise RecipeError(f"{name}.choose gave a {type(found).__name__}: give a dict of a threshold for each site")
    sites = {site.name: site for site in ann.of_type(Activation)}
    for wrong in [*(sites.keys() - found.keys()), *(found.keys() - sites.keys())]:
        said = "gave no threshold for" if wrong in sites else "gave a threshold for what is no site,"
        raise RecipeError(f"{name}.choose {said} {wrong!r}: sites are {', '.join(sites)}")
    for site in sites.values():
        theta, item = found[site.name], site.shape
        shapes = list(dict.fromkeys([(1,), item[:1], item]))
        if not isinstance(theta, Tensor) or tuple(theta.shape) not in shapes:
            given = list(theta.shape) if isinstance(theta, Tensor) else f"a {type(theta).__name__}"
            wanted = " or ".join(str(list(shape)) for shape in shapes)
            raise RecipeError(f"{name}.choose gave {given} for {site.place}: give a tensor of shape {wanted}")
        if not bool((torch.isfinite(theta) & (theta > 0)).all()):
            raise RecipeError(f"{name}.choose gave thresholds for {site.place} that are not finite and above 0")


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
