"""From a recorded forward to a clean graph: one rule for each operation, whatever its spelling."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx, nn

from ftbc.errors import UnsupportedError
from ftbc.graph.ir import INPUT, Graph, Node, Shape
from ftbc.graph.trace import Traced, scope_of, source_of

VARIES = object()
"""Stands for a number that follows the batch size."""


@dataclass(frozen=True)
class Value:
    """A tensor that depends on the network's input; ``shape`` is that of one item."""

    name: str
    shape: Shape


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

    def __init__(self, cleaned: Cleaned, node: fx.Node, operation: str, result: Any, batch: int) -> None:
        self.cleaned = cleaned
        self.node = node
        self.operation = operation
        self.result = result
        self.batch = batch
        scope = scope_of(node)
        if node.op == "call_module":
            self.name = str(node.target)
        elif scope and _inside_leaf(node):
            self.name = scope
        else:
            self.name = f"{scope}.{operation}" if scope else operation

    def shape_of(self, result: Tensor) -> Shape:
        """Shape of one item of a result; refuses results in which the batch is not dimension 0."""
        if result.ndim == 0 or result.shape[0] != self.batch:
            raise Refused("it mixes the images of a batch; keep the batch in dimension 0")
        return tuple(result.shape[1:])

    def emit(self, module: nn.Module, *inputs: Value, shape: Shape | None = None) -> Value:
        """Add an operation to the clean graph."""
        if shape is None:
            shape = self.shape_of(self.result)
        node = Node(self.name, module, tuple(v.name for v in inputs), shape, source_of(self.node))
        return Value(self.cleaned.graph.append(node), shape)

    @property
    def is_last(self) -> bool:
        """Whether nothing but the network's output reads this result."""
        return all(user.op == "output" for user in self.node.users)


def canonical(traced: Traced) -> Cleaned:
    """Translate every recorded operation; what has no rule is collected in ``problems``."""
    from ftbc.graph.rules import RULES, remedy_for

    _separate_in_place(traced)
    batch = 2
    placeholders = [n for n in traced.graph.nodes if n.op == "placeholder" and n.users]
    cleaned = Cleaned(Graph(tuple(traced.seen[placeholders[0]][0].shape[1:]) if placeholders else ()))
    env: dict[fx.Node, Any] = {}
    for node in traced.graph.nodes:
        args = fx.node.map_arg(node.args, lambda n: env[n])
        kwargs = fx.node.map_arg(node.kwargs, lambda n: env[n])
        if node.op == "placeholder":
            env[node] = Value(INPUT, cleaned.graph.input_shape) if node in placeholders[:1] else None
        elif node.op == "output":
            cleaned.graph.output = _output(cleaned, args[0])
        elif node.op == "get_attr":
            env[node] = _attribute(traced.module, str(node.target))
        elif not _holds_tensor(traced.seen[node][0]):
            env[node] = _merge(*traced.seen[node])
        elif not _holds_value((args, kwargs)):
            env[node] = _evaluate(traced.module, node, args, kwargs)
        else:
            operation, extra = _operation(traced.module, node)
            call = Call(cleaned, node, operation, traced.seen[node][0], batch)
            try:
                if operation not in RULES:
                    raise Refused(remedy_for(operation))
                env[node] = RULES[operation](call, *extra, *args, **kwargs)
            except (Refused, TypeError) as refusal:
                reason = str(refusal) if isinstance(refusal, Refused) else remedy_for(operation)
                what = type(extra[0]).__name__ if extra else operation
                cleaned.problems.append(Problem(call.name, what, source_of(node), reason))
                env[node] = _unknown(traced.seen[node][0])
    cleaned.graph.prune()
    return cleaned


def _separate_in_place(traced: Traced) -> None:
    """Make in-place operations pure: whoever reads their operand later reads their result instead."""
    order = {node: index for index, node in enumerate(traced.graph.nodes)}
    for node in list(traced.graph.nodes):
        if node.args and isinstance(node.args[0], fx.Node) and _is_in_place(traced.module, node):
            operand = node.args[0]
            for user in list(operand.users):
                if order[user] > order[node]:
                    user.replace_input_with(operand, node)


