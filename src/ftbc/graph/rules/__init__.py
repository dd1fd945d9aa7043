"""What each operation of PyTorch is in a clean graph, under every name it goes by. One concept a file.

In: a `Call` and its arguments, as PyTorch names and orders them. Out: a `Value`, or `Refused` with the remedy.
"""

from ftbc.graph.rules import (
    activations,
    arithmetic,
    heads,
    joining,
    normalisation,
    nothing,
    pooling,
    resizing,
    shapes,
    slicing,
    trained,
    weights,
)
from ftbc.graph.rules.registry import RULES

__all__ = [
    "RULES", "activations", "arithmetic", "heads", "joining", "normalisation", "nothing", "pooling", "resizing",
    "shapes", "slicing", "trained", "weights",
]  # fmt: skip
