"""Operations on constants alone, and numbers and constants that follow the batch size."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx, nn

from ftbc.graph.call import Refused, Value, Varies

FILLED = ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full")
"""Operations that read no more than the shape of a tensor, and give a constant."""

SIZES = (
    "size", "dim", "ndimension", "numel", "nelement", "len", "getattr", "stride", "is_contiguous", "element_size",
    "is_floating_point", "sym_size", "sym_numel", "sym_stride", "get_device", "type",
)  # fmt: skip
"""Operations that read no more than the shape of a tensor, and give numbers."""


def evaluate(root: nn.Module, node: fx.Node, args: Any, kwargs: Any, like: Tensor) -> Any:
    """The value of an operation on constants, as `merge` gives it where they follow the batch size.

    ``like`` has the dtype and device of the network's input.
    """
    if not holds((args, kwargs), Varies) and not holds((args, kwargs), Value):
        return _call(root, node, args, kwargs)
    return merge(*(_call(root, node, *_for_batch((args, kwargs), count, like)) for count in (2, 3)))


def merge(two: Any, three: Any) -> Any:
    """A number, a tensor or a tuple of them, with `Varies` where it differs between batches of two and of three."""
    if isinstance(two, tuple | list):
        return tuple(merge(a, b) for a, b in zip(two, three, strict=True))
    if isinstance(two, Tensor):
        return two if two.shape == three.shape and torch.equal(two, three) else Varies(two, three)
    return two if two is three or two == three else Varies(two, three)


def for_each_item(leaf: Any) -> Any:
    """A constant tensor that follows the batch size as ``[1, ...]``, if it is the same for each item."""
    if not isinstance(leaf, Varies) or not isinstance(leaf.two, Tensor):
        return leaf
    two, three = leaf.two, leaf.three
    if two.shape[:1] + three.shape[:1] != (2, 3) or two.shape[1:] != three.shape[1:]:
        raise Refused("it depends on the batch size")
    if not all(torch.equal(item, two[0]) for item in (*two, *three)):
        raise Refused("it differs from image to image of a batch")
    return two[:1]


def holds(structure: Any, kind: type) -> bool:
    """Whether an entry of nested tuples, lists, dicts and slices is of a type."""
    if isinstance(structure, dict):
        return any(holds(entry, kind) for entry in structure.values())
    if isinstance(structure, slice):
        return holds((structure.start, structure.stop, structure.step), kind)
    if isinstance(structure, tuple | list):
        return any(holds(entry, kind) for entry in structure)
    return isinstance(structure, kind)


def _for_batch(structure: Any, count: int, like: Tensor) -> Any:
    """Arguments as they are for a batch of 2 or 3 items."""

    def entry(leaf: Any) -> Any:
        if isinstance(leaf, Varies):
            return leaf.two if count == 2 else leaf.three
        return like.new_empty((count, *leaf.shape)) if isinstance(leaf, Value) else leaf

    return fx.node.map_aggregate(structure, entry)


def _call(root: nn.Module, node: fx.Node, args: Any, kwargs: Any) -> Any:
    with torch.no_grad():
        if node.op == "call_module":
            return root.get_submodule(str(node.target))(*args, **kwargs)
        if node.op == "call_method":
            return getattr(args[0], str(node.target))(*args[1:], **kwargs)
        return node.target(*args, **kwargs)  # type: ignore[operator]
