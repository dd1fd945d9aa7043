"""From a recorded forward to a clean graph: one rule for each operation, whatever its spelling."""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import Tensor, fx

from ftbc.graph.call import Call, Cleaned, Problem, Refused, Value
from ftbc.graph.constants import FILLED, SIZES, evaluate, for_each_item, holds, merge
from ftbc.graph.in_place import separate_in_place
from ftbc.graph.ir import INPUT, Graph
from ftbc.graph.remedies import remedy_for, unforeseen
from ftbc.graph.rules import RULES
from ftbc.graph.trace import Traced

__all__ = ["Cleaned", "Problem", "canonical"]
log = logging.getLogger(__name__)


def canonical(traced: Traced) -> Cleaned:
    """Translate every recorded operation; what has no rule is collected in ``problems``. Uses ``traced`` up."""
    problems = separate_in_place(traced)
    _remove_unread(traced.graph)
    inputs = [node for node in traced.graph.nodes if node.op == "placeholder" and node.users]
    cleaned = Cleaned(Graph(tuple(traced.seen[inputs[0]][0].shape[1:]) if inputs else ()), problems=problems)
    env: dict[fx.Node, Any] = {}
    for node in traced.graph.nodes:
        args, kwargs = (fx.node.map_arg(part, lambda n: env[n]) for part in (node.args, node.kwargs))
        if node.op == "placeholder":
            env[node] = Value(INPUT, cleaned.graph.input_shape) if node in inputs[:1] else None
        elif node.op == "output":
            cleaned.graph.output = _output(cleaned, args[0])
        else:
            env[node] = _translate(cleaned, traced, node, args, kwargs)
    if not problems:  # the rows before a problem lead nowhere, but `check` shows them
        cleaned.graph.prune()
    return cleaned


def _translate(cleaned: Cleaned, traced: Traced, node: fx.Node, args: Any, kwargs: Any) -> Any:
    """What a node is worth: a constant, a number, or a value (or several) of the clean graph."""
    if node.op == "get_attr":
        return _attribute(traced, str(node.target))
    call = Call(cleaned, traced, node)
    try:
        from_input = holds((args, kwargs), Value)
        if not holds(call.two, Tensor):
            if from_input and call.two is not None and call.operation not in SIZES:
                raise Refused("it takes a number out of an activation; keep to tensors, or compute it outside")
            return merge(call.two, call.three)
        if not from_input or call.operation in FILLED:
            return evaluate(traced.module, node, args, kwargs, torch.empty(0, dtype=call.dtype, device=call.device))
        return _apply_rule(call, args, kwargs)
    except Refused as refusal:
        cleaned.problems.append(call.problem(str(refusal)))
    return _unknown(call.two)


def _apply_rule(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if call.operation not in RULES:
        raise Refused(remedy_for(call.operation))
    args, kwargs = fx.node.map_aggregate((args, kwargs), for_each_item)  # type: ignore[misc]
    # The operand may be given by name, under the names that torch has for it.
    named = [kwargs[name] for name in ("input", "tensors") if name in kwargs]
    settings = {name: value for name, value in kwargs.items() if name not in ("input", "tensors")}
    module = () if call.module is None else (call.module,)
    try:
        return RULES[call.operation](call, *module, *named, *args, **settings)
    except Refused:
        raise
    except Exception as error:
        log.debug("the rule for %s failed", call.operation, exc_info=True)
        raise Refused(unforeseen(call.operation)) from error


def _remove_unread(graph: fx.Graph) -> None:
    """Drop what no output depends on: assertions, unused branches."""
    for node in reversed(list(graph.nodes)):
        if node.op not in ("placeholder", "output") and not node.users:
            graph.erase_node(node)


def _output(cleaned: Cleaned, result: Any) -> str:
    if isinstance(result, tuple | list) and len(result) == 1:
        result = result[0]
    if not isinstance(result, Value):
        cleaned.problems.append(
            Problem("output", type(result).__name__, "", "the network must return one tensor; wrap it so that it does")
        )
        return INPUT
    return result.name


def _attribute(traced: Traced, target: str) -> Any:
    value: Any = traced.module
    for part in target.split("."):
        value = getattr(value, part)
    return value.detach() if isinstance(value, Tensor) else value


def _unknown(result: Any) -> Any:
    """A stand-in for the result of an operation that has no rule, so that the rest can still be checked."""
    if isinstance(result, tuple | list):
        return tuple(_unknown(entry) for entry in result)
    return Value(INPUT, tuple(result.shape[1:])) if isinstance(result, Tensor) else result
