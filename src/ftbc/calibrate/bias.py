"""SNN Calibration, the light pipeline (SNNC-LP): one bias for each channel, the same at every step.

Layer by layer, with s the spikes (of value theta), a the ANN's activation and the mean over batch and positions:

    bias <- bias + mean(a) - mean(sbar) ,   sbar = 1/T sum_t s[t]                                (1)

The bias of the convolution or linear layer enters the membrane at each step, as b[t] does; so (1) is added to every row
of b, and the weights stay what they are. One pass of the network over the images, each neuron fired twice: once to know
sbar, once with its new bias, from which the next layer learns (`in_order.py`).
Reference: Li et al., ICML 2021 (SNN Calibration), section 4.2; activations are not clipped at theta, as in its code.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ftbc.calibrate.base import Calibration
from ftbc.calibrate.in_order import Site, activations, in_order
from ftbc.calibrate.widen import widen_bias
from ftbc.errors import RecipeError
from ftbc.neuron.functional import mean_over
from ftbc.processes import ALONE, Team
from ftbc.settings import Piece


@dataclass(frozen=True)
class BiasCorrection(Piece):
    """Biases by the rule (1), from ``batches`` batches of ``batch`` images, each through all layers."""

    batch: int = 128
    batches: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.batch, self.batches) < 1:
            raise RecipeError(f"{self}: batch and batches must be at least 1")

    def __call__(self, calibration: Calibration) -> None:
        """Correct the biases of every spiking layer in place."""
        snn, steps = calibration.snn, calibration.steps
        sites = calibration.neurons()
        for node in sites:
            if node.module.bias.shape[1:] == (1,):
                widen_bias(node, "channel")
        done, total = 0, self.batches * len(sites)
        for chosen in calibration.draw(self.batch, self.batches):
            x, team = calibration.part(chosen), calibration.team
            for site, a in zip(in_order(snn, x, steps), activations(calibration.ann, x), strict=True):
                channels = a.new_empty(a.shape[1])
                missing = mean_over(a, channels, team) - mean_over(mean_spikes(site, team), channels)
                neuron = site.neuron
                neuron.bias = neuron.bias + (missing if neuron.bias.ndim == 2 else neuron.spread(missing))
                done += 1
                calibration.progress("calibrating biases", done, total)


def mean_spikes(site: Site, team: Team = ALONE) -> Tensor:
    """The mean of a site's spikes over steps and images, per neuron: ``[1, C, ...]``."""
    total, count = None, 0
    for spikes in site.spikes():
        sums = spikes.mean(0).sum(0, keepdim=True)
        total, count = sums if total is None else total + sums, count + spikes.shape[1]
    assert total is not None
    return total / count if team.size == 1 else team.mean(total, count).to(total.dtype)
