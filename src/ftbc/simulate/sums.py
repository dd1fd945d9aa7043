"""Whole sums in the place of steps: one pass of each layer, whatever T, for neurons that ask for no more.

A neuron of `neuron/parallel.py` waits for the currents x[1] .. x[T] of all steps, and looks at their sum alone:

    n = clamp( floor( (v[0] + sum_t x[t] + b[t]) / theta ), 0, T ) ,     s[k] = size * [k <= n]

What lies between neurons is affine, y[t] = A s[t] + c, the same at each step. With a bar for the mean over the steps,

    y_bar = (1/T) sum_t (A s[t] + c)  =  A s_bar + c

the layer itself takes the mean of its inputs to the mean of its outputs, bias included: this is why means travel here,
and not the sums, for which each bias would have to be taken T times. The next neuron has its sum as T y_bar, and its
own mean is s_bar = size * n / T. So from neuron to neuron

    s_bar  ->  A s_bar + c  ->  n  ->  size * n / T

and no train of spikes is ever written out: every layer of synapses runs once for an image, where step by step it runs
T times. It is the pass of an ANN, whose activations are staircases.

Besides affine layers, two more things commute with the mean. What does not change over time is its own mean, however
it was computed: a maximum or a rounding of a constant image does no harm. And a `SpikingMaxPool` sends max(c[t]) -
max(c[t-1]), which adds up to the maximum of the summed inputs: its mean is the maximum of the means. A max-pool of
single steps does not commute, since the maximum of sums is not the sum of maxima; and a neuron whose count depends on
the order of its currents has no use for their mean. A network with one of these on the way to a neuron is run at all
steps, and so is one whose synapses multiply in bfloat16, where each product is rounded.

**The end.** The network is asked for its output at each step, so that behind the last neurons the trains are needed:
what the output depends on without another neuron between (a pool and a classifier, as a rule) runs on ``[T, N, ...]``.
`Needs` says of each value in which form it is read. One that both a neuron and the output read is computed in both.

**Rounding.** In exact arithmetic nothing changes. In floating point T y_bar and the sum of the y[t] differ in their
last bits, so that a count may come out one higher or lower, and what follows with it: in float32 rarely for a neuron,
but a deep network has so many that some images are touched; in float64 practically never. Steps that are added one by
one are no nearer to the truth: fewer additions round less.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ftbc.graph.ir import INPUT, Graph, Node
from ftbc.graph.ops import (
    Affine,
    AveragePool,
    Concat,
    Pad,
    Permute,
    Rearrangement,
    Reduce,
    Reshape,
    Slice,
    Sum,
    Synapses,
)
from ftbc.graph.precision import in_bfloat16
from ftbc.neuron.max_pool import SpikingMaxPool
from ftbc.neuron.parallel import ParallelFire
from ftbc.neuron.temporal import Temporal
from ftbc.simulate.cache import budget
from ftbc.simulate.schedule import read_once, rest, value_of, varying

_AFFINE = (
    *Synapses, *AveragePool, *Rearrangement, Affine, Concat, Pad, Permute, Reduce, Reshape, Slice, Sum, nn.Identity
)  # fmt: skip


@dataclass(frozen=True)
class Needs:
    """Names of the values that are read: ``means`` over all steps, and ``trains``, the values at each step."""

    means: frozenset[str]
    trains: frozenset[str]

    def images(self, graph: Graph, steps: int, room: int | None = None) -> int:
        """How many images to take at once, so that the largest value fits into ``room`` bytes."""
        sizes = [torch.Size(graph.shape(name)).numel() for name in self.means]
        sizes += [steps * torch.Size(graph.shape(name)).numel() for name in self.trains]
        largest = 4 * max(sizes)
        if room is None:
            room = budget(largest, sum(weights.nbytes for weights in graph.parameters()))
        return max(1, room // largest)


def needs(graph: Graph, input_varies: bool) -> Needs | None:
    """In which form each value is read where means travel between neurons; None if means would not be enough."""
    kinds = {type(node.module) for node in graph.of_type(Temporal)}
    if ParallelFire not in kinds or not kinds <= {ParallelFire, SpikingMaxPool} or in_bfloat16():
        return None
    changing = varying(graph, input_varies)
    means, trains = set[str](), {graph.output} & changing
    means |= {graph.output} - trains
    for node in reversed(list(graph)):
        is_neuron = isinstance(node.module, ParallelFire)
        if node.name in means or (is_neuron and node.name in trains):
            means.update(node.inputs)
        if node.name in trains and not is_neuron:
            trains.update(changing.intersection(node.inputs))
            means.update(set(node.inputs) - changing)
    commute = (*_AFFINE, ParallelFire, SpikingMaxPool)
    if not all(isinstance(node.module, commute) for node in graph if node.name in means & changing):
        return None
    return Needs(frozenset(means), frozenset(trains))


def on_sums(graph: Graph, needed: Needs, x: Tensor, steps: int, time_first: bool) -> Tensor:
    """The output at each step, ``[T, N, ...]``, from rest; x as for `layerwise`, and all of it at once."""
    changing = varying(graph, time_first)
    spent = changing & read_once(graph)
    released = graph.released_after()
    means = {INPUT: x.mean(0) if time_first else x}
    trains = {INPUT: x.flatten(0, 1)} if time_first else {}  # [T * N, ...]

    def at_each_step(name: str) -> Tensor:
        return trains[name] if name in changing else torch.cat([means[name]] * steps)

    rest(graph)
    for node in graph:
        module = node.module
        if node.name in needed.trains:
            if isinstance(module, ParallelFire):
                trains[node.name] = module.sent(means[node.inputs[0]], steps).flatten(0, 1)
            elif isinstance(module, Temporal):
                train = at_each_step(node.inputs[0]).unflatten(0, (steps, -1))
                trains[node.name] = module.run(train).flatten(0, 1)
            else:
                trains[node.name] = value_of(node, [at_each_step(name) for name in node.inputs], spent)
        if node.name in needed.means:
            means[node.name] = _mean(node, [means[name] for name in node.inputs], steps, spent)
        for name in released.get(node.name, ()):
            means.pop(name, None)
            trains.pop(name, None)
    rest(graph)
    return at_each_step(graph.output).unflatten(0, (steps, -1))


def _mean(node: Node, inputs: list[Tensor], steps: int, spent: set[str]) -> Tensor:
    if isinstance(node.module, ParallelFire):
        return node.module.mean_sent(inputs[0], steps)
    if isinstance(node.module, SpikingMaxPool):
        return node.module.mean_sent(inputs[0])
    return value_of(node, inputs, spent)
