"""Many steps of a layer at once: time is folded into the batch, so each layer runs as one large operation.

A layer's input over all steps is known before the layer runs, because spikes only travel forward. Memory grows with
the steps that are taken at once, so long runs are cut into chunks of time, between which the membranes carry over. A
layer that needs its first steps together (`Temporal.together`) finds them in the first chunk. Where neurons ask for
the sum of their currents alone, most layers run once for all steps, as `sums` explains.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from ftbc.graph.ir import INPUT, Graph, Node
from ftbc.heap import keep_what_is_freed
from ftbc.neuron.temporal import Temporal
from ftbc.simulate.cache import budget
from ftbc.simulate.padding import without_pads
from ftbc.simulate.prepared import prepared
from ftbc.simulate.schedule import read_once, rest, together, value_of, varying
from ftbc.simulate.sums import needs, on_sums
from ftbc.threads import over_images

_WORTH_A_THREAD = 1 << 16
"""Neuron-steps that are worth a thread of their own."""

Observer = Callable[[Node, list[Tensor], Tensor, int], None]
"""Sees a node, its inputs and its output, each ``[steps, N, ...]``, and the number of the first of these steps."""


def layerwise(
    graph: Graph,
    x: Tensor,
    steps: int,
    time_first: bool = False,
    observe: Observer | None = None,
    room: int | None = None,
) -> Tensor:
    """The output at each step, ``[T, N, ...]``, from rest.

    x: ``[N, ...]``, presented at each step, or ``[T, N, ...]`` with ``time_first``. room: bytes that the largest layer
    may take over the images and steps taken at once; by default `cache.budget`.
    """
    keep_what_is_freed()
    needed = None
    if observe is None:
        graph = without_pads(graph)
        needed = needs(graph, time_first)
    if needed is None:
        passes, (images, chunk) = steps, portion(graph, steps, room)
    else:
        passes, images, chunk = 1, needed.images(graph, steps, room), 1
    dim = 1 if time_first else 0
    count = x.shape[dim]
    if observe is None:
        calls = -(-count // images) * -(-passes // chunk)
        graph = prepared(graph, varying(graph, time_first), min(images, count) * chunk, calls)

    def run(own: Graph, part: Tensor) -> Tensor:
        if needed is not None:
            return on_sums(own, needed, part, steps, time_first)
        return _in_chunks(own, part, steps, chunk, time_first, observe)

    def share(first: int, last: int) -> list[Tensor]:
        own = graph if last - first == count else twin(graph)
        portions = -(-(last - first) // images)
        parts = x.narrow(dim, first, last - first).tensor_split(portions, dim)  # of much the same size
        return [run(own, part) for part in parts]

    # A thread for each share of the images loses less than torch's own, which meet after every operation.
    side_by_side = observe is None and x.device.type == "cpu" and not torch.is_grad_enabled()
    work = sum(torch.Size(node.shape).numel() for node in graph.of_type(Temporal)) * passes * count
    shares = over_images(share, count, work // _WORTH_A_THREAD) if side_by_side else [share(0, count)]
    return torch.cat([output for outputs in shares for output in outputs], 1)


def twin(graph: Graph) -> Graph:
    """The same graph, for another thread: weights are shared, but each neuron has a state of its own."""
    own = copy.copy(graph)
    own.nodes = {
        node.name: replace(node, module=_with_own_state(node.module)) if isinstance(node.module, Temporal) else node
        for node in graph
    }
    return own


def _with_own_state(neurons: Temporal) -> Temporal:
    shared = {id(tensor): tensor for tensor in (*neurons.parameters(), *neurons.buffers())}
    return copy.deepcopy(neurons, shared)


def portion(graph: Graph, steps: int, room: int | None = None) -> tuple[int, int]:
    """How many images and how many steps to take at once, so that the largest layer fits into ``room`` bytes; but never
    fewer steps than a layer needs at once.
    """
    largest = 4 * max(torch.Size(node.shape).numel() for node in graph)
    if room is None:
        room = budget(largest, sum(weights.nbytes for weights in graph.parameters()))
    chunk = max(1, min(steps, max(room // largest, together(graph))))
    chunk = max(-(-steps // -(-steps // chunk)), together(graph))  # as many chunks, of much the same length
    return max(1, room // (largest * chunk)), chunk


def _in_chunks(graph: Graph, x: Tensor, steps: int, chunk: int, time_first: bool, observe: Observer | None) -> Tensor:
    changing = varying(graph, time_first)
    spent = set() if observe is not None else changing & read_once(graph)
    released = graph.released_after()
    constant = {} if time_first else {INPUT: x}
    for node in graph:
        if node.name not in changing:
            constant[node.name] = node.run(*[constant[name] for name in node.inputs])
    rest(graph)
    outputs = []
    for start in range(0, steps, chunk):
        count = min(chunk, steps - start)
        # A changing value is kept as [count * N, ...], a constant one as [N, ...].
        values = {INPUT: x[start : start + count].flatten(0, 1)} if time_first else dict(constant)

        def over_time(name: str, values: dict[str, Tensor] = values, count: int = count) -> Tensor:
            value = values[name]
            return value.unflatten(0, (count, -1)) if name in changing else value.expand(count, *value.shape)

        for node in graph:
            if isinstance(node.module, Temporal):
                run = node.module.consume if node.inputs[0] in spent else node.module.run
                values[node.name] = run(over_time(node.inputs[0])).flatten(0, 1)
            elif node.name in changing:
                # Joined, not expanded and flattened: that would lose the order of a value in memory, and the last bit.
                inputs = [values[i] if i in changing else torch.cat([values[i]] * count) for i in node.inputs]
                values[node.name] = value_of(node, inputs, spent)
            if observe is not None:
                observe(node, [over_time(name) for name in node.inputs], over_time(node.name), start)
            for name in released.get(node.name, ()):
                del values[name]
        outputs.append(over_time(graph.output))
    rest(graph)
    return torch.cat(outputs)
