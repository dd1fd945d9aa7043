"""Follow a network's forward with torch.fx, or with torch.export where Python decides on shapes or values."""

from __future__ import annotations

import copy
import inspect
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn.utils import parametrize

from ftbc.errors import TraceError
from ftbc.graph.ops import Activation


@dataclass
class Traced:
    """A recorded forward: ``module`` owns the parameters; ``seen`` holds what each node gave for 2 and 3 items."""

    module: nn.Module
    graph: fx.Graph
    seen: dict[fx.Node, tuple[Any, Any]]


class _Tracer(fx.Tracer):
    record_stack_traces = True

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, Activation) or super().is_leaf_module(m, module_qualified_name)


def trace(model: nn.Module, example: Tensor) -> Traced:
    """Record the forward of a copy of ``model`` in eval mode; ``example`` is a batch of at least one item."""
    model = copy.deepcopy(model).eval()
    _bake_parametrizations(model)
    item = example[:1]
    two, three = item.repeat(2, *[1] * (item.ndim - 1)), item.repeat(3, *[1] * (item.ndim - 1))
    try:
        with torch.no_grad():
            model(two)
    except Exception as error:
        raise TraceError(
            f"the network does not run on input of shape {tuple(two.shape)}: {_first_line(error)}{_at(error)}"
        ) from error
    root, graph = _record(model, two)
    seen = {node: (a, _run(root, graph, three)[node]) for node, a in _run(root, graph, two).items()}
    return Traced(root, graph, seen)


def source_of(node: fx.Node) -> str:
    """``file.py:line`` of the user's code that made a node, or an empty string."""
    frames = re.findall(r'File "([^"]+)", line (\d+)', node.stack_trace or "")
    library = str(Path(torch.__file__).parent)
    for file, line in reversed(frames):
        if not file.startswith(library):
            return f"{Path(file).name}:{line}"
    return ""


def scope_of(node: fx.Node) -> str:
    """Dotted name of the innermost module whose forward made a node."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [entry[0] for entry in stack.values()]
    return str(paths[-1]).removeprefix("L['self'].").strip(".") if paths else ""


def _record(model: nn.Module, example: Tensor) -> tuple[nn.Module, fx.Graph]:
    defaults = {
        name: parameter.default
        for name, parameter in list(inspect.signature(model.forward).parameters.items())[1:]
        if parameter.default is not inspect.Parameter.empty
    }
    try:
        return model, _Tracer().trace(model, concrete_args=defaults or None)
    except Exception as by_fx:
        try:
            # The exported program is fixed to this path of the control flow, as any conversion has to be.
            batch = torch.export.Dim.DYNAMIC  # type: ignore[attr-defined]
            program = torch.export.export(model, (example,), dynamic_shapes=({0: batch},), strict=False)
        except Exception:
            raise TraceError(
                f"the network's forward cannot be traced: {_first_line(by_fx)}{_at(by_fx)}; move the part that "
                "depends on values out of forward, or convert the submodule that holds the layers"
            ) from by_fx
        module = program.module(check_guards=False)
        return module, module.graph


class _Recorder(fx.Interpreter):
    """Runs the recorded nodes; tensors are kept as their shape and dtype on the meta device."""

    def __init__(self, root: nn.Module, graph: fx.Graph) -> None:
        super().__init__(root, garbage_collect_values=True, graph=graph)
        self.seen: dict[fx.Node, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        self.seen[n] = fx.node.map_aggregate(
            result, lambda v: torch.empty_like(v, device="meta") if isinstance(v, Tensor) else v
        )
        return result


def _run(root: nn.Module, graph: fx.Graph, x: Tensor) -> dict[fx.Node, Any]:
    recorder = _Recorder(root, graph)
    with torch.no_grad():
        recorder.run(x)
    return recorder.seen


def _bake_parametrizations(model: nn.Module) -> None:
    """Turn computed weights (weight norm, spectral norm, pruning ...) of the copy into plain ones."""
    for module in model.modules():
        if parametrize.is_parametrized(module):
            for name in list(module.parametrizations):  # type: ignore[arg-type]
                parametrize.remove_parametrizations(module, name, leave_parametrized=True)


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return text[0] if text else type(error).__name__


def _at(error: BaseException) -> str:
    """`` (file.py:line)`` of the last frame outside of torch and of this library."""
    ours, library = str(Path(__file__).parents[1]), str(Path(torch.__file__).parent)
    place, step = "", error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if not file.startswith((ours, library, "<")):
            place = f" ({Path(file).name}:{step.tb_lineno})"
        step = step.tb_next
    return place
