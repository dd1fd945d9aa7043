"""What engines share: their names, which values change from step to step, and how a network is put to rest."""

from __future__ import annotations

from collections import Counter

from torch import Tensor, nn

from ftbc.errors import InputError
from ftbc.graph.ir import INPUT, Graph, Node
from ftbc.graph.ops import Sum, Synapses
from ftbc.graph.precision import in_bfloat16
from ftbc.neuron.temporal import Temporal
from ftbc.simulate.prepared import Prepared

ENGINES = ("layerwise", "stepwise", "event")


def require_engine(name: str) -> None:
    """Refuse an engine that does not exist, or whose packages are missing."""
    if name not in ENGINES:
        raise InputError(f"there is no engine {name!r:.80}: choose one of {', '.join(ENGINES)}")
    if name == "event" and in_bfloat16():
        raise InputError("the engine 'event' adds in float32 or int16, not in bf16: choose 'layerwise' or 'stepwise'")
    if name == "event":
        from ftbc.simulate.event import require_compiler

        require_compiler()


def varying(graph: Graph, input_varies: bool) -> set[str]:
    """Names of the values that may differ between steps: all that lies behind a neuron, or behind a varying input."""
    found = {INPUT} if input_varies else set()
    for node in graph:
        if isinstance(node.module, Temporal) or any(name in found for name in node.inputs):
            found.add(node.name)
    return found


def carried(graph: Graph) -> set[str]:
    """Names of the values that no weights have touched: what neurons send, and what pools, slices ... make of it."""
    found: set[str] = set()
    for node in graph:
        passes_on = not isinstance(node.module, (*Synapses, Sum)) and all(name in found for name in node.inputs)
        if isinstance(node.module, Temporal) or passes_on:
            found.add(node.name)
    return found


_MAKES_ANEW = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear, Sum, Prepared)
"""Modules whose output is memory of its own; a view would share it."""


def read_once(graph: Graph) -> set[str]:
    """Names of the values that one node alone reads and that have memory of their own: it may be written over then."""
    readers = Counter(name for node in graph for name in node.inputs)
    made = (node for node in graph.of_type(*_MAKES_ANEW) if len(node.inputs) > 1 or not isinstance(node.module, Sum))
    return {node.name for node in made if readers[node.name] == 1 and node.name != graph.output}


def value_of(node: Node, inputs: list[Tensor], spent: set[str]) -> Tensor:
    """What a node that has no state gives; it may write over those of its inputs that are spent."""
    if isinstance(node.module, Sum):
        return node.module.consume(inputs, [name in spent for name in node.inputs])
    return node.run(*inputs)


def together(graph: Graph) -> int:
    """How many of the first steps some layer must be given at once."""
    return max((node.module.together for node in graph if isinstance(node.module, Temporal)), default=1)


def require_single_steps(graph: Graph) -> None:
    """Refuse to go step by step through a network that needs several steps at once."""
    for node in graph.of_type(Temporal):
        assert isinstance(node.module, Temporal)
        if node.module.together > 1:
            raise InputError(
                f"{node.place} needs {node.module.together} steps at once, so that the network cannot go step by step: "
                "use snn(x) with the engine 'layerwise' or 'event'"
            )


def rest(graph: Graph) -> None:
    """Put every neuron to rest."""
    for node in graph.of_type(Temporal):
        assert isinstance(node.module, Temporal)
        node.module.reset()
