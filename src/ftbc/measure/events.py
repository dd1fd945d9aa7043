"""How many spikes carry a value, whichever way neurons code: what a synapse is told at each step.

Engines compute with values. Most neurons send one spike for each value that is not zero; others several, or only when
a value is switched on or off, or departs from the mean of those before (`Spiking.sends`).
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from ftbc.graph.ir import Graph
from ftbc.graph.ops import AveragePool, Concat, Reshape
from ftbc.neuron.scale import CHANNELWISE, factor_behind
from ftbc.neuron.spiking import Sends, Spiking

_SAME = 1e-5
"""Values whose relative distance is smaller differ by rounding alone: the smallest change is far larger."""


def occurrences(values: Tensor) -> Tensor:
    """1 where a value is not zero, in its own dtype: several times faster to sum than `torch.count_nonzero`."""
    return values.sign().abs_()


class Events:
    """Counts the spikes behind values that come in order, some steps at a time; step 0 begins anew.

    unit: the value of one spike, broadcastable to the values, for neurons that send several at once; None counts one.
    """

    def __init__(self, sends: Sends, unit: Tensor | None = None) -> None:
        self.sends = sends
        self.unit = unit
        self._before: Tensor | None = None

    def __call__(self, values: Tensor, start: int) -> Tensor:
        """The number of spikes for each entry of ``values`` ``[T, N, ...]``, which begin at step ``start``."""
        if self.sends == "bursts" and self.unit is not None:
            return (values.abs() / self.unit - _SAME).ceil_()
        if self.sends in ("switches", "changes"):
            return self._departures(values, start)
        return occurrences(values)

    def _departures(self, values: Tensor, start: int) -> Tensor:
        """1 where a value is not the one before, or not the mean of all before."""
        before = torch.zeros_like(values[0]) if start == 0 or self._before is None else self._before
        found = torch.empty_like(values)
        for t, value in enumerate(values, start):
            known = before if self.sends == "switches" else before / max(t, 1)
            found[t - start] = (value - known).abs() > _SAME * torch.maximum(value.abs(), known.abs())
            before = value if self.sends == "switches" else before + value
        self._before = before
        return found


def of_neurons(graph: Graph) -> dict[str, Events]:
    """Counts the spikes of each layer of neurons, by name."""
    found = {}
    for node in graph.of_type(Spiking):
        assert isinstance(node.module, Spiking)
        found[node.name] = Events(node.module.sends, node.module.spread(node.module.threshold))
    return found


def of_values(graph: Graph, values: Iterable[str]) -> dict[str, Events]:
    """Counts the spikes behind each of some values, by name."""
    kinds: set[Sends] = {node.module.sends for node in graph if isinstance(node.module, Spiking)}
    sends: Sends = next(iter(kinds)) if len(kinds) == 1 else "spikes"
    units = _units(graph) if sends == "bursts" else {}
    return {name: Events(sends, units.get(name)) for name in values}


def _units(graph: Graph) -> dict[str, Tensor]:
    """The value of one spike, ``[1, C, ...]``, of neurons and behind operations that treat each channel alike."""
    units: dict[str, Tensor] = {}
    for node in graph:
        if isinstance(node.module, Spiking):
            units[node.name] = node.module.spread(node.module.threshold).unsqueeze(0)
        elif isinstance(node.module, (*AveragePool, *CHANNELWISE, Reshape, Concat)):
            before = [units[name] for name in node.inputs if name in units and _per_channel(units[name])]
            unit = factor_behind(node, [*before], graph) if len(before) == len(node.inputs) else None
            if unit is not None:
                units[node.name] = unit
    return units


def _per_channel(unit: Tensor) -> bool:
    return unit.numel() in (1, unit.shape[1])


def image_is_sent_once(graph: Graph) -> bool:
    """Whether neurons code changes alone: an image that stays the same is then told at the first step."""
    return any(isinstance(node.module, Spiking) and node.module.sends in ("switches", "changes") for node in graph)
