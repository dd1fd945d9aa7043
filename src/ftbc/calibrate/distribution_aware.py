"""Distribution-aware correction of neurons that see all steps at once: of their currents, and of their spikes.

The network runs beside the ANN. Batch after batch, layer after layer and channel by channel,

    psi <- (1 - m) psi + m ( mean(z) - mean(z') )           z, a: the ANN's input to the site, and its activation
    phi <- (1 - m) phi + m ( mean(a) - mean(a') )           z': the mean current; a': the mean spikes, with psi and phi

psi is added to the current of each step, phi to the size of a spike; the means are over batch and positions, and the
layers behind read a'. Where both networks are equal, as for a QCFS network with T = L, nothing is corrected. These
neurons depend on the mean of their currents alone, so that one pass with mean spikes stands for all T steps, and the
ANN needs to see each image only once.
Reference: Hao et al., ICML 2025, and its released code (DA-QCFS; m = 0.01 and one pass over the training images).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ftbc.calibrate.base import Calibration
from ftbc.errors import RecipeError
from ftbc.graph.ir import INPUT, Graph, Node
from ftbc.graph.ops import Activation
from ftbc.neuron.functional import mean_over
from ftbc.neuron.parallel import ParallelFire
from ftbc.processes import Team
from ftbc.settings import Piece
from ftbc.simulate.stepwise import Stepper

_AT_ONCE = 64


@dataclass(frozen=True)
class DistributionAware(Piece):
    """``batches`` corrections from ``batch`` images each, drawn anew; momentum: the weight m of the newest."""

    momentum: float = 0.05
    batch: int = 64
    batches: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.momentum <= 1 or min(self.batch, self.batches) < 1:
            raise RecipeError(f"{self}: momentum must be above 0 and at most 1, batch and batches at least 1")

    def __call__(self, calibration: Calibration) -> None:
        """Correct currents and spikes of every layer in place."""
        images, team, ann = calibration.images, calibration.team, _Means(calibration.ann)
        for part in images[team.own(len(images))].split(_AT_ONCE):
            ann.see(part)
        ann.share(team)
        sites = {node.name: _Site(node, self.momentum, images, team) for node in calibration.neurons()}

        def corrected(node: Node, z: Tensor) -> Tensor:
            if node.name not in sites:
                return node.module(z)
            return sites[node.name].correct(z, *(means.mean(0) for means in ann.of(node.name, chosen)))

        stepper = Stepper(calibration.snn, constant=True, cell=corrected)
        for done in range(self.batches):
            chosen = next(calibration.draw(self.batch))
            stepper.step(calibration.part(chosen))
            stepper.reset()
            calibration.progress("calibrating", done + 1, self.batches)


class _Site:
    """A layer at its corrections."""

    def __init__(self, node: Node, momentum: float, like: Tensor, team: Team) -> None:
        if not isinstance(node.module, ParallelFire):
            raise RecipeError(f"DistributionAware is for neuron.Parallel() alone, but {node.place} is of another kind")
        self.neurons, self.momentum, self.team = node.module, momentum, team
        channels = node.shape[0]
        if self.neurons.threshold.shape == (1,):
            self.neurons.threshold = self.neurons.threshold.expand(channels).clone()
            self.neurons.initial = self.neurons.initial.expand(channels).clone()
        self.bias = self.neurons.bias
        self.psi, self.phi = like.new_zeros(channels), like.new_zeros(channels)

    def correct(self, z: Tensor, mean_z: Tensor, mean_a: Tensor) -> Tensor:
        """The mean spikes for mean currents ``[N, C, ...]``; psi and phi move towards the ANN's means ``[C]``."""
        neurons, theta = self.neurons, self.neurons.threshold
        self.psi = torch.lerp(self.psi, mean_z - self._mean(z), self.momentum)
        neurons.bias = self.bias + _like(self.psi, self.bias[0])
        a = neurons.mean_sent(z)
        self.phi = torch.lerp(self.phi, mean_a - self._mean(a), self.momentum)
        neurons.size = theta + _like(self.phi, theta)
        return a

    def _mean(self, values: Tensor) -> Tensor:
        return mean_over(_by_image(values), self.psi, self.team)


class _Means:
    """What the ANN gives each site, and what the site makes of it: means over positions, ``[N, C]``."""

    def __init__(self, ann: Graph) -> None:
        self.ann = ann
        self.read = {node.name: node.inputs[0] for node in ann.of_type(Activation)}
        self.parts: dict[str, list[Tensor]] = {name: [] for pair in self.read.items() for name in pair}

    def see(self, x: Tensor) -> None:
        """Run some images."""

        def note(node: Node, value: Tensor) -> None:
            if node.name in self.parts:
                self.parts[node.name].append(_by_image(value))

        if INPUT in self.parts:
            self.parts[INPUT].append(_by_image(x))
        self.ann(x, note)

    def share(self, team: Team) -> None:
        """Take what the other processes have seen."""
        self.parts = {name: [team.rows(torch.cat(parts))] for name, parts in self.parts.items()}

    def of(self, site: str, images: Tensor) -> tuple[Tensor, Tensor]:
        """Of a site's input and of its activation, for these images."""
        return torch.cat(self.parts[self.read[site]])[images], torch.cat(self.parts[site])[images]


def _by_image(value: Tensor) -> Tensor:
    """Means over positions: ``[N, C]`` of ``[N, C, ...]``."""
    return value.flatten(2).mean(2) if value.ndim > 2 else value


def _like(correction: Tensor, constant: Tensor) -> Tensor:
    """A correction per channel, shaped to be added to a constant per layer, channel or neuron."""
    return correction.view(-1, *[1] * (constant.ndim - 1))
