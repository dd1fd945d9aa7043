"""A spiking network in integers, as chips hold it: weights of a few bits, thresholds and biases on the same scale.

    W_int = round(scale W) ,   theta_int = scale ,   b_int[t] = round(scale b[t]) ,   v_int[0] = round(scale v[0])

scale is a whole number for each layer of neurons (or for each of its channels), so that the threshold is exact: that
with which the rounded weights, the largest of them clipped, come closest. The image is rounded, too, on a scale of its
own, by which the first layers' thresholds and biases are multiplied. Pools add up instead of averaging, and the last
layer's sums are divided by its scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ftbc.export.agreement import Spikes, recorded
from ftbc.export.semantics import SOFT
from ftbc.graph.ir import Graph, Node
from ftbc.neuron import IntegrateFire
from ftbc.simulate.readout import read
from ftbc.simulate.stepwise import Cell


@dataclass(frozen=True)
class IntegerNetwork:
    """A graph whose numbers are whole; scales: by layer of neurons, ``[1]`` or ``[C]``.

    image: the scale of the input; output: the scale of the output.
    """

    graph: Graph
    steps: int
    scales: dict[str, Tensor]
    image: float
    output: Tensor
    readout: Tensor | None = None
    head: nn.Module | None = None

    @property
    def extra_steps(self) -> int:
        """Steps before those that count."""
        return 0 if self.readout is None else self.readout.shape[1] - self.steps

    def rounded_image(self, x: Tensor) -> Tensor:
        """An image as the network reads it: whole numbers."""
        return torch.round(x * self.image)

    def run(self, x: Tensor) -> Tensor:
        """What ``snn(x)`` gives: the answers after each step, ``[T, N, ...]``, in the ANN's own units."""
        mean = self.means(x, torch.stack([output for output, _ in self.recorded(x)]))
        return mean if self.head is None else self.head(mean.flatten(0, 1)).unflatten(0, mean.shape[:2])

    def means(self, x: Tensor, outputs: Tensor) -> Tensor:
        """The answers before the head, from the outputs of all steps."""
        return read(outputs, self.readout)

    def recorded(self, x: Tensor) -> Iterator[tuple[Tensor, Spikes]]:
        """Yield the output in the ANN's units and the spikes of each layer at each step."""
        dtype = self.graph.tensors()[0].dtype
        steps = self.extra_steps + self.steps
        for output, spikes in recorded(self.graph, self.rounded_image(x).to(dtype), steps, whole_cell()):
            yield (output / self.output.view(-1, *[1] * (output.ndim - 2))).to(x.dtype), spikes


def whole_cell() -> Cell:
    """Neurons that send ones: v += x + b ; s = v >= theta ; v -= theta s."""
    soft = SOFT.cell()

    def step(node: Node, current: Tensor) -> Tensor:
        sent = soft(node, current)
        return (sent != 0).to(sent.dtype) if isinstance(node.module, IntegrateFire) else sent

    return step
