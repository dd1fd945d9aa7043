"""The support table: every construction that converts, as a small network. One concept a file, as in graph/rules/."""

from tests.graph.table import activations, arithmetic, heads, in_place, normalisation, pooling, shapes, tracing, weights
from tests.graph.table.entries import TABLE, Entry

__all__ = [
    "TABLE", "Entry", "activations", "arithmetic", "heads", "in_place", "normalisation", "pooling", "shapes",
    "tracing", "weights",
]  # fmt: skip
