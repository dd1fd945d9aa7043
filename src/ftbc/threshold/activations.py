"""Statistics of the ANN's activations that thresholds are chosen from: maxima and histograms, gathered in a stream."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ftbc.errors import NotFiniteError
from ftbc.graph.ir import Graph, Node, Shape
from ftbc.graph.ops import Activation
from ftbc.processes import ALONE, Team

Grain = Literal["layer", "channel", "neuron"]
"""What shares one number: all neurons of a layer, those of a channel, or none."""

BINS = 4096
_MOST_CELLS = 1 << 24


@dataclass
class Activations:
    """Positive activations of one site in groups (by `Grain`).

    maximum: ``[G]``; counts: ``[G, bins]``, how many activations lie in each of ``bins`` equal parts of 0 ..
    maximum; shape: that of a threshold per layer ``[1]``, channel ``[C]`` or neuron ``[C, H, W]``. upper: the bound
    that the activation was trained with, None for a plain ReLU; levels: its steps up to there, None if it has none;
    place: how messages name the site.
    """

    maximum: Tensor
    counts: Tensor
    shape: tuple[int, ...]
    upper: float | None = None
    levels: int | None = None
    place: str = "an activation"

    @property
    def centres(self) -> Tensor:
        """The middle of each bin, relative to the maximum: ``[bins]``."""
        bins = self.counts.shape[1]
        return (torch.arange(bins, dtype=torch.float64, device=self.counts.device) + 0.5) / bins

    def threshold(self, relative: Tensor) -> Tensor:
        """Thresholds from fractions of the maximum; groups that were never active get the layer's largest.

        Such a group has no current that could lift it over any positive threshold, so it stays silent; the
        largest one of its layer keeps it so when an unusual input comes.
        """
        theta = relative * self.maximum
        dead = self.maximum <= 0
        largest = theta.max() if bool((~dead).any()) else theta.new_ones(())
        return torch.where(dead, largest, theta).reshape(self.shape)


def grain_shape(grain: Grain, item: Shape) -> Shape:
    """Shape of what has one number per layer, channel or neuron of items of shape ``item``."""
    return {"layer": (1,), "channel": item[:1], "neuron": item}[grain]


def gather(ann: Graph, batches: Iterable[Tensor], grain: Grain, team: Team = ALONE) -> dict[str, Activations]:
    """Two passes over the batches: maxima, then histograms. Memory does not grow with the number of images.

    team: the processes that share the images, of which ``batches`` are this one's. Maxima and counts do not depend on
    who has seen what.
    """
    batches = list(batches)
    found: dict[str, Activations] = {}

    def take_maximum(node: Node, a: Tensor) -> None:
        if not isinstance(node.module, Activation):
            return
        require_finite(node, a)
        largest = largest_of(by_group(a, grain)).double()
        if node.name in found:
            largest = torch.maximum(found[node.name].maximum, largest)
        shape, site = grain_shape(grain, node.shape), node.module
        found[node.name] = Activations(largest, largest.new_zeros(0), shape, site.upper, site.levels, node.place)

    def count(node: Node, a: Tensor) -> None:
        if node.name not in found:
            return
        site = found[node.name]
        groups = len(site.maximum)
        bins = min(BINS, max(128, _MOST_CELLS // groups))
        if not site.counts.numel():
            site.counts = site.maximum.new_zeros(groups, bins)
        values = by_group(a, grain)
        scale = torch.where(site.maximum > 0, bins / site.maximum, 0).to(a.dtype)
        place = (values * scale).long().clamp_(max=bins - 1)
        place += torch.arange(groups, device=a.device) * bins
        site.counts += torch.bincount(place[values > 0], minlength=groups * bins).view(groups, bins)

    with team.agreed():
        for batch in batches:
            ann(batch, take_maximum)
    for site in found.values():
        site.maximum = team.largest(site.maximum)
    for batch in batches:
        ann(batch, count)
    for site in found.values():
        site.counts = team.sum(site.counts)
    return found


def lively(theta: Tensor) -> Tensor:
    """Groups that were never active, whose theta is zero, get the layer's largest, as in `Activations.threshold`."""
    largest = theta.max() if bool((theta > 0).any()) else theta.new_ones(())
    return torch.where(theta > 0, theta, largest)


def require_finite(node: Node, value: Tensor) -> None:
    """Name the first operation that gives NaN or infinity."""
    if not bool(torch.isfinite(value).all()):
        raise NotFiniteError(f"{node.place} gives NaN or infinity on the calibration images: check weights and scaling")


def largest_of(values: Tensor) -> Tensor:
    """The largest of ``[samples, groups]`` in each group; zero without samples."""
    return values.amax(0) if len(values) else values.new_zeros(values.shape[1])


def by_group(a: Tensor, grain: Grain) -> Tensor:
    """Activations ``[N, C, ...]`` as ``[samples, groups]``."""
    if grain == "layer":
        return a.reshape(-1, 1)
    if grain == "neuron":
        return a.flatten(1)
    return a.movedim(1, -1).reshape(-1, a.shape[1])