def _is_in_place(root: nn.Module, node: fx.Node) -> bool:
    if node.op == "call_module":
        return bool(getattr(root.get_submodule(str(node.target)), "inplace", False))
    if node.op not in ("call_function", "call_method"):
        return False
    name = _name(node.target)
    writes = name in ("iadd", "isub", "imul", "itruediv") or (name.endswith("_") and not name.endswith("__"))
    positional = name in ("relu", "relu6") and len(node.args) > 1 and bool(node.args[1])
    return writes or positional or bool(node.kwargs.get("inplace"))


def _name(target: Any) -> str:
    """The bare name of a function, method or exported operator: `F.relu`, `torch.relu`, `aten.relu` -> relu."""
    if isinstance(target, str):
        return target
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.name.rpartition("::")[2]
    return getattr(target, "__name__", str(target))


def _operation(root: nn.Module, node: fx.Node) -> tuple[str, tuple[Any, ...]]:
    """The key of the rule for a node, and the module that it calls, if any."""
    if node.op == "call_module":
        module = root.get_submodule(str(node.target))
        return type(module).__name__, (module,)
    owner = getattr(node.target, "__module__", "") or ""
    foreign = bool(owner) and not owner.startswith(("torch", "_operator", "builtins"))
    name = _name(node.target)
    if isinstance(node.target, torch._ops.OpOverload) and name in ("batch_norm", "slice"):
        name = f"aten.{name}"
    return (f"{owner}.{name}" if foreign else name), ()


def _inside_leaf(node: fx.Node) -> bool:
    """Whether an exported operation is the body of one torch.nn layer, and so can bear the layer's name."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    kind = stack[-1][1] if stack else ""
    return isinstance(kind, str) and kind.startswith("torch.nn.modules") and "container" not in kind


def _output(cleaned: Cleaned, result: Any) -> str:
    if isinstance(result, tuple | list) and len(result) == 1:
        result = result[0]
    if not isinstance(result, Value):
        cleaned.problems.append(
            Problem("output", type(result).__name__, "", "the network must return one tensor; wrap it so that it does")
        )
        return INPUT
    return result.name


def _attribute(root: nn.Module, target: str) -> Any:
    value: Any = root
    for part in target.split("."):
        value = getattr(value, part)
    return value.detach() if isinstance(value, Tensor) else value


def _evaluate(root: nn.Module, node: fx.Node, args: Any, kwargs: Any) -> Any:
    """The value of an operation on constants alone."""
    with torch.no_grad():
        if node.op == "call_module":
            return root.get_submodule(str(node.target))(*args, **kwargs)
        if node.op == "call_method":
            return getattr(args[0], str(node.target))(*args[1:], **kwargs)
        return node.target(*args, **kwargs)  # type: ignore[operator]


def _merge(two: Any, three: Any) -> Any:
    """A number or a tuple of numbers, with `VARIES` where it differs between batches of two and of three."""
    if isinstance(two, tuple | list):
        return tuple(_merge(a, b) for a, b in zip(two, three, strict=True))
    return two if two is three or operator.eq(two, three) else VARIES


def _holds_tensor(result: Any) -> bool:
    if isinstance(result, tuple | list):
        return any(_holds_tensor(entry) for entry in result)
    return isinstance(result, Tensor)


def _holds_value(args: Any) -> bool:
    if isinstance(args, dict):
        return any(_holds_value(entry) for entry in args.values())
    if isinstance(args, tuple | list):
        return any(_holds_value(entry) for entry in args)
    return isinstance(args, Value)


def _unknown(result: Any) -> Any:
    """A stand-in for the result of an operation that has no rule, so that the rest can still be checked."""
    if isinstance(result, tuple | list):
        return tuple(_unknown(entry) for entry in result)
    return Value(INPUT, tuple(result.shape[1:])) if isinstance(result, Tensor) else result
