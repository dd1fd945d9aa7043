"""Operations that overwrite their operand, made pure: whoever reads that memory later reads their result."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx, nn

from ftbc.graph.call import Problem, name_of, operation_of
from ftbc.graph.trace import Traced, source_of

# Where `inplace` stands among the positional arguments of the functions that spikes can pass.
_INPLACE_POSITION = {"relu": 1, "relu6": 1, "hardtanh": 3, "threshold": 3, "dropout": 3}
_AUGMENTED = ("iadd", "isub", "imul", "itruediv")


def separate_in_place(traced: Traced) -> list[Problem]:
    """Rewire the recorded graph; what overwrites a part of another tensor that is read later is a problem."""
    order = {node: index for index, node in enumerate(traced.graph.nodes)}
    problems = []
    for node in list(traced.graph.nodes):
        operand = _first_argument(node)
        if operand not in traced.places or not _overwrites(traced.module, node):
            continue
        written = traced.places[operand]
        for other, place in traced.places.items():
            readers = [user for user in other.users if order[user] > order[node]]
            if not readers or order[_made_by(other, traced)] >= order[node]:
                continue
            if place == written:
                for reader in readers:
                    reader.replace_input_with(other, node)
            elif written.overlaps(place):
                problems.append(_writes_into_view(traced, node))
                break
    return problems


def _overwrites(root: nn.Module, node: fx.Node) -> bool:
    if node.op == "call_module":
        return bool(getattr(root.get_submodule(str(node.target)), "inplace", False))
    if node.op not in ("call_function", "call_method"):
        return False
    name, _ = operation_of(root, node)
    position = _INPLACE_POSITION.get(name, len(node.args))
    asked = node.args[position] if position < len(node.args) else node.kwargs.get("inplace")
    return name in _AUGMENTED or (name.endswith("_") and not name.endswith("__")) or bool(asked)


def _first_argument(node: fx.Node) -> Any:
    first = node.args[0] if node.args else node.kwargs.get("input")
    return first if isinstance(first, fx.Node) else None


def _made_by(node: fx.Node, traced: Traced) -> fx.Node:
    """The node that made a tensor; one taken out of a tuple was made with the tuple."""
    owner = _first_argument(node)
    if owner is None or owner in traced.places or not isinstance(traced.seen[owner][0], tuple | list):
        return node
    return owner if isinstance(traced.seen[node][0], torch.Tensor) else node


def _writes_into_view(traced: Traced, node: fx.Node) -> Problem:
    operation, module = operation_of(traced.module, node)
    what = type(module).__name__ if module is not None else operation
    return Problem(
        name_of(node, operation),
        what,
        source_of(node),
        "it overwrites a part of a tensor that is read later; use the form that returns a new tensor",
    )
