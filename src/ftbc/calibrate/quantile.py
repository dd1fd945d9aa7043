"""Exact temporal biases by selection: what FTBC iterates towards, in one step.

FTBC moves b[t] until the mean of the spikes at step t is the mean activation. With u the membranes before the bias,

    mean( theta * [u + b[t] >= theta] ) = mean(a)      <=>      b[t] = theta - q ,

where q is the value that a share mean(a)/theta of all u of the channel reach: with P of them, any value between the
m-th and the (m+1)-th largest, m = round(P mean(a) / theta); the middle is taken. m/P differs from mean(a)/theta by at
most 1/2P, and by more only where values are equal: those fire together or not at all, whichever is nearer, and q lies
in the next gap, so that no neuron stands on its threshold to the last bit. Both are found by selection, without
sorting. Then the step is fired with the new b[t], and the next one sees the membranes that are left.

A channel that should be silent (m = 0) or fire always (m = P) and does so already keeps its bias: nothing is known
about how far away other values may lie.
Reference: Theorem 1 of the FTBC paper (Wu et al., ECCV 2024), whose fixed point this is.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ftbc.calibrate.walk import Layer, LayerCalibrator
from ftbc.neuron.functional import fire

_ALIKE = 1e-5
"""Membranes that differ by less, in units of theta, differ by rounding alone."""


@dataclass(frozen=True)
class QuantileBias(LayerCalibrator):
    """Temporal biases at which mean spikes equal mean activations.

    clip: aim at activations clipped at theta, which is all that a neuron can send; rows: from about how many currents
    of a channel, over steps, images and positions; from all if there are no more.
    """

    clip: bool = True
    rows: int = 65536

    def at(self, layer: Layer) -> None:
        """Set the biases of one layer."""
        neuron = layer.neuron
        if neuron is None:
            return
        sample = layer.sample(self.rows)
        neuron.bias = quantile_bias(sample.x, sample.a, neuron.threshold, neuron.initial, neuron.bias, self.clip)


def quantile_bias(x: Tensor, a: Tensor, theta: Tensor, v0: Tensor, bias: Tensor, clip: bool = True) -> Tensor:
    """b ``[T, C]`` for currents x ``[T, C, P]``, activations a ``[C, P]``, theta and v0 ``[C]``; bias: what it was.

    >>> x = torch.linspace(0, 1, 1001).expand(1, 1, 1001)
    >>> quantile_bias(x, x[0], torch.ones(1), torch.zeros(1), torch.zeros(1, 1)).round(decimals=2)
    tensor([[0.5000]])
    """
    reachable = torch.minimum(a, theta.unsqueeze(1)) if clip else a
    places = a.shape[1]
    wanted = (reachable.double().mean(1) / theta.double() * places).round().clamp(0, places).long().tolist()
    v = v0.unsqueeze(1).expand_as(a)
    b = bias.clone()
    for t, current in enumerate(x):
        u = v + current
        for channel, count in enumerate(wanted):
            b[t, channel] = _bias(u[channel], count, theta[channel], bias[t, channel])
        _, v = fire(u + b[t].unsqueeze(1), theta.unsqueeze(1))
    return b


def _bias(u: Tensor, count: int, theta: Tensor, bias: Tensor) -> Tensor:
    """The bias at which ``count`` of the membranes u reach theta."""
    places = len(u)
    margin = theta / places
    if count == 0:
        return torch.minimum(bias, theta - u.max() - margin)
    if count == places:
        return torch.maximum(bias, theta - u.min() + margin)
    # The k-th smallest is the (places - k + 1)-th largest.
    last_in = u.kthvalue(places - count + 1).values
    first_out = u.kthvalue(places - count).values
    alike = _ALIKE * theta
    if last_in - first_out <= alike:
        above, below = u[u > last_in + alike], u[u < first_out - alike]
        if 2 * (count - len(above)) >= places - len(above) - len(below):
            last_in, first_out = first_out, below.max() if len(below) else first_out - 2 * margin
        else:
            last_in, first_out = above.min() if len(above) else last_in + 2 * margin, last_in
    return theta - (last_in + first_out) / 2
