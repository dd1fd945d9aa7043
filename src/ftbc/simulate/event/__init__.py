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


def event_engine(graph: Graph, density: Mapping[str, float], input_varies: bool = False) -> EventEngine:
    """A graph made ready to run on events, or a clear word why it cannot."""
    device = next((parameter.device for parameter in graph.parameters()), None)
    if device is not None and device.type != "cpu":
        raise InputError(f"the event engine runs on the CPU, but the network is on {device}: choose another engine")
    try:
        from ftbc.simulate.event.engine import EventEngine
    except ImportError as error:
        raise MissingExtraError("numba", "the event engine", "fast") from error
    return EventEngine(graph, density, input_varies)
