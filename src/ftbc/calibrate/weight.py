"""SNN Calibration, the advanced pipeline (SNNC-AP), first step: weights that make up for what T steps lose.

Layer by layer, the weights W of all that leads to a neuron site and to no other are trained on

    minimise over W   mean ( q(W xbar + r) - a )^2
    q(z) = theta/T floor( clamp( (T z + v[0] + sum_t b[t]) / theta, 0, T ) )

xbar is the mean over time of the spikes that these weights read, r all else that reaches the site (biases, shortcuts),
and a the ANN's activation. q is what a neuron sends in T steps of a current that arrives evenly; floor passes gradients
as if it were not there. Adam with a cosine down to 0. All between two neuron sites is linear, so that W xbar + r is the
operations of the network run once on mean spikes: sums, groups, pools and joins included. What is left as it is: the
layer behind the last neurons, weights that several sites read, and those before a max-pool that stands before its
neurons (`pool="before"`), because a maximum of means is no mean of maxima. Weights that do not lower the error over all
images are put back.
Reference: Li et al., ICML 2021 (SNN Calibration), section 4.3. In its code q is without v[0] and b, although
the neurons are half charged, W is the one convolution before the neurons and not that of a shortcut, and 5,000
iterations take a rate of 1e-5 to 4e-5.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ftbc.activation.qcfs import staircase
from ftbc.calibrate.base import Calibration
from ftbc.calibrate.in_order import Segment, Site, Tensors, activations, in_order
from ftbc.errors import RecipeError
from ftbc.graph.ir import Graph, Node
from ftbc.graph.ops import Grid, MaxPool, Synapses
from ftbc.processes import ALONE, Team
from ftbc.settings import Piece

_AT_ONCE = 64


@dataclass(frozen=True)
class WeightCorrection(Piece):
    """Weights by gradients: ``iterations`` steps a layer, each on ``batch`` of ``images`` images.

    charge: let q count v[0] and b[t], which the neuron has; released code leaves them out.
    """

    iterations: int = 500
    batch: int = 32
    learning_rate: float = 1e-4
    images: int = 1024
    charge: bool = True
    gradients: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.learning_rate > 0 or min(self.iterations, self.batch, self.images) < 1:
            raise RecipeError(f"{self}: learning_rate must be positive, iterations, batch and images at least 1")

    def __call__(self, calibration: Calibration) -> None:
        """Train the weights of every spiking layer in place."""
        snn, steps = calibration.snn, calibration.steps
        chosen = next(calibration.draw(self.images))
        x, team = calibration.part(chosen), calibration.team
        total = len(calibration.plain_neurons("WeightCorrection"))
        visits = zip(in_order(snn, x, steps), activations(calibration.ann, x), strict=True)
        for done, (site, a) in enumerate(visits, 1):
            own = own_synapses(snn, site.segment)
            if own:
                for name, weight in self.fit(site, own, a, calibration.generator, team).items():
                    _put(snn, name, weight)
            calibration.progress("calibrating weights", done, total)

    def fit(
        self, site: Site, own: Iterable[Node], a: Tensor, generator: torch.Generator, team: Team = ALONE
    ) -> Tensors:
        """The weights of these nodes that bring the site's spikes nearest to its activations."""
        layer = Layer(site, a, self.charge, team)
        before = {node.name: node.module.weight.detach() for node in own}
        with torch.enable_grad():
            weights = {name: weight.clone().requires_grad_() for name, weight in before.items()}
            optimiser = torch.optim.Adam(weights.values(), self.learning_rate)
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, self.iterations)
            for _ in range(self.iterations):
                rows = torch.randperm(layer.images, generator=generator)[: self.batch].to(a.device)
                gradients = torch.autograd.grad(layer.error(rows, weights), list(weights.values()))
                for weight, gradient in zip(weights.values(), gradients, strict=True):
                    weight.grad = team.sum(gradient)
                optimiser.step()
                schedule.step()
        after = {name: weight.detach() for name, weight in weights.items()}
        return after if layer.total_error(after) < layer.total_error(before) else before


class Layer:
    """The equation above for one site.

    a: the activations of this process's images; rows of images are numbered over all processes of the team, in order.
    """

    def __init__(self, site: Site, a: Tensor, charge: bool = True, team: Team = ALONE) -> None:
        neuron = site.neuron
        self.images, self.team = int(team.total(len(a))[0]), team
        self.first = team.own(self.images).start
        self.a, self.segment, self.steps = a, site.segment, site.steps
        self.inputs = site.mean_inputs()
        self.theta = neuron.spread(neuron.threshold)
        held = neuron.spread(neuron.initial) + neuron.spread(neuron.bias.sum(0))
        self.shift = held / self.theta if charge else 0.0

    def error(self, rows: Tensor, weights: Tensors) -> Tensor:
        """Sum over channels, mean over all else, of the square error on some images; this process's share of it."""
        own = rows[(rows >= self.first) & (rows < self.first + len(self.a))] - self.first
        z = self.segment({name: values[own] for name, values in self.inputs.items()}, weights)
        sent = staircase(z, self.theta, self.steps, self.shift)
        return F.mse_loss(sent, self.a[own], reduction="sum") / (len(rows) * z.shape[2:].numel())

    @torch.no_grad()
    def total_error(self, weights: Tensors) -> float:
        """The same over all images."""
        rows = torch.arange(self.images, device=self.a.device).split(_AT_ONCE)
        return self.team.total(sum(float(self.error(some, weights)) * len(some) for some in rows) / self.images)[0]


def own_synapses(snn: Graph, segment: Segment) -> list[Node]:
    """The nodes with weights that lead to one site alone, by linear operations."""
    if any(isinstance(node.module, (*MaxPool, Grid)) for node in segment.nodes):
        return []
    alone = {segment.site.name}
    for node in reversed(segment.nodes):
        if node.name != snn.output and all(user.name in alone for user in snn.users(node.name)):
            alone.add(node.name)
    return [node for node in segment.nodes if node.name in alone and isinstance(node.module, Synapses)]


def _put(snn: Graph, name: str, weight: Tensor) -> None:
    """Give a node a weight of its own: its module may be that of another node too."""
    module = copy.deepcopy(snn[name].module)
    module.weight = nn.Parameter(weight, requires_grad=False)
    snn.replace_module(name, module)
