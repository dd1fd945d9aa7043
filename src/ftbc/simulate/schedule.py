"""What engines share: which values change from step to step, and how a network is put to rest."""

from __future__ import annotations

from ftbc.graph.ir import INPUT, Graph
from ftbc.neuron.temporal import Temporal


def varying(graph: Graph, input_varies: bool) -> set[str]:
    """Names of the values that may differ between steps: all that lies behind a neuron, or behind a varying input."""
    found = {INPUT} if input_varies else set()
    for node in graph:
        if isinstance(node.module, Temporal) or any(name in found for name in node.inputs):
            found.add(node.name)
    return found


def rest(graph: Graph) -> None:
    """Put every neuron to rest."""
    for node in graph.of_type(Temporal):
        assert isinstance(node.module, Temporal)
        node.module.reset()
