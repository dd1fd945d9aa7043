"""In: a spiking graph. Out: its output at each step, by propagating only the spikes that occurred (extra ``fast``).

`paths` and `cells` plan, `jobs` and `layer` lay weights out, `kernel` and `vector` are compiled, `engine` runs it all.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ftbc.errors import InputError, MissingExtraError
from ftbc.graph.ir import Graph

if TYPE_CHECKING:
    from ftbc.simulate.event.engine import EventEngine


def available() -> bool:
    """Whether the packages of the extra ``fast`` are here."""
    return importlib.util.find_spec("numba") is not None


def require_compiler() -> None:
    """Say which extra to install if the compiler of the event engine is missing."""
    try:
        import llvmlite  # noqa: F401
        import numba  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("numba", "the event engine", "fast") from error


def event_engine(
    graph: Graph, density: Mapping[str, float], input_varies: bool = False, known: EventEngine | None = None
) -> EventEngine:
    """A graph made ready to run on events, or a clear word why it cannot.

    known: one made of this graph before, given back if the graph's numbers are still the same.
    """
    for tensor in graph.tensors():
        if not tensor.is_cpu:
            raise InputError(
                f"the event engine runs on the CPU, but the network is on {tensor.device}: choose another engine"
            )
    require_compiler()
    from ftbc.simulate.event.engine import EventEngine

    return known if known is not None and known.is_of(graph) else EventEngine(graph, density, input_varies)
