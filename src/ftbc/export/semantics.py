"""What a program makes of a neuron that it reads from a file: which reset, how many spikes, where it is cut off.

    v[t] = keep v[t-1] + x[t] + b[t]
    n[t] = H(v[t] - theta)                     one spike at most, or with `several`   floor(v[t] / theta)
    v[t] <- v[t] - theta n[t]                  soft reset, or with `hard`   v[t] <- 0 where n[t] > 0
    v[t] <- max(v[t], lowest theta)            where a program cuts membranes off

Ours is soft, with one spike at most, which comes at v = theta already. NIR has no word for it, so importers differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ftbc.graph.ir import Node
from ftbc.neuron import IntegrateFire
from ftbc.simulate.stepwise import Cell


@dataclass(frozen=True)
class Semantics:
    """How one program runs integrate-and-fire neurons.

    hard: the reset forgets what exceeds the threshold; strict: a spike needs v > theta; several: a step can bring
    several spikes; lowest: the smallest membrane, in thresholds; keep: what is left of the membrane after each step.
    """

    name: str
    hard: bool = False
    strict: bool = False
    several: bool = False
    lowest: float | None = None
    keep: float = 1.0

    @property
    def in_words(self) -> str:
        """The differences to our neurons, for tables."""
        words = ["hard reset"] if self.hard else ["soft reset"]
        words += ["fires above the threshold only"] if self.strict else []
        words += ["several spikes a step"] if self.several else []
        words += [f"membranes end at {self.lowest:g}"] if self.lowest is not None else []
        words += [f"membranes decay to {self.keep:g} at each step"] if self.keep != 1 else []
        return ", ".join(words)

    def fire(self, v: Tensor, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Spikes of a membrane potential, each worth theta, and what is left of it.

        >>> v, theta = torch.tensor([-3.0, 0.5, 1.0, 2.5]), torch.tensor(1.0)
        >>> [part.tolist() for part in Semantics("soft").fire(v, theta)]
        [[0.0, 0.0, 1.0, 1.0], [-3.0, 0.5, 0.0, 1.5]]
        >>> [part.tolist() for part in Semantics("hard", hard=True, strict=True).fire(v, theta)]
        [[0.0, 0.0, 0.0, 1.0], [-3.0, 0.5, 1.0, 0.0]]
        >>> [part.tolist() for part in Semantics("several", several=True, lowest=-1.0).fire(v, theta)]
        [[0.0, 0.0, 1.0, 2.0], [-1.0, 0.5, 0.0, 0.5]]
        """
        fired = v > theta if self.strict else v >= theta
        spikes = torch.floor(v / theta).clamp_(min=0) * theta * fired if self.several else theta * fired
        left = torch.where(fired, torch.zeros_like(v), v) if self.hard else v - spikes
        return spikes, left if self.lowest is None else torch.maximum(left, self.lowest * theta)

    def cell(self) -> Cell:
        """Neurons of this kind, at rest, for `simulate.stepwise`; other stateful modules do as they always do."""
        membranes: dict[str, Tensor] = {}
        taken: dict[str, int] = {}

        def step(node: Node, current: Tensor) -> Tensor:
            neuron = node.module
            if not isinstance(neuron, IntegrateFire):
                return neuron(current)
            t = taken.get(node.name, 0)
            before = membranes.get(node.name)
            v = neuron.spread(neuron.initial).expand_as(current) if before is None else before * self.keep
            v = v + current + neuron.spread(neuron.bias[t])
            spikes, membranes[node.name] = self.fire(v, neuron.spread(neuron.threshold))
            taken[node.name] = t + 1
            return spikes

        return step


SOFT = Semantics("soft reset")
