"""NIR by its own definitions, in numpy: a reader that shares no code with the exporter.

A node reads the sum of the values on its incoming edges. A value that is not there yet, because its edge closes a
circle, is that of the step before, and zero at first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

nir = pytest.importorskip("nir")
Values = dict[str, np.ndarray]


class Interpreter:
    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.sources: dict[str, list[str]] = {name: [] for name in graph.nodes}
        for source, target in graph.edges:
            self.sources[target].append(source)
        self.before: Values = {}
        self.membranes: Values = {}

    def step(self, x: np.ndarray) -> Values:
        """All values at the next step."""
        values: Values = {}
        waiting = list(self.graph.nodes)
        while waiting:
            ready = [name for name in waiting if all(s in values or self._delayed(s) for s in self.sources[name])]
            assert ready, f"nothing can run: {waiting}"
            for name in ready:
                values[name] = self._value(name, x, values)
            waiting = [name for name in waiting if name not in ready]
        self.before = values
        return values

    def _delayed(self, name: str) -> bool:
        """Whether a value comes from the step before: the factor through which a spike goes back."""
        node = self.graph.nodes[name]
        targets = [target for source, target in self.graph.edges if source == name]
        return isinstance(node, nir.Scale) and any(isinstance(self.graph.nodes[t], nir.I) for t in targets) and any(
            isinstance(self.graph.nodes[s], nir.Threshold) and t in self.sources[s]
            for s in self.sources[name] for t in targets
        )  # fmt: skip

    def _value(self, name: str, x: np.ndarray, values: Values) -> np.ndarray:
        node = self.graph.nodes[name]
        if isinstance(node, nir.Input):
            return x
        given = [self.before.get(s) if self._delayed(s) else values[s] for s in self.sources[name]]
        total = sum(value for value in given if value is not None)
        if isinstance(node, nir.Output):
            return total
        if isinstance(node, nir.I):
            self.membranes[name] = self.membranes.get(name, 0.0) + node.r * total
            return self.membranes[name]
        if isinstance(node, nir.Threshold):
            return (total > node.threshold).astype(total.dtype)
        if isinstance(node, nir.Scale):
            return total * node.scale
        if isinstance(node, nir.Affine):
            return total @ node.weight.T + node.bias
        if isinstance(node, nir.Flatten):
            return total.reshape(len(total), -1)
        if isinstance(node, nir.Conv1d):
            return _convolved(
                total[:, :, None],
                node.weight[:, :, None],
                node,
                (1, node.stride),
                (0, node.padding),
                (1, node.dilation),
            )[:, :, 0]
        if isinstance(node, nir.Conv2d):
            return _convolved(total, node.weight, node, tuple(node.stride), tuple(node.padding), tuple(node.dilation))
        if isinstance(node, nir.AvgPool2d):
            return _windows(total, tuple(node.kernel_size), tuple(node.stride), tuple(node.padding)).mean((-1, -2))
        raise AssertionError(f"no such node: {node}")


def _convolved(x: np.ndarray, weight: np.ndarray, node: Any, stride: Any, padding: Any, dilation: Any) -> np.ndarray:
    assert tuple(map(int, dilation)) == (1, 1)
    groups = int(node.groups)
    windows = _windows(x, weight.shape[2:], stride, padding)
    size, rows = weight.shape[1], weight.shape[0] // groups
    parts = [
        np.einsum("nchwij,ocij->nohw", windows[:, g * size : (g + 1) * size], weight[g * rows : (g + 1) * rows])
        for g in range(groups)
    ]
    return np.concatenate(parts, 1) + node.bias[:, None, None]


def _windows(x: np.ndarray, size: Any, stride: Any, padding: Any) -> np.ndarray:
    rows, columns = (int(side) for side in padding)
    padded = np.pad(x, ((0, 0), (0, 0), (rows, rows), (columns, columns)))
    found = sliding_window_view(padded, tuple(int(s) for s in size), (2, 3))
    return found[:, :, :: int(stride[0]), :: int(stride[1])]
