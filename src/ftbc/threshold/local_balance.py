"""Local threshold balancing: thresholds learnt along the clipped network, the same for every number of steps.

From theta = 0, batch after batch, channel by channel:

    theta <- theta + 2 mean( max(0, a - theta) ) ,   then the layers behind read min(a, theta)

with the mean over batch and positions. It is gradient descent on mean (a - min(a, theta))^2 with a rate of 1, whose
gradient needs no backward pass. Theta grows to the largest activation, ever slower: what is seldom exceeded stays
clipped, and ``iterations`` decides how seldom. (The first step, to twice the mean, may go beyond, where all activations
of a channel are much alike; not beyond the bound of a ReLU6.)
Reference: Bu, Li, Yu, CVPR 2025 (Inference-scale ANN-SNN conversion), Algorithm 1 and the released code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from ftbc.errors import RecipeError
from ftbc.graph.ir import Graph, Shape
from ftbc.graph.ops import Activation
from ftbc.neuron.functional import mean_over
from ftbc.processes import ALONE, Team
from ftbc.progress import Progress
from ftbc.settings import Piece
from ftbc.threshold.activations import Grain, grain_shape, lively, require_finite


@dataclass(frozen=True)
class LocalBalance(Piece):
    """``iterations`` updates, each on ``batch`` images drawn anew; grain: what shares a threshold."""

    iterations: int = 1000
    batch: int = 100
    grain: Grain = "channel"
    timeless: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.iterations, self.batch) < 1:
            raise RecipeError(f"{self}: iterations and batch must be at least 1")

    def choose(
        self,
        ann: Graph,
        images: Tensor,
        steps: int,
        generator: torch.Generator,
        progress: Progress,
        team: Team = ALONE,
    ) -> dict[str, Tensor]:
        """Theta by name of site; ``steps`` do not matter."""
        clipped = ann.copy()
        sites = {
            node.name: _Clipped(node.module, self.grain, node.shape, images, team) for node in ann.of_type(Activation)
        }
        for name, site in sites.items():
            clipped.replace_module(name, site)
        for iteration in range(self.iterations):
            chosen = torch.randperm(len(images), generator=generator)[: self.batch]
            x = images[chosen[team.own(len(chosen))].to(images.device)]
            if not iteration:
                with team.agreed():  # the clipped network asks others at each layer: too late for an error of one
                    ann(x, require_finite)
            clipped(x)
            progress("balancing thresholds", iteration + 1, self.iterations)
        return {name: lively(site.theta) for name, site in sites.items()}


class _Clipped(nn.Module):
    """An activation that is clipped at a threshold, which each batch moves."""

    def __init__(self, activation: Activation, grain: Grain, shape: Shape, like: Tensor, team: Team) -> None:
        super().__init__()
        self.team = team
        self.activation = activation
        self.theta = like.new_zeros(grain_shape(grain, shape))
        self.rank = len(shape)

    def forward(self, z: Tensor) -> Tensor:
        a = self.activation(z)
        theta = self.theta + 2 * mean_over((a - self._spread()).clamp_(min=0), self.theta, self.team)
        self.theta = theta if self.activation.upper is None else theta.clamp(max=self.activation.upper)
        return torch.minimum(a, self._spread())

    def _spread(self) -> Tensor:
        return self.theta if self.theta.ndim == self.rank else self.theta.view(-1, *[1] * (self.rank - 1))
