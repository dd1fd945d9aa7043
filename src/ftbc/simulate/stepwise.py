"""One step after another, as a chip would: one small state per layer, memory independent of T."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor

from ftbc.graph.ir import INPUT, Graph, Node
from ftbc.neuron.temporal import Temporal
from ftbc.simulate.padding import without_pads
from ftbc.simulate.schedule import read_once, require_single_steps, rest, value_of, varying

Cell = Callable[[Node, Tensor], Tensor]
"""What a neuron does with its current at this step; by default the neuron's own `forward`."""


class Stepper:
    """Runs one step at a time from rest. With ``constant`` the input is the same at each step since the reset, and
    what depends on it alone is computed at the first step and kept."""

    def __init__(self, graph: Graph, constant: bool, cell: Cell | None = None) -> None:
        if cell is None:
            require_single_steps(graph)
            graph = without_pads(graph)
        self.graph = graph
        self.cell = cell
        changing = varying(graph, input_varies=not constant)
        self.once = [node for node in graph if node.name not in changing]
        self.each = [node for node in graph if node.name in changing]
        self.read_later = {name for node in self.each for name in node.inputs} - changing
        self.spent = changing & read_once(graph)
        self.released = graph.released_after()
        self.kept: dict[str, Tensor] | None = None
        self.reset()

    def reset(self) -> None:
        """Put every neuron to rest and forget the kept values."""
        self.kept = None
        rest(self.graph)

    def select(self, images: Tensor) -> None:
        """Go on with these images alone, given by their indices; the next `step` takes as many."""
        if self.kept is not None:
            self.kept = {name: value[images] for name, value in self.kept.items()}
        for node in self.graph.of_type(Temporal):
            assert isinstance(node.module, Temporal)
            node.module.select(images)

    def step(self, x: Tensor) -> Tensor:
        """The output at the next step."""
        if self.kept is None:
            values = {INPUT: x}
            self._run(self.once, values, keep=self.read_later)
            self.kept = {name: values[name] for name in self.read_later}
        values = {**self.kept, INPUT: x}
        self._run(self.each, values, keep=set())
        return values[self.graph.output]

    def _run(self, nodes: list[Node], values: dict[str, Tensor], keep: set[str]) -> None:
        for node in nodes:
            values[node.name] = self._value(node, [values[name] for name in node.inputs])
            for name in self.released.get(node.name, ()):
                if name not in keep:
                    del values[name]

    def _value(self, node: Node, inputs: list[Tensor]) -> Tensor:
        if not isinstance(node.module, Temporal):
            return value_of(node, inputs, self.spent if self.cell is None else set())
        if self.cell is not None:
            return self.cell(node, inputs[0])
        if node.inputs[0] in self.spent:
            return node.module.consume(inputs[0].unsqueeze(0))[0]
        return node.module(inputs[0])


def stepwise(
    graph: Graph, x: Tensor, steps: int, time_first: bool = False, cell: Cell | None = None
) -> Iterator[Tensor]:
    """Yield the output at each step, ``[N, ...]``, from rest; x as for `layerwise`."""
    stepper = Stepper(graph, constant=not time_first, cell=cell)
    for t in range(steps):
        yield stepper.step(x[t] if time_first else x)
    stepper.reset()
