"""Follow a network's forward with torch.fx, or with torch.export where Python decides on shapes."""

from __future__ import annotations

import inspect
import io
import logging
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx, nn

from ftbc.errors import TraceError
from ftbc.graph.leaves import is_leaf, restore, stand_ins
from ftbc.graph.memory import Place
from ftbc.graph.plain import plain_copy

_TORCH = str(Path(str(torch.__file__)).parent)
_OURS = str(Path(__file__).parents[1])
_HERE = str(Path(__file__).parent)


@dataclass
class Traced:
    """A recorded forward: ``module`` owns the parameters; ``seen`` holds what each node gave for 2 and 3 items.

    Tensors are kept as shape and dtype on the meta device; ``places`` says where in memory they lay.
    """

    module: nn.Module
    graph: fx.Graph
    seen: dict[fx.Node, tuple[Any, Any]]
    places: dict[fx.Node, Place]
    dtype: torch.dtype
    device: torch.device


Recorded = tuple[nn.Module, fx.Graph]


def by_fx(model: nn.Module, example: Tensor) -> Recorded:
    """Run forward on symbols; arguments with a default keep it."""
    arguments = list(inspect.signature(model.forward).parameters.values())[1:]
    defaults = {a.name: a.default for a in arguments if a.default is not inspect.Parameter.empty}
    graph = _Tracer().trace(model, concrete_args=defaults or None)
    if any(n.op == "placeholder" and str(n.target).startswith("*") and n.users for n in graph.nodes):
        raise TraceError("forward takes *args or **kwargs")
    return model, graph


def by_export(model: nn.Module, example: Tensor) -> Recorded:
    """Run forward on an example of known shape: the program is fixed to this path of the control flow."""
    batch = torch.export.Dim.DYNAMIC  # type: ignore[attr-defined]
    arguments = list(inspect.signature(model.forward).parameters.values())
    sizes: Any = ({0: batch},)
    if arguments[0].kind is inspect.Parameter.VAR_POSITIONAL:
        sizes = (sizes,)
    with stand_ins(model) as leaves, _silenced():
        program = torch.export.export(model, (example,), dynamic_shapes=sizes, strict=False)
    module = program.module()
    restore(module, leaves)
    return module, module.graph


@contextmanager
def _silenced() -> Iterator[None]:
    """Torch prints whole graphs of what it cannot follow; all that a user needs is in the error that it raises."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def trace(
    model: nn.Module, example: Tensor, routes: Sequence[Callable[[nn.Module, Tensor], Recorded]] = (by_fx, by_export)
) -> Traced:
    """Record the forward of a copy of ``model`` in eval mode; ``example`` is a batch of at least one item.

    The first of the routes that can follow the forward is taken.
    """
    model = plain_copy(model)

    def batch(count: int) -> Tensor:
        # A new tensor each time: a forward may write into its input.
        return example[:1].repeat(count, *[1] * (example.ndim - 1))

    try:
        with torch.no_grad():
            model(batch(2))
    except Exception as error:
        raise TraceError(
            f"the network does not run on input of shape {tuple(batch(2).shape)}: {_first_line(error)}{_at(error)}"
        ) from error
    root, graph = _record(model, batch(2), routes)
    two = _run(root, graph, batch(2))
    three = _run(root, graph, batch(3))
    seen = {node: (result, three.seen[node]) for node, result in two.seen.items()}
    return Traced(root, graph, seen, two.places, example.dtype, example.device)


def source_of(node: fx.Node) -> str:
    """``file.py:line`` of the user's code that made a node, or an empty string."""
    frames = re.findall(r'File "([^"]+)", line (\d+)', node.stack_trace or "")
    for file, line in reversed(frames):
        if not file.startswith((_TORCH, "torch/", _HERE)):
            return f"{Path(file).name}:{line}"
    return ""


def scope_of(node: fx.Node) -> str:
    """Dotted name of the innermost module whose forward made a node."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [entry[0] for entry in stack.values()]
    return str(paths[-1]).removeprefix("L['self'].").strip(".") if paths else ""


class _Proxy(fx.Proxy):
    """A symbol that records ``x += y`` as what it is: other names of the same tensor see it too."""

    def __iadd__(self, other: Any) -> fx.Proxy:
        return self.tracer.create_proxy("call_function", operator.iadd, (self, other), {})

    def __isub__(self, other: Any) -> fx.Proxy:
        return self.tracer.create_proxy("call_function", operator.isub, (self, other), {})

    def __imul__(self, other: Any) -> fx.Proxy:
        return self.tracer.create_proxy("call_function", operator.imul, (self, other), {})

    def __itruediv__(self, other: Any) -> fx.Proxy:
        return self.tracer.create_proxy("call_function", operator.itruediv, (self, other), {})


class _Tracer(fx.Tracer):
    record_stack_traces = True

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return is_leaf(m) or super().is_leaf_module(m, module_qualified_name)

    def proxy(self, node: fx.Node) -> fx.Proxy:
        return _Proxy(node, self)


def _record(model: nn.Module, example: Tensor, routes: Sequence[Callable[..., Recorded]]) -> Recorded:
    first: Exception | None = None
    for route in routes:
        try:
            return route(model, example)
        except Exception as error:
            first = first or error
    assert first is not None
    raise TraceError(
        f"the network's forward cannot be traced: {_first_line(first)}{_at(first)}; move the part that "
        "depends on values out of forward, or convert the submodule that holds the layers"
    ) from first


class _Recorder(fx.Interpreter):
    """Runs the recorded nodes and notes what each gave and where in memory it lay."""

    def __init__(self, root: nn.Module, graph: fx.Graph) -> None:
        super().__init__(root, garbage_collect_values=True, graph=graph)
        self.seen: dict[fx.Node, Any] = {}
        self.places: dict[fx.Node, Place] = {}

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        self.seen[n] = fx.node.map_aggregate(
            result, lambda v: torch.empty_like(v, device="meta") if isinstance(v, Tensor) else v
        )
        if isinstance(result, Tensor):
            self.places[n] = Place.of(result)
        return result


def _run(root: nn.Module, graph: fx.Graph, x: Tensor) -> _Recorder:
    recorder = _Recorder(root, graph)
    try:
        with torch.no_grad():
            recorder.run(x)
    except Exception as error:
        raise TraceError(
            f"the recorded forward does not run on a batch of {len(x)}: {_first_line(error)}; if it assumes a number "
            "of images, use x.shape[0] in its place"
        ) from error
    return recorder


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return text[0] if text else type(error).__name__


def _at(error: BaseException) -> str:
    """`` (file.py:line)`` of the last frame outside of torch and of this library."""
    place, step = "", error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if not file.startswith((_OURS, _TORCH, "<")):
            place = f" ({Path(file).name}:{step.tb_lineno})"
        step = step.tb_next
    return place
