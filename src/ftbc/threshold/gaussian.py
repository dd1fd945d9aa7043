"""The threshold at which equal steps reproduce what a ReLU makes of a normal distribution with the least square error.

    theta = argmin  E (max(z, 0) - q(z))^2 ,   q(z) = theta/n clip(round(z n / theta), 0, n) ,   z ~ N(mu, sigma^2)

Only the mean and the variance of each channel's input are needed. q = theta c, with c the share of the edges
e_i = theta (2i - 1) / 2n that lie below z. At an edge both neighbours are equally far, so that edges may move freely to
first order, and the error is least where its slope for given edges is zero:

    theta E[c^2] = E[c z] ,   E[c z] = 1/n sum_i ( mu P(z > e_i) + sigma / sqrt(2 pi) exp(-u_i^2) )
                              E[c^2] = 1/n^2 sum_i (2i - 1) P(z > e_i) ,   u_i = (e_i - mu) / (sqrt(2) sigma)

The paper iterates theta <- E[c z] / E[c^2], which hardly moves once steps are fine and little is clipped. Here the
slope is bisected, around the best of a few values of the error, theta^2 E[c^2] - 2 theta E[c z] up to a constant.
Reference: Huang et al., ICML 2025 (DCGS), threshold iteration.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ftbc.errors import RecipeError
from ftbc.graph.ir import INPUT, Graph, Node
from ftbc.graph.ops import Activation
from ftbc.processes import ALONE, Team
from ftbc.progress import Progress
from ftbc.settings import Piece
from ftbc.threshold.activations import Grain, by_group, grain_shape, largest_of, lively, require_finite

_BATCH = 128
_SMALLEST, _BEYOND, _GRID, _HALVINGS = 0.02, 8.0, 24, 30
_LOWEST = -6.0
"""A channel whose mean lies further below zero, in standard deviations, is all but dead, and is taken as if there."""
_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Gaussian(Piece):
    """n = ``parts`` * T steps up to theta; parts: how many sizes of output one step tells apart.

    1 for binary spikes; 2^levels for `neuron.Differential`, as its authors choose it.
    """

    parts: int = 1
    grain: Grain = "channel"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.parts < 1:
            raise RecipeError(f"Gaussian(parts={self.parts}): give a whole number, at least 1")

    def choose(
        self,
        ann: Graph,
        images: Tensor,
        steps: int,
        generator: torch.Generator,
        progress: Progress,
        team: Team = ALONE,
    ) -> dict[str, Tensor]:
        """Theta by name of site, for ``steps`` steps."""
        inputs = {node.inputs[0]: _Moments(self.grain) for node in ann.of_type(Activation)}

        def add(node: Node, z: Tensor) -> None:
            require_finite(node, z)
            if node.name in inputs:
                inputs[node.name].add(z)

        with team.agreed():
            for x in images[team.own(len(images))].split(_BATCH):
                if INPUT in inputs:
                    inputs[INPUT].add(x)
                ann(x, add)
        for seen in inputs.values():
            seen.share(team)
        return {node.name: self._threshold(node, inputs[node.inputs[0]], steps) for node in ann.of_type(Activation)}

    def _threshold(self, site: Node, seen: _Moments, steps: int) -> Tensor:
        assert isinstance(site.module, Activation)
        theta = least_error(seen.mean, seen.deviation, self.parts * steps)
        theta = theta if site.module.upper is None else theta.clamp(max=site.module.upper)
        active = seen.largest > 0
        return lively(torch.where(active, theta, 0.0)).reshape(grain_shape(self.grain, site.shape))


class _Moments:
    """Mean, standard deviation and maximum of values in groups, each ``[G]``, gathered in a stream."""

    def __init__(self, grain: Grain) -> None:
        self.grain: Grain = grain
        self.count = 0
        self.sum = self.squares = self.largest = torch.empty(0)

    def add(self, values: Tensor) -> None:
        """Take a batch ``[N, ...]``."""
        values = by_group(values, self.grain).double()
        if not len(values) and self.count:
            return
        largest = largest_of(values)
        self.largest = torch.maximum(self.largest, largest) if self.count else largest
        self.sum = values.sum(0) + (self.sum if self.count else 0)
        self.squares = values.pow(2).sum(0) + (self.squares if self.count else 0)
        self.count += len(values)

    def share(self, team: Team) -> None:
        """Take what the other processes have seen."""
        if team.size > 1:
            self.largest = team.largest(self.largest if self.count else torch.full_like(self.largest, -torch.inf))
            self.sum, self.squares = team.sum(torch.stack([self.sum, self.squares]))
            self.count = int(team.total(self.count)[0])

    @property
    def mean(self) -> Tensor:
        return self.sum / self.count

    @property
    def deviation(self) -> Tensor:
        return (self.squares / self.count - self.mean**2).clamp(min=0).sqrt()


def least_error(mean: Tensor, deviation: Tensor, n: int) -> Tensor:
    """Theta of least square error for n steps, ``[G]``, from means and standard deviations ``[G]``.

    >>> least_error(torch.zeros(1), torch.ones(1), 4).round(decimals=2)
    tensor([2.1400], dtype=torch.float64)
    """
    # A group without variance is its mean.
    sigma = torch.where(deviation > 0, deviation, mean.abs().clamp(min=1e-12) * 1e-6).double()
    places = (mean.double() / sigma).clamp(min=_LOWEST).split(max(1, _AT_ONCE // n))
    return sigma * torch.cat([_in_deviations(place, n) for place in places])


def _in_deviations(place: Tensor, n: int) -> Tensor:
    """Theta in standard deviations, for means in standard deviations."""
    last = place.clamp(min=0) + _BEYOND
    shares = torch.linspace(0, 1, _GRID, dtype=place.dtype, device=place.device)
    grid = _SMALLEST * (last / _SMALLEST) ** shares[:, None]
    errors = []
    for theta in grid:
        cz, cc = _expectations(theta, place, n)
        errors.append(theta**2 * cc - 2 * theta * cz)
    best = torch.stack(errors).argmin(0, keepdim=True)
    low, high = (grid.gather(0, (best + side).clamp(0, _GRID - 1))[0] for side in (-1, 1))
    for _ in range(_HALVINGS):
        theta = (low + high) / 2
        cz, cc = _expectations(theta, place, n)
        falling = theta * cc < cz
        low, high = torch.where(falling, theta, low), torch.where(falling, high, theta)
    return (low + high) / 2


def _expectations(theta: Tensor, place: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """E[c z] and E[c^2] for z ~ N(place, 1)."""
    odd = 2 * torch.arange(1, n + 1, dtype=theta.dtype, device=theta.device) - 1
    u = (theta[:, None] * (odd / (2 * n)) - place[:, None]) / math.sqrt(2)
    above = torch.erfc(u) / 2
    cz = (place[:, None] * above + torch.exp(-(u**2)) / math.sqrt(2 * math.pi)).sum(1) / n
    return cz, (above * odd).sum(1) / n**2
