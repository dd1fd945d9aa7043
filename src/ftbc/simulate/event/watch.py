"""Looks at an engine that runs on events, and weighs the spikes that it sends."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ftbc.graph.ir import Graph, Node
from ftbc.neuron.temporal import Temporal
from ftbc.simulate.event.cells import Plan
from ftbc.simulate.event.packed import Packed
from ftbc.simulate.scales import Scales


class Watch:
    """Puts the spikes behind some values on scales while an engine runs.

    Most of these values are packed. What lies between neurons and weights and was folded into the jobs of a layer (a
    slice, a pool) has no words: it is worked out from the values before it, the ``unfolded`` ones.
    """

    def __init__(self, graph: Graph, plan: Plan, scales: Scales) -> None:
        self.plan, self.scales = plan, scales
        self.places: dict[str, np.ndarray] = {}
        self.unfolded: set[str] = set()
        has_words = plan.cells.keys() | plan.packed
        waiting = [name for name in scales.weights if name not in has_words]
        while waiting:
            name = waiting.pop()
            if name not in self.unfolded:
                self.unfolded.add(name)
                if not self._is_at_hand(graph[name]):
                    waiting += graph[name].inputs

    def _is_at_hand(self, node: Node) -> bool:
        return isinstance(node.module, Temporal) or node.name in self.plan.dense

    def see(
        self, node: Node, dense: dict[str, Tensor], packed: dict[str, Packed], unfolded: dict[str, Tensor], steps: int
    ) -> None:
        """Look at what a node has made of some images."""
        if node.name in self.unfolded:
            if not self._is_at_hand(node):
                unfolded[node.name] = node.run(*[unfolded[name] for name in node.inputs])
            elif node.name in dense:
                unfolded[node.name] = dense[node.name]
            else:
                unfolded[node.name] = packed[node.name].unpack(torch.float32)
        if node.name not in self.scales.weights:
            return
        weights = self.scales.weights[node.name]
        if node.name not in packed:
            spikes = (unfolded[node.name] != 0).unflatten(0, (steps, -1)).sum(1)
            self.scales.add(node.name, spikes.flatten(1).double() @ weights.flatten(1).t())
            return
        if node.name not in self.places:
            self.places[node.name] = packed[node.name].places(weights)
        self.scales.add(node.name, packed[node.name].weigh(self.places[node.name]))
