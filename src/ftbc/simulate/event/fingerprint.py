"""Whether the numbers of a network are still those an engine was made of.

torch counts the changes of a tensor, but not those made through ``weight.data`` or numpy, and a new tensor may lie
where an old one lay. So the numbers themselves are summed up, each with a weight of its own: a millisecond for ten
megabytes.
"""

# pyright: reportCallIssue=false
# The operations of `vector` are called without their first argument, which is the compiler's.

from __future__ import annotations

import numpy as np

from ftbc.graph.ir import Graph
from ftbc.simulate.event.vector import half_word_at
from ftbc.vectors import compiled

Fingerprint = tuple[int, int]


def fingerprint(graph: Graph) -> Fingerprint:
    """How many bytes the numbers of a graph take, and a sum over them."""
    tensors = [tensor.contiguous() for tensor in graph.tensors()]
    places = np.array([(tensor.data_ptr(), tensor.nbytes) for tensor in tensors], np.uint64).reshape(-1, 2)
    return int(places[:, 1].sum()), int(_sum_up(places))


@compiled
def _sum_up(places):  # type: ignore[no-untyped-def]
    """Sum of all half words times odd numbers, none of which comes twice."""
    total, factor = np.uint64(0), np.uint64(1)
    for k in range(len(places)):
        place = places[k, 0]
        for _ in range(places[k, 1] // np.uint64(4)):
            total += half_word_at(place) * factor
            place += np.uint64(4)
            factor += np.uint64(2)
    return total
