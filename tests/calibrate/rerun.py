"""FTBC as the released code runs it: the whole network anew for each layer and step. The oracle of one pass."""

from __future__ import annotations

import torch
from torch import Tensor

from ftbc.calibrate import FTBC, Calibration
from ftbc.graph.ir import Graph, Node
from ftbc.neuron import IntegrateFire, fire
from ftbc.simulate import Stepper


def correct_by_rerunning(method: FTBC, calibration: Calibration, x: Tensor) -> None:
    """One update of every b[t] from one batch: 2 T passes for each layer."""
    for target in calibration.snn.of_type(IntegrateFire):
        neuron = target.module
        corrected: list[tuple[Tensor, Tensor]] = []

        def cell(node: Node, current: Tensor, neuron=neuron, corrected=corrected) -> Tensor:
            if node.module is not neuron:
                return node.module(current)
            # The layer under correction: fire as usual and remember the charge, to fire again with the new bias.
            charge = (neuron.spread(neuron.initial) if neuron.v is None else neuron.v) + current
            spikes, _ = fire(charge + neuron.spread(neuron.bias[neuron.t]), neuron.spread(neuron.threshold))
            corrected[:] = [(charge, spikes)]
            return spikes

        stepper = Stepper(calibration.snn, constant=True, cell=cell)
        for t in range(calibration.steps):
            activation = _activation(calibration.ann, target.name, x)
            stepper.step(x)
            charge, spikes = corrected[0]
            theta = neuron.spread(neuron.threshold)
            reachable = torch.minimum(activation, theta) if method.clip else activation
            neuron.bias[t] += method.alpha * (_channel_mean(reachable) - _channel_mean(spikes))
            _, neuron.v = fire(charge + neuron.spread(neuron.bias[t]), theta)
            neuron.t = t + 1
        stepper.reset()


def _activation(ann: Graph, name: str, x: Tensor) -> Tensor:
    seen: dict[str, Tensor] = {}
    ann(x, lambda node, value: seen.__setitem__(node.name, value))
    return seen[name]


def _channel_mean(values: Tensor) -> Tensor:
    return values.mean([d for d in range(values.ndim) if d != 1])
