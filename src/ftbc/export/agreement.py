"""Two runs of a network, spike by spike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ftbc.errors import InputError
from ftbc.graph.ir import Graph, Node
from ftbc.neuron import IntegrateFire
from ftbc.simulate.stepwise import Cell, stepwise

Spikes = dict[str, Tensor]
"""What the neurons of each layer send at one step: ``[N, ...]``, not zero where one fired."""


@dataclass(frozen=True)
class Agreement:
    """How far two runs agree: neuron-steps, spikes of the first run, and neuron-steps in which the runs differ.

    layers: for each layer how many neuron-steps differ; largest: the largest difference between outputs of one step,
    over the largest output.

    >>> print(Agreement(1000, 100, 0, {"a": 0}, 0.0))
    all 100 spikes equal
    """

    neuron_steps: int
    spikes: int
    different: int
    layers: dict[str, int]
    largest: float

    @property
    def equal(self) -> bool:
        """Whether every spike of one run is in the other."""
        return not self.different

    @property
    def share(self) -> float:
        """The share of neuron-steps in which both runs do the same."""
        return 1 - self.different / self.neuron_steps

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(
            self.neuron_steps + other.neuron_steps,
            self.spikes + other.spikes,
            self.different + other.different,
            {name: count + other.layers[name] for name, count in self.layers.items()},
            max(self.largest, other.largest),
        )

    def __str__(self) -> str:
        if self.equal:
            return f"all {self.spikes:,} spikes equal"
        first = next(name for name, count in self.layers.items() if count)
        return (
            f"{self.different:,} of {self.neuron_steps:,} neuron-steps differ ({100 * self.share:.4f} % equal, "
            f"{self.spikes:,} spikes), first in '{first}'"
        )


def recorded(graph: Graph, x: Tensor, steps: int, cell: Cell | None = None) -> Iterator[tuple[Tensor, Spikes]]:
    """Yield the output and the spikes of each layer at each step, from rest; x: ``[N, ...]``, the same at each step."""
    spikes: Spikes = {}

    def keep(node: Node, current: Tensor) -> Tensor:
        sent = node.module(current) if cell is None else cell(node, current)
        if isinstance(node.module, IntegrateFire):
            spikes[node.name] = sent
        return sent

    for output in stepwise(graph, x, steps, cell=keep):
        yield output, dict(spikes)


@torch.no_grad()
def agreement(one: Iterator[tuple[Tensor, Spikes]], other: Iterator[tuple[Tensor, Spikes]]) -> Agreement:
    """Compare two runs on the same images, by the names of layers; items of a layer may be shaped differently.

    The other may have layers of its own, such as neurons that pass a clock on.
    """
    total: Agreement | None = None
    for (output, spikes), (found, others) in zip(one, other, strict=True):
        step = _at_one_step(output, spikes, found, others)
        total = step if total is None else total + step
    if total is None:
        raise InputError("there are no steps to compare")
    return total


def _at_one_step(output: Tensor, spikes: Spikes, found: Tensor, others: Spikes) -> Agreement:
    missing = sorted(spikes.keys() - others.keys())
    if missing:
        raise InputError(f"the file is of another network: it has no neurons '{missing[0]}'")
    different = {}
    for name, sent in spikes.items():
        other = others[name]
        if sent.numel() != other.numel():
            raise InputError(f"the file is of another network: '{name}' has neurons of another shape there")
        different[name] = int(((sent.flatten(1) != 0) != (other.flatten(1).to(sent) != 0)).sum())
    if output.numel() != found.numel():
        raise InputError(f"the file is of another network: it gives {list(found.shape[1:])} an image")
    gap = float((output - found.reshape(output.shape).to(output)).abs().max())
    largest = max(float(output.abs().max()), torch.finfo(output.dtype).tiny)
    return Agreement(
        sum(sent.numel() for sent in spikes.values()),
        sum(int((sent != 0).sum()) for sent in spikes.values()),
        sum(different.values()),
        different,
        gap / largest,
    )
