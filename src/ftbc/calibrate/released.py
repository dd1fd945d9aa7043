"""FTBC as the released code for QCFS networks computes it, which is another algorithm than the paper's.

For each batch, layer by layer, with x[t] the layer's currents (the layers before have their new biases):

    u = v + x[t] ,   e = theta [u >= theta] - a ,   u <- u - e ,   v <- u - theta [u >= theta]     v = v[0] at first
    b[t] <- b[t] - alpha * mean(e)                                                               (1)

The replay that finds e leaves b out, and takes the error back from each neuron, where the network that runs afterwards
has b and only its mean over a channel. So e does not see what (1) has already corrected: b grows with every batch, and
alpha times the number of batches is the size of the correction (0.4 times 3 in the released script; tens of batches
overshoot). `FTBC` is the rule of the paper's text; this one is for comparison with published figures.
Reference: Wu et al., ECCV 2024, released code (QCFS). There the reference ANN always has 8 levels; here those it was
trained with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ftbc.calibrate.base import Calibration
from ftbc.calibrate.in_order import Site, activations, in_order
from ftbc.calibrate.widen import widen_bias
from ftbc.errors import RecipeError
from ftbc.neuron.functional import fire
from ftbc.processes import ALONE, Team
from ftbc.settings import Piece


@dataclass(frozen=True)
class ReleasedFTBC(Piece):
    """Temporal biases by the rule (1), from ``batches`` batches of ``batch`` images."""

    alpha: float = 0.4
    batch: int = 32
    batches: int = 3
    timeless: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.alpha > 0 or min(self.batch, self.batches) < 1:
            raise RecipeError(f"{self}: alpha must be positive, batch and batches at least 1")

    def __call__(self, calibration: Calibration) -> None:
        """Correct the biases of every spiking layer in place."""
        sites = calibration.plain_neurons("ReleasedFTBC")
        for node in sites:
            widen_bias(node, "channel")
        for done, chosen in enumerate(calibration.draw(self.batch, self.batches), 1):
            x = calibration.part(chosen)
            visits = zip(in_order(calibration.snn, x, calibration.steps), activations(calibration.ann, x), strict=True)
            for site, a in visits:
                site.neuron.bias -= self.alpha * replay(site, a, calibration.team)
            calibration.progress("calibrating", done, self.batches)


def replay(site: Site, a: Tensor, team: Team = ALONE) -> Tensor:
    """The mean of e at each step and channel, ``[T, C]``."""
    neuron = site.neuron
    theta, rest = neuron.spread(neuron.threshold), [0, *range(2, a.ndim)]
    sums = a.new_zeros(site.steps, a.shape[1])
    begin = 0
    for currents in site.currents():
        target = a[begin : begin + currents.shape[1]]
        begin += currents.shape[1]
        v = neuron.spread(neuron.initial).expand_as(target)
        for t, current in enumerate(currents):
            u = v + current
            e = fire(u, theta)[0] - target
            v = fire(u - e, theta)[1]
            sums[t] += e.sum(rest)
    if team.size == 1:
        return sums * (a.shape[1] / a.numel())
    return team.mean(sums, a.numel() / a.shape[1]).to(a.dtype)
