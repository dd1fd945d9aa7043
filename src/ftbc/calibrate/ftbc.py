"""Forward Temporal Bias Correction: the method of the paper.

At each layer and step the mean spike output is moved to the mean activation, channel by channel:

    b[t] <- b[t] + alpha * ( mean(a) - mean(s[t]) )                                             (1)

with a the ANN's activation, s[t] the spikes (of value theta) at step t, and the mean over batch and positions.
Algorithm 1 of the paper prints the opposite sign; its text (b_{i+1} = b_i + c (alpha - E_i)), its theorem and the
released code agree with (1). Directly after (1) the step is fired again with the new b[t] ("update the membrane
potential immediately"), so that later steps and layers see corrected spikes.

Loop order: iteration > batch > layer > step, as in the released code. Layer l reads only spikes of calibrated
layers, and b[t] only what happened up to t, so all layers can be corrected in one run over the steps: for each
batch one pass of the ANN and T steps, instead of 2 T passes for each layer, with the same result to the last bit
(tests/calibrate/test_ftbc_oracle.py).

Reference: Wu, Bojkovic, Gu, Suo, Zou: FTBC, ECCV 2024, Algorithm 1 and section 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ftbc.calibrate.base import Calibration
from ftbc.errors import RecipeError
from ftbc.graph.ir import Node
from ftbc.neuron.functional import fire
from ftbc.neuron.integrate_fire import IntegrateFire
from ftbc.settings import Settings
from ftbc.simulate.stepwise import stepwise
from ftbc.threshold.activations import Grain, grain_shape


@dataclass(frozen=True)
class FTBC(Settings):
    """Temporal biases by the rule (1).

    alpha: size of a correction; iterations: how often; batch, batches: at each iteration ``batches`` batches of
    ``batch`` images are drawn anew; clip: aim at activations clipped at theta, which is all that a neuron can
    send (without it b[t] grows for ever where a mean activation exceeds theta); grain: what shares a bias.
    """

    alpha: float = 0.5
    iterations: int = 10
    batch: int = 128
    batches: int = 2
    clip: bool = True
    grain: Grain = "channel"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.alpha > 0 or min(self.iterations, self.batch, self.batches) < 1:
            raise RecipeError(f"{self}: alpha must be positive, iterations, batch and batches at least 1")

    def __call__(self, calibration: Calibration) -> None:
        """Correct the biases of every spiking layer in place."""
        for node in calibration.snn.of_type(IntegrateFire):
            _widen_bias(node, self.grain)
        images, total = calibration.images, self.iterations
        for iteration in range(total):
            order = torch.randperm(len(images), generator=calibration.generator)[: self.batch * self.batches]
            for chosen in order.split(self.batch):
                self.correct(calibration, images[chosen.to(images.device)])
            calibration.progress("calibrating", iteration + 1, total)

    def correct(self, calibration: Calibration, x: Tensor) -> None:
        """One update of every b[t] from one batch."""
        target = self.targets(calibration, x)

        def corrected_step(node: Node, current: Tensor) -> Tensor:
            neuron = node.module
            if not isinstance(neuron, IntegrateFire):
                return neuron(current)
            theta, b = neuron.spread(neuron.threshold), neuron.bias[neuron.t]
            u = neuron.charge(current)
            s, _ = fire(u + neuron.spread(b), theta)
            b += self.alpha * (target[node.name] - _mean(s, b))
            s, neuron.v = fire(u + neuron.spread(b), theta)
            neuron.t += 1
            return s

        for _ in stepwise(calibration.snn, x, calibration.steps, cell=corrected_step):
            pass

    def targets(self, calibration: Calibration, x: Tensor) -> dict[str, Tensor]:
        """The mean activation that each neuron site should reach, shaped as a row of its bias."""
        means: dict[str, Tensor] = {}

        def keep_mean(node: Node, a: Tensor) -> None:
            neuron = calibration.snn[node.name].module
            if isinstance(neuron, IntegrateFire):
                reachable = torch.minimum(a, neuron.spread(neuron.threshold)) if self.clip else a
                means[node.name] = _mean(reachable, neuron.bias[0])

        calibration.ann(x, keep_mean)
        return means


def _mean(values: Tensor, like: Tensor) -> Tensor:
    """Mean over the batch and over all that shares an entry of ``like`` (``[1]``, ``[C]`` or ``[C, H, W]``)."""
    if like.ndim == values.ndim - 1 and like.shape == values.shape[1:]:
        return values.mean(0)
    if like.numel() == 1:
        return values.mean().reshape(1)
    return values.mean([d for d in range(values.ndim) if d != 1])


def _widen_bias(node: Node, grain: Grain) -> None:
    """Give a neuron's bias one entry per layer, channel or neuron, keeping the values it has."""
    neuron = node.module
    assert isinstance(neuron, IntegrateFire)
    shape = grain_shape(grain, node.shape)
    if neuron.bias.shape[1:] == shape:
        return
    current = torch.stack([neuron.spread(row).expand(node.shape) for row in neuron.bias])
    if grain == "layer":
        current = current.flatten(1).mean(1, keepdim=True)
    elif grain == "channel" and neuron.rank > 1:
        current = current.flatten(2).mean(2)
    neuron.bias = current.reshape(neuron.steps, *shape).contiguous()
