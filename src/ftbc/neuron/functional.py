"""The integrate-and-fire neuron with soft reset, as pure functions.

    v[t] = v[t-1] + x[t] + b[t]          integrate; b is the temporal bias
    s[t] = theta * H(v[t] - theta)       fire: a spike carries the value theta
    v[t] <- v[t] - s[t]                  soft reset: what exceeds the threshold is kept

Reference: section 3.1 and the equation with b[t] in section 4 of the FTBC paper (Wu et al., ECCV 2024).
"""

from __future__ import annotations

import torch
from torch import Tensor

from ftbc.processes import ALONE, Team


def fire(v: Tensor, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Spikes of a membrane potential, and what is left of it.

    >>> s, v = fire(torch.tensor([0.4, 1.0, 2.5]), torch.tensor(1.0))
    >>> s.tolist(), v.tolist()
    ([0.0, 1.0, 1.0], [0.4000000059604645, 0.0, 1.5])
    """
    s = theta * (v >= theta)
    return s, v - s


def integrate_and_fire(x: Tensor, theta: Tensor, v: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Several steps of a layer: spikes ``[T, N, ...]`` and the membrane ``[N, ...]`` that is left.

    x: currents ``[T, N, ...]`` (a constant current is an expanded view); theta: broadcastable to one item;
    v: the membrane before; b: ``[T, 1, ...]``, broadcastable to the currents.
    """
    spikes = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    v = v.clone()
    for t in range(len(x)):
        v += x[t]
        v += b[t]
        torch.mul(v >= theta, theta, out=spikes[t])
        v -= spikes[t]
    return spikes, v


def spike_counts(x: Tensor, theta: Tensor, v: Tensor, b: Tensor) -> Tensor:
    """How many spikes a step brings, ``[C]``: x, v ``[N, C, ...]``; theta and b broadcastable to one item."""
    fired = v + x + b >= theta
    return fired.sum([d for d in range(fired.ndim) if d != 1])


def mean_over(values: Tensor, like: Tensor, team: Team = ALONE) -> Tensor:
    """Mean over the batch and over all that shares an entry of ``like`` (``[1]``, ``[C]`` or ``[C, H, W]``).

    team: the processes that share the batch, of which ``values`` are this one's.
    """
    dims = list(range(values.ndim))
    if like.ndim == values.ndim - 1 and like.shape == values.shape[1:]:
        dims = [0]
    elif like.numel() > 1:
        dims.remove(1)
    if team.size == 1:
        means = values.mean(dims)
    else:
        sums = values.sum(dims, dtype=torch.float64)
        means = team.mean(sums, values.numel() / sums.numel()).to(values.dtype)
    return means.reshape(1) if not means.ndim else means
