"""All steps of a layer at once: time is folded into the batch, so each layer runs as one large operation.

A layer's input over all steps is known before the layer runs, because spikes only travel forward. Memory grows
with T times the batch; `stepwise` does not.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ftbc.graph.ir import INPUT, Graph, Node
from ftbc.neuron.temporal import Temporal
from ftbc.simulate.schedule import varying

Observer = Callable[[Node, list[Tensor], Tensor], None]
"""Sees a node, its inputs and its output, each ``[T, N, ...]``; constant ones are expanded views."""


def layerwise(graph: Graph, x: Tensor, steps: int, time_first: bool = False, observe: Observer | None = None) -> Tensor:
    """The output at each step, ``[T, N, ...]``, from rest; the neurons' own state is neither used nor changed.

    x: ``[N, ...]``, presented at each step, or ``[T, N, ...]`` with ``time_first``.
    """
    changing = varying(graph, time_first)
    released = graph.released_after()
    # A changing value is kept as [T * N, ...], a constant one as [N, ...].
    values = {INPUT: x.flatten(0, 1) if time_first else x}

    def over_time(name: str) -> Tensor:
        value = values[name]
        if name in changing:
            return value.unflatten(0, (steps, -1))
        return value.expand(steps, *value.shape)

    for node in graph:
        if isinstance(node.module, Temporal):
            value = node.module.run(over_time(node.inputs[0])).flatten(0, 1)
        elif node.name in changing:
            value = node.module(*[values[i] if i in changing else over_time(i).flatten(0, 1) for i in node.inputs])
        else:
            value = node.module(*[values[i] for i in node.inputs])
        values[node.name] = value
        if observe is not None:
            observe(node, [over_time(name) for name in node.inputs], over_time(node.name))
        for name in released.get(node.name, ()):
            del values[name]
    return over_time(graph.output)


def images_at_once(graph: Graph, steps: int, budget: int = 16 << 20) -> int:
    """How many images to simulate together so that the largest layer over all steps fits into ``budget`` bytes.

    Small enough, and a layer's spikes are still in the cache when the next layer reads them.
    """
    largest = max(torch.Size(node.shape).numel() for node in graph)
    return max(1, budget // (4 * steps * largest))
