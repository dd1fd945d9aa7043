"""Forward Temporal Bias Correction: the method of the paper.

At each layer and step the mean spike output is moved to the mean activation, channel by channel:

    b[t] <- b[t] + alpha * ( mean(a) - mean(s[t]) )                                             (1)

with a the ANN's activation, s[t] the spikes (of value theta) at step t, and the mean over batch and positions.
Algorithm 1 of the paper prints the opposite sign; its text (b_{i+1} = b_i + c (alpha - E_i)), its theorem and the
released code agree with (1). Directly after (1) the step is fired again with the new b[t] ("update the membrane
potential immediately"), so that later steps and layers see corrected spikes.

Loop order: iteration > batch > layer > step, as in the released code. Layer l reads only spikes of calibrated
layers, and b[t] only what happened up to t, so all layers can be corrected in one run over the steps: T steps for
each batch instead of 2 T passes for each layer, with the same result (tests/calibrate/rerun.py is the slow form). For
the same reason a layer may run all its steps before the next layer does, which is faster on events (`by_events`). The
ANN's mean activations do not change either, so that it sees each image once, and not again at each iteration.

Neurons of other kinds are corrected in the same way: s[t] is what they send at step t, less what they take back. That
its mean is mean(a) at each step says the same of the mean up to each step.

Reference: Wu, Bojkovic, Gu, Suo, Zou: FTBC, ECCV 2024, Algorithm 1 and section 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ftbc.calibrate.base import Calibration
from ftbc.calibrate.by_events import ByEvents
from ftbc.calibrate.widen import widen_bias
from ftbc.errors import RecipeError
from ftbc.graph.ir import Node
from ftbc.neuron.functional import mean_over
from ftbc.neuron.spiking import Spiking
from ftbc.settings import Piece
from ftbc.simulate.stepwise import stepwise
from ftbc.threshold.activations import Grain

_AT_ONCE = 64


@dataclass(frozen=True)
class FTBC(Piece):
    """Temporal biases by the rule (1).

    alpha: size of a correction; iterations: how often; batch, batches: at each iteration ``batches`` batches of
    ``batch`` images are drawn anew; clip: aim at activations each of which is clipped at theta, which is all that a
    plain neuron can send in its place. The paper does not clip: there the mean of a channel makes up for what its
    large activations lose, and b[t] grows for ever where that mean exceeds theta. grain: what shares a bias.
    """

    alpha: float = 0.5
    iterations: int = 10
    batch: int = 128
    batches: int = 2
    clip: bool = True
    grain: Grain = "channel"
    timeless: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.alpha > 0 or min(self.iterations, self.batch, self.batches) < 1:
            raise RecipeError(f"{self}: alpha must be positive, iterations, batch and batches at least 1")

    def __call__(self, calibration: Calibration) -> None:
        """Correct the biases of every spiking layer in place."""
        for node in calibration.stepped_neurons("FTBC"):
            widen_bias(node, self.grain)
        total = self.iterations
        aims = None if self.grain == "neuron" else self._aims(calibration)
        batch = min(self.batch, len(calibration.images))
        means = self.targets(calibration, calibration.images[:batch]) if aims is None else _chosen(aims, slice(None))
        events = ByEvents.of(calibration, means, batch, total * self.batches)
        for iteration in range(total):
            for chosen in calibration.draw(self.batch, self.batches):
                x = calibration.part(chosen)
                # A row per neuron and image would not fit into memory: there the ANN runs again for each batch.
                target = self.targets(calibration, x) if aims is None else _chosen(aims, chosen)
                self.correct(calibration, x, target, events)
            calibration.progress("calibrating", iteration + 1, total)

    def correct(
        self,
        calibration: Calibration,
        x: Tensor,
        target: dict[str, Tensor] | None = None,
        events: ByEvents | None = None,
    ) -> None:
        """One update of every b[t] from one batch; target: what `targets` gives for it, if that is known.

        x: this process's part of the batch; the target is that of the whole. events: the faster way, if there is one.
        """
        aim = self.targets(calibration, x) if target is None else target

        def move(node: Node, t: int, mean: Tensor) -> None:
            node.module.bias[t] += self.alpha * (aim[node.name] - mean)  # type: ignore[index,operator]

        def corrected_step(node: Node, current: Tensor) -> Tensor:
            neuron = node.module
            if isinstance(neuron, Spiking):
                move(node, neuron.t, neuron.mean_output(current, calibration.team))
            return neuron(current)

        if events is not None:
            events.correct(x, move)
            return
        for _ in stepwise(calibration.snn, x, calibration.steps, cell=corrected_step):
            pass

    def targets(self, calibration: Calibration, x: Tensor) -> dict[str, Tensor]:
        """The mean activation that each neuron site should reach, shaped as a row of its bias."""
        means: dict[str, Tensor] = {}

        def keep_mean(node: Node, a: Tensor) -> None:
            neuron = calibration.snn[node.name].module
            if isinstance(neuron, Spiking):
                means[node.name] = mean_over(self._reachable(a, neuron), neuron.bias[0], calibration.team)

        calibration.ann(x, keep_mean)
        return means

    def _aims(self, calibration: Calibration) -> dict[str, Tensor]:
        """`targets` of each image alone, ``[N, ...]``: the ANN needs to see an image only once."""
        parts: dict[str, list[Tensor]] = {}

        def keep_means(node: Node, a: Tensor) -> None:
            neuron = calibration.snn[node.name].module
            if isinstance(neuron, Spiking):
                a = self._reachable(a, neuron)
                means = a.flatten(2).mean(2) if a.ndim > 2 else a
                parts.setdefault(node.name, []).append(means.mean(1, keepdim=True) if self.grain == "layer" else means)

        images, team = calibration.images, calibration.team
        for x in images[team.own(len(images))].split(_AT_ONCE):
            calibration.ann(x, keep_means)
        return {name: team.rows(torch.cat(rows)) for name, rows in parts.items()}

    def _reachable(self, a: Tensor, neuron: Spiking) -> Tensor:
        largest = neuron.largest
        return torch.minimum(a, neuron.spread(largest)) if self.clip and largest is not None else a


def _chosen(aims: dict[str, Tensor], images: Tensor | slice) -> dict[str, Tensor]:
    return {name: rows[images].mean(0) for name, rows in aims.items()}
