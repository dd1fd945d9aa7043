"""The activations that networks are trained with for conversion: one neuron site for each call."""

from __future__ import annotations

from ftbc.activation import QCFS, RateNorm, SlipReLU, ThresholdReLU
from ftbc.graph import ops
from ftbc.graph.call import Call, Value
from ftbc.graph.rules.arithmetic import affine
from ftbc.graph.rules.registry import rule


@rule("ThresholdReLU")
def _threshold_relu(call: Call, module: ThresholdReLU, x: Value) -> Value:
    return call.emit(ops.Activation(float(module.threshold)), x)


@rule("QCFS")
def _qcfs(call: Call, module: QCFS, x: Value) -> Value:
    return call.emit(ops.Staircase(float(module.threshold), module.levels), x)


@rule("SlipReLU")
def _slip_relu(call: Call, module: SlipReLU, x: Value) -> Value:
    own = (module.slope, module.clip_shift, module.step_shift)
    return call.emit(ops.Staircase(float(module.threshold), module.levels, *own), x)


@rule("RateNorm")
def _rate_norm(call: Call, module: RateNorm, x: Value) -> Value:
    # Divided before and not behind the neuron: there it folds into the weights, whatever follows.
    return call.emit(ops.Activation(1.0), affine(call, x, 1 / module.threshold, 0.0, suffix="_scale"))
