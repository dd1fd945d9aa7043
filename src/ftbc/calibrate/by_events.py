"""A calibration of one step after another on events: only spikes that occurred are propagated (the extra ``fast``).

`FTBC` asks at each layer and step how much would be sent, moves the bias, and lets the neurons fire. Where the event
engine takes all neurons, and spikes tell values, it does that for it, layer by layer in the place of step by step:
a layer reads spikes of the layers before it alone, and b[t] only what happened up to t, so that both give the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ftbc.calibrate.base import Calibration
from ftbc.graph.ir import Node
from ftbc.neuron.integrate_fire import IntegrateFire
from ftbc.neuron.spiking import Spiking
from ftbc.simulate.event import available
from ftbc.simulate.event.rules import rule_of

if TYPE_CHECKING:
    from ftbc.simulate.event.corrected import CorrectedEngine

WORTH = 1 << 31
"""Steps of neurons, over all batches, from which on it is worth while to compile the engine's loops if need be."""

Rule = Callable[[Node, int, Tensor], None]
"""Changes the bias of a layer at step t, given the mean of what it would send, shaped as a row of the bias."""


class ByEvents:
    """Runs batches of a calibration's spiking network whose weights, thresholds and potentials stay as they are."""

    def __init__(self, calibration: Calibration, engine: CorrectedEngine) -> None:
        self._calibration = calibration
        self._engine = engine
        # What the engine's own constants were made with: they change by what the biases have changed since.
        self._begun = {node.name: _neurons(node).bias.double().clone() for node in calibration.neurons()}

    @classmethod
    def of(cls, calibration: Calibration, means: Mapping[str, Tensor], batch: int, batches: int) -> ByEvents | None:
        """For so many batches of so many images; None where the network must go step by step, or had better.

        means: what each layer is to send on average, from which follows how many events there will be.
        """
        neurons, kinds = calibration.neurons(), (torch.float32, torch.float64)
        known = all(_has_counts(_neurons(node)) for node in neurons)
        here = all(tensor.is_cpu and tensor.dtype in kinds for tensor in calibration.snn.tensors())
        work = sum(torch.Size(node.shape).numel() for node in neurons) * calibration.steps * batch * batches
        if not (known and here and available()) or work < WORTH:
            return None
        from ftbc.simulate.event.corrected import CorrectedEngine

        rates = {node.name: _rate(_neurons(node), means[node.name]) for node in neurons}
        engine = CorrectedEngine(calibration.snn, rates)
        return cls(calibration, engine) if engine.takes(calibration.steps, batch) else None

    def correct(self, x: Tensor, rule: Rule) -> None:
        """Run images from rest, and let the rule change each bias before it is used."""
        snn, team = self._calibration.snn, self._calibration.team

        def choose(name: str, t: int, counts: Tensor) -> Tensor:
            neuron, constants = _neurons(snn[name]), self._engine.constants(name)[t]
            if constants.ndim > 1:  # a bias for each neuron; the engine takes every item for a plane
                counts = counts.view(snn[name].shape)
            places = len(x) * torch.Size(snn[name].shape).numel() // counts.numel()
            rule(snn[name], t, neuron.mean_of_counts(counts, places, team))
            moved = neuron.bias[t].double() - self._begun[name][t]
            theta = neuron.threshold.double()
            return constants + (moved / (neuron.spread(theta) if moved.ndim > 1 else theta)).view_as(constants)

        self._engine.correct(x, self._calibration.steps, choose)


def _neurons(node: Node) -> Spiking:
    assert isinstance(node.module, Spiking)
    return node.module


def _has_counts(neurons: Spiking) -> bool:
    """Whether the mean of what they send follows from the number of their spikes."""
    rule = rule_of(neurons)
    values = type(neurons) is IntegrateFire if rule is None else rule.bounds is not None
    return values and neurons.threshold.ndim == 1


def _rate(neurons: Spiking, means: Tensor) -> float:
    theta = neurons.threshold if means.ndim == 1 else neurons.spread(neurons.threshold)
    return float((means / theta).mean())
