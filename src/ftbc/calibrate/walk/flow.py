"""The spiking network as far as it is calibrated, on all images: what has been sent is kept, the rest is worked out.

Between neurons a spiking network is linear. So what lies behind kept spikes is computed when it is asked for: over all
steps, or at once for a mean over the steps, where a convolution of the mean replaces the mean of T convolutions.
What is not linear (neurons, max-pools) is computed once over time, and kept; so is what is costly and read repeatedly.
Neurons that wait for all steps look at the sum of their currents alone: they never run over time, and a count is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from ftbc.calibrate.walk.spikes import Counts, Dense, Kept, Spikes, Weights, keep
from ftbc.graph.ir import INPUT, Graph, Node
from ftbc.graph.ops import MaxPool, Synapses
from ftbc.neuron.integrate_fire import IntegrateFire
from ftbc.neuron.max_pool import SpikingMaxPool
from ftbc.neuron.parallel import ParallelFire
from ftbc.neuron.temporal import Temporal
from ftbc.processes import ALONE, Team
from ftbc.simulate.layerwise import portion
from ftbc.simulate.schedule import varying
from ftbc.simulate.sums import needs

_ROOM = 1 << 24
"""Bytes of the largest value of a part."""


class Flow:
    """A spiking graph and images in parts, each small enough to be run over all steps at once.

    The graph may change while it is walked through, as long as nothing changes before what is kept. team: the
    processes that share the parts; ``parts`` are this one's, an empty one if there are more processes than parts.
    """

    def __init__(self, graph: Graph, images: Tensor, steps: int, team: Team = ALONE) -> None:
        self.graph = graph
        self.steps = steps
        sums = None if graph.of_type(SpikingMaxPool) else needs(graph, input_varies=False)
        self._by_sums = sums is not None
        whole = images.split(portion(graph, steps, _ROOM)[0] if sums is None else sums.images(graph, steps, _ROOM))
        own = team.own(len(whole))
        self.sizes = [len(part) for part in whole]
        self.before = own.start
        self.parts = whole[own] or (images[:0],)
        self.kept: dict[str, list[Kept]] = {}

    def starts(self) -> list[int]:
        """The number of the first image of each part, among those of all processes."""
        first = sum(self.sizes[: self.before])
        sizes = [len(part) for part in self.parts]
        return [first + sum(sizes[:index]) for index in range(len(sizes))]

    def over_time(self, name: str, part: int, given: dict[str, Tensor] | None = None) -> Tensor:
        """A value at all steps, ``[T, n, ...]``; a constant one is an expanded view. given: as for `mean`."""
        changing = varying(self.graph, input_varies=False)

        def run(node: Node, inputs: list[Tensor]) -> Tensor:
            if node.name not in changing:
                return node.run(*inputs)
            # Joined, not expanded and flattened: that would lose the order of a value in memory.
            steps = [
                value if name in changing else torch.cat([value] * self.steps)
                for name, value in zip(node.inputs, inputs, strict=True)
            ]
            if not isinstance(node.module, Temporal):
                return node.run(*steps)
            node.module.reset()
            sent = node.module.run(steps[0].unflatten(0, (self.steps, -1)))
            node.module.reset()
            return sent.flatten(0, 1)

        value = self._work_out(name, given or {}, lambda kept: kept[part].values().flatten(0, 1), part, run)
        return value.unflatten(0, (self.steps, -1)) if name in changing else value.expand(self.steps, *value.shape)

    def mean(self, name: str, part: int, weights: Weights, given: dict[str, Tensor] | None = None) -> Tensor:
        """The weighted mean over the steps of a value, ``[n, ...]``; given: values to take in the place of others."""
        return self._work_out(
            name, given or {}, lambda kept: kept[part].mean(weights), part, lambda node, inputs: node.run(*inputs)
        )

    def _work_out(
        self,
        name: str,
        given: dict[str, Tensor],
        taken: Callable[[list[Kept]], Tensor],
        part: int,
        run: Callable[[Node, list[Tensor]], Tensor],
    ) -> Tensor:
        """A value from those that are given or kept; taken: what to make of kept ones, run: how a node runs.

        A loop and no recursion of closures, which would hold on to values of many megabytes until Python looks for
        cycles; and what no node ahead reads is let go at once.
        """
        known = {INPUT, *self.kept, *given}
        missing, waiting = set(), [name]
        while waiting:
            one = waiting.pop()
            if one not in known and one not in missing:
                missing.add(one)
                waiting += self.graph[one].inputs
        way = [node for node in self.graph if node.name in missing]
        last = {value: node.name for node in way for value in node.inputs}
        values = {}

        def find(one: str) -> Tensor:
            if one in given:
                return given[one]
            if one not in values:
                values[one] = self.parts[part] if one == INPUT else taken(self.kept[one])
            return values[one]

        for node in way:
            values[node.name] = run(node, [find(value) for value in node.inputs])
            for value in node.inputs:
                if last[value] == node.name:
                    values.pop(value, None)
        return find(name)

    def keep(self, name: str, sent: Iterable[Tensor] | None = None) -> None:
        """Run a node on all images and keep what it sends; then forget what nobody needs any more.

        sent: that of each part of the images, where it is known.
        """
        node = self.graph[name]
        if sent is None:
            self.kept[name] = [self._run(node, part) for part in range(len(self.parts))]
        else:
            self.kept[name] = [self._keep(node, value) for value in sent]
        needed = self._needed()
        self.kept = {value: parts for value, parts in self.kept.items() if value in needed}

    def must_keep(self, name: str) -> bool:
        """Whether a value has to be kept once it is final."""
        if name not in varying(self.graph, input_varies=False):
            return False
        if isinstance(self.graph[name].module, (Temporal, *MaxPool)):
            return True
        # A mean is soon worked out anew; all steps are not.
        return not self._by_sums and len(self.graph.users(name)) > 1 and self._costly(name)

    def bytes(self) -> int:
        """The memory of all that is kept."""
        return sum(part.bytes() for parts in self.kept.values() for part in parts)

    def _run(self, node: Node, part: int) -> Kept:
        """What a node sends on a part of the images."""
        module = node.module
        if not (self._by_sums and isinstance(module, ParallelFire)):
            return self._keep(node, self.over_time(node.name, part))
        mean = self.mean(node.inputs[0], part, torch.full((self.steps,), 1 / self.steps, dtype=torch.float64))
        return Counts(module.counts(mean * self.steps, self.steps), module.spread(module.size), self.steps)

    def _keep(self, node: Node, values: Tensor) -> Kept:
        if type(node.module) is IntegrateFire:
            return Spikes(values, node.module.spread(node.module.threshold))
        return keep(values) if isinstance(node.module, Temporal) else Dense(values.clone())

    def _costly(self, name: str) -> bool:
        """Whether synapses lie between a value and what is kept."""
        if name == INPUT or name in self.kept:
            return False
        node = self.graph[name]
        return isinstance(node.module, Synapses) or any(self._costly(before) for before in node.inputs)

    def _needed(self) -> set[str]:
        """The kept values from which all that is not yet kept can be worked out, back from the output."""
        needed, seen, waiting = set(), set(), [self.graph.output]
        while waiting:
            name = waiting.pop()
            if name in seen or name == INPUT:
                continue
            seen.add(name)
            if name in self.kept:
                needed.add(name)
            else:
                waiting += self.graph[name].inputs
        return needed
