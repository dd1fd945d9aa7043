"""A short name for the content of a network, of images or of settings: equal content, equal name, on every machine."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from torch import Tensor

from ftbc.data import Images
from ftbc.graph.canonical import Cleaned
from ftbc.graph.precision import in_bfloat16
from ftbc.graph.spec import describe


def canonical_json(value: Any) -> bytes:
    """Plain data as JSON with one spelling: equal data, equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def of_bytes(content: bytes) -> str:
    """The name of a file's content."""
    return hashlib.sha256(content).hexdigest()


def of_settings(value: Any) -> str:
    """The name of plain data.

    >>> of_settings({"a": 1, "b": [2]}) == of_settings({"b": (2,), "a": 1})
    True
    """
    return of_bytes(canonical_json(value))


def of_network(cleaned: Cleaned) -> str:
    """The name of a network, from its clean graph: every operation, its settings, its numbers, how they multiply."""
    graph = cleaned.graph
    total = hashlib.sha256()
    for node in graph:
        total.update(canonical_json([node.name, node.inputs, node.shape, describe(node.module)]))
        for name, tensor in sorted(node.module.state_dict().items()):
            total.update(name.encode())
            _add(total, tensor)
    head = None if cleaned.head is None else describe(cleaned.head)
    total.update(canonical_json([graph.input_shape, graph.output, head]))
    if in_bfloat16():
        total.update(b"bfloat16")
    return total.hexdigest()


def of_images(data: Tensor | tuple[Tensor, Tensor] | Images) -> str:
    """The name of images, in their order, with their labels and normalisation if they have them."""
    total = hashlib.sha256()
    if isinstance(data, Images):
        total.update(canonical_json([data.normalise.mean, data.normalise.std]))
        data = (data.images, data.labels)
    for tensor in (data,) if isinstance(data, Tensor) else data:
        _add(total, tensor)
    return total.hexdigest()


def _add(total: Any, tensor: Tensor) -> None:
    total.update(canonical_json([str(tensor.dtype), list(tensor.shape)]))
    # As bytes, without a copy of what is contiguous already.
    total.update(tensor.detach().cpu().contiguous().reshape(-1).numpy().data)
