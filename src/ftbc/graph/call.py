"""What rules work with: values of the clean graph, the call that is being translated, and reasons to refuse it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx, nn

from ftbc.errors import UnsupportedError
from ftbc.graph.ir import Graph, Node, Shape
from ftbc.graph.trace import Traced, scope_of, source_of


@dataclass(frozen=True)
class Value:
    """A tensor that depends on the network's input; ``shape`` is that of one item."""

    name: str
    shape: Shape

    @property
    def ndim(self) -> int:
        """The number of dimensions of a batch."""
        return len(self.shape) + 1


@dataclass(frozen=True)
class Varies:
    """A number that follows the batch size: what it is for 2 and for 3 items."""

    two: Any
    three: Any


@dataclass(frozen=True)
class Problem:
    """Something that spikes cannot pass, where it stands, and what to do about it."""

    name: str
    what: str
    source: str
    remedy: str

    def __str__(self) -> str:
        where = f", {self.source}" if self.source else ""
        return f"'{self.name}' ({self.what}{where}) cannot pass spikes: {self.remedy}"


class Refused(Exception):  # noqa: N818 - it never leaves this package
    """Raised by a rule: this call cannot be expressed; the text is the remedy."""


@dataclass
class Cleaned:
    """A clean graph, the function applied to the averaged output if there is one, and what stands in the way."""

    graph: Graph
    head: nn.Module | None = None
    problems: list[Problem] = field(default_factory=list)

    def require(self) -> Cleaned:
        """Raise one error that lists every problem, one a line."""
        if self.problems:
            raise UnsupportedError("\n".join(str(problem) for problem in self.problems))
        return self


class Call:
    """One recorded operation while it is being translated: what a rule may ask and do."""

    def __init__(self, cleaned: Cleaned, traced: Traced, node: fx.Node) -> None:
        self.cleaned = cleaned
        self.node = node
        self.operation, self.module = operation_of(traced.module, node)
        self.name = name_of(node, self.operation)
        self.two, self.three = traced.seen[node]
        self.dtype, self.device = traced.dtype, traced.device

    @property
    def shape(self) -> Shape:
        """Shape of one item of the result."""
        return self.item(self.two, self.three)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Shapes of one item of each result, for operations that give several."""
        return tuple(self.item(two, three) for two, three in zip(self.two, self.three, strict=True))

    @property
    def is_last(self) -> bool:
        """Whether nothing but the network's output reads this result."""
        return all(user.op == "output" for user in self.node.users)

    def emit(self, module: nn.Module, *inputs: Value, shape: Shape | None = None, suffix: str = "") -> Value:
        """Add an operation to the clean graph; without ``shape`` it gives the result of the call.

        suffix: goes behind the name of the call where this is not the operation that should bear it.
        """
        shape = self.shape if shape is None else shape
        node = Node(self.name + suffix, module, tuple(v.name for v in inputs), shape, source_of(self.node))
        return Value(self.cleaned.graph.append(node), shape)

    def problem(self, remedy: str) -> Problem:
        """This call as something that spikes cannot pass."""
        what = self.operation if self.module is None else type(self.module).__name__
        return Problem(self.name, what, source_of(self.node), remedy)

    def item(self, two: Tensor, three: Tensor) -> Shape:
        """Shape of one item of what was seen for 2 and for 3; the batch must be dimension 0, the precision kept."""
        if two.shape[:1] + three.shape[:1] != (2, 3) or two.shape[1:] != three.shape[1:]:
            raise Refused("it mixes the images of a batch; keep the batch in dimension 0")
        if two.dtype != self.dtype:
            raise Refused(f"it turns {self.dtype} into {two.dtype}; keep one precision throughout")
        return tuple(two.shape[1:])


def operation_of(root: nn.Module, node: fx.Node) -> tuple[str, nn.Module | None]:
    """The key of the rule for a node, and the module that it calls, if any.

    Functions, methods and exported operators go by their bare name: `F.relu`, `torch.relu`, `aten.relu` -> relu;
    functions of other packages by their full one.
    """
    if node.op == "call_module":
        module = root.get_submodule(str(node.target))
        return type(module).__name__, module
    target = node.target
    if isinstance(target, str):
        return target, None
    if isinstance(target, torch._ops.OpOverload):
        name = target._schema.name.rpartition("::")[2]
        return f"aten.{name}" if name in _OTHER_ARGUMENTS else name, None
    owner = getattr(target, "__module__", "") or ""
    name = getattr(target, "__name__", str(target))
    own = not owner or owner.startswith(("torch", "_operator", "builtins"))
    return name if own else f"{owner}.{name}", None


_OTHER_ARGUMENTS = ("batch_norm", "slice")
"""Exported operators whose arguments stand in another order than those of the function of that name."""


def name_of(node: fx.Node, operation: str) -> str:
    """What a node is called in the clean graph and in messages: its layer, or its place and what it does there."""
    scope = scope_of(node)
    if node.op == "call_module":
        return str(node.target)
    if scope and _inside_leaf(node):
        return scope
    return f"{scope}.{operation}" if scope else operation


def _inside_leaf(node: fx.Node) -> bool:
    """Whether an exported operation is the body of one torch.nn layer, and so can bear the layer's name."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    kind = stack[-1][1] if stack else ""
    return isinstance(kind, str) and kind.startswith("torch.nn.modules") and "container" not in kind
