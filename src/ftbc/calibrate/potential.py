"""SNN Calibration, the advanced pipeline (SNNC-AP), second step: an initial potential for each neuron.

Layer by layer, with the mean over the images alone:

    v[0] <- v[0] + T ( mean(a) - mean(sbar) ) ,   sbar = 1/T sum_t s[t]                          (1)

which is what the spikes of T steps miss in the mean, put into the membrane before the first. It moves a neuron's mean
by at most what its rounding leaves open: a membrane that is too full or too empty to fire in T steps changes nothing.
One pass of the network over the images, each neuron fired twice (`in_order.py`).
Reference: Li et al., ICML 2021 (SNN Calibration), section 4.3. Its code starts from v[0] = 0 and theta/2T at each step.
"""

from __future__ import annotations

from dataclasses import dataclass

from ftbc.calibrate.base import Calibration
from ftbc.calibrate.bias import mean_spikes
from ftbc.calibrate.in_order import activations, in_order
from ftbc.errors import RecipeError
from ftbc.neuron.functional import mean_over
from ftbc.settings import Piece


@dataclass(frozen=True)
class PotentialCorrection(Piece):
    """Initial potentials by the rule (1), from one batch of ``batch`` images."""

    batch: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch < 1:
            raise RecipeError(f"{self}: batch must be at least 1")

    def __call__(self, calibration: Calibration) -> None:
        """Correct the initial potentials of every spiking layer in place."""
        x, team = calibration.part(next(calibration.draw(self.batch))), calibration.team
        total = len(calibration.neurons())
        visits = zip(in_order(calibration.snn, x, calibration.steps), activations(calibration.ann, x), strict=True)
        for done, (site, a) in enumerate(visits, 1):
            neuron = site.neuron
            missing = calibration.steps * (mean_over(a, a.new_empty(a.shape[1:]), team) - mean_spikes(site, team)[0])
            neuron.initial = (neuron.spread(neuron.initial) + missing).contiguous()
            calibration.progress("calibrating potentials", done, total)
