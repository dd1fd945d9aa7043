"""A spiking network as an ONNX model: one step with its state going in and out, or all T steps in one.

    one step:   x, t, v, ...  ->  y, t_next, v_next, ...      y is the output of this step
    all steps:  x  ->  mean [T, N, ...]                       what snn(x) gives

ONNX has no state: membranes are inputs and outputs, zero at the start with t = 0, from which the model itself goes to
the initial potential. The number of images is free in both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ftbc.errors import UnsupportedError
from ftbc.export.onnx_ops import emit
from ftbc.export.onnx_sheet import BATCH, Sheet
from ftbc.graph.ir import INPUT, Node, Shape
from ftbc.network import SpikingNetwork
from ftbc.neuron import IntegrateFire, SpikingMaxPool, Temporal
from ftbc.simulate.readout import running_mean
from ftbc.simulate.schedule import varying


@dataclass
class Drawn:
    """A model in the making, and what a reader needs to know: its state, and which values are spikes.

    states: (input, output, shape) of each piece of state; spikes: for each layer the values that are its spikes, one a
    step; outputs: the values that are the output of each step.
    """

    sheet: Sheet
    states: list[tuple[str, str, Shape]] = field(default_factory=list)
    spikes: dict[str, list[str]] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)


def one_step(snn: SpikingNetwork) -> Drawn:
    """The model of a single step."""
    graph = snn.graph
    held = {node.name: _held(node, graph.shape(node.inputs[0])) for node in graph.of_type(Temporal)}
    drawn = Drawn(Sheet(["y", "t_next", *(f"{name}.{part}_next" for name, parts in held.items() for part in parts)]))
    sheet = drawn.sheet
    values = {INPUT: sheet.takes("x", (BATCH, *graph.input_shape))}
    t = sheet.takes("t", (1,), whole=True)
    names = {
        (name, part): sheet.takes(f"{name}.{part}", (BATCH, *shape))
        for name, parts in held.items()
        for part, shape in parts.items()
    }
    first = sheet.add("Equal", [t, sheet.constant("zero", [0])], "is_first")
    after: dict[tuple[str, str], str] = {}
    for node in graph:
        inputs = [values[name] for name in node.inputs]
        if not isinstance(node.module, Temporal):
            values[node.name] = emit(sheet, graph, node, inputs, node.name)
            continue
        state = {part: names[node.name, part] for part in held[node.name]}
        if isinstance(node.module, IntegrateFire):
            start = sheet.constant(f"{node.name}.initial", node.module.spread(node.module.initial))
            state["v"] = sheet.add("Where", [first, start, state["v"]], f"{node.name}:start")
        values[node.name], state = _temporal(drawn, snn, node, inputs[0], state, node.name, t)
        after |= {(node.name, part): value for part, value in state.items()}
    drawn.outputs.append(values[graph.output])
    sheet.gives(values[graph.output], "y", (BATCH, *graph.shape(graph.output)))
    sheet.gives(sheet.add("Add", [t, sheet.constant("one", [1])], "next_t"), "t_next", (1,), whole=True)
    for (name, part), value in after.items():
        shape = held[name][part]
        sheet.gives(value, f"{name}.{part}_next", (BATCH, *shape))
        drawn.states.append((names[name, part], f"{name}.{part}_next", shape))
    return drawn


def all_steps(snn: SpikingNetwork) -> Drawn:
    """The model of all steps, one after another: plain operations, for programs without state or loops."""
    drawn, graph = Drawn(Sheet(["mean"])), snn.graph
    sheet, changing = drawn.sheet, varying(graph, input_varies=False)
    constant = {INPUT: sheet.takes("x", (BATCH, *graph.input_shape))}
    states: dict[str, dict[str, str]] = {}
    for t in range(snn.extra_steps + snn.steps):
        values = dict(constant)
        for node in graph:
            if node.name not in changing:
                if t == 0:
                    constant[node.name] = emit(sheet, graph, node, [constant[i] for i in node.inputs], node.name)
                    values[node.name] = constant[node.name]
                continue
            inputs, output = [values[name] for name in node.inputs], f"{node.name}/{t}"
            if isinstance(node.module, Temporal):
                state = states.get(node.name) or _at_rest(sheet, node)
                values[node.name], states[node.name] = _temporal(drawn, snn, node, inputs[0], state, output, t)
            else:
                values[node.name] = emit(sheet, graph, node, inputs, output)
        drawn.outputs.append(values[graph.output])
    shape = graph.shape(graph.output)
    sheet.gives(_means(sheet, snn, drawn.outputs, shape), "mean", (snn.steps, BATCH, *shape))
    return drawn


def _held(node: Node, before: Shape) -> dict[str, Shape]:
    """The names and shapes of what a stateful module remembers."""
    if isinstance(node.module, IntegrateFire):
        return {"v": node.shape}
    return {"total": before, "sent": node.shape}


def _at_rest(sheet: Sheet, node: Node) -> dict[str, str]:
    if isinstance(node.module, IntegrateFire):
        return {"v": sheet.constant(f"{node.name}.initial", node.module.spread(node.module.initial))}
    return dict.fromkeys(("total", "sent"), sheet.constant("nothing", torch.zeros(1)))


def _temporal(
    drawn: Drawn, snn: SpikingNetwork, node: Node, x: str, state: dict[str, str], output: str, t: str | int
) -> tuple[str, dict[str, str]]:
    """What a stateful module gives at a step, and its state afterwards; t: a value of the model, or a number."""
    sheet = drawn.sheet
    if isinstance(node.module, IntegrateFire):
        spikes, v = _neuron(sheet, node, node.module, x, state["v"], output, t)
        drawn.spikes.setdefault(node.name, []).append(spikes)
        return spikes, {"v": v}
    if isinstance(node.module, SpikingMaxPool):
        total = sheet.add("Add", [state["total"], x], f"{output}:total")
        pool = Node(node.name, node.module._pool, node.inputs, node.shape)
        largest = emit(sheet, snn.graph, pool, [total], f"{output}:largest")
        return sheet.add("Sub", [largest, state["sent"]], output), {"total": total, "sent": largest}
    raise UnsupportedError(f"{node.place} cannot be written as ONNX: it has no rule for such neurons")


def _neuron(
    sheet: Sheet, node: Node, neuron: IntegrateFire, x: str, v: str, output: str, t: str | int
) -> tuple[str, str]:
    theta = sheet.constant(f"{node.name}.threshold", neuron.spread(neuron.threshold))
    v = sheet.add("Add", [v, x], f"{output}:charged")
    if bool(neuron.bias.any()):
        v = sheet.add("Add", [v, _bias(sheet, node, neuron, output, t)], f"{output}:biased")
    fired = sheet.add("GreaterOrEqual", [v, theta], f"{output}:fired")
    counted = sheet.add("Cast", [fired], f"{output}:counted", to=sheet.onnx.TensorProto.FLOAT)
    spikes = sheet.add("Mul", [counted, theta], output)
    return spikes, sheet.add("Sub", [v, spikes], f"{output}:left")


def _bias(sheet: Sheet, node: Node, neuron: IntegrateFire, output: str, t: str | int) -> str:
    rows = torch.stack([neuron.spread(row) for row in neuron.bias])
    if isinstance(t, int):
        return sheet.constant(f"{node.name}.bias_{t}", rows[t])
    return sheet.add("Gather", [sheet.constant(f"{node.name}.bias", rows), t], f"{output}:bias", axis=0)


def _means(sheet: Sheet, snn: SpikingNetwork, outputs: list[str], shape: Shape) -> str:
    """The answer after each step that counts: outputs times readout, then the head."""
    front = sheet.constant("front", [0])
    rows = [sheet.add("Unsqueeze", [value, front], f"row_{t}") for t, value in enumerate(outputs)]
    weights = running_mean(snn.steps, snn.extra_steps) if snn.readout is None else snn.readout
    stacked = sheet.add("Concat", rows, "outputs", axis=0)
    flat = sheet.add("Reshape", [stacked, sheet.constant("by_step", [len(outputs), -1])], "outputs_by_step")
    means = sheet.add("MatMul", [sheet.constant("readout", weights), flat], "means_by_step")
    if snn.head is None:
        return sheet.add("Reshape", [means, sheet.constant("over_time", [snn.steps, -1, *shape])], "means")
    items = sheet.add("Reshape", [means, sheet.constant("by_item", [-1, *shape])], "means_by_item")
    head = Node("head", snn.head, (snn.graph.output,), shape)
    answers = emit(sheet, snn.graph, head, [items], "answers")
    return sheet.add("Reshape", [answers, sheet.constant("over_time", [snn.steps, -1, *shape])], "means")


def description(snn: SpikingNetwork, drawn: Drawn, whole: bool) -> dict[str, Any]:
    """What a reader needs that ONNX has no place for."""
    readout: Tensor | None = snn.readout
    return {
        "form": "all steps" if whole else "one step",
        "steps": snn.steps,
        "extra_steps": snn.extra_steps,
        "readout": None if readout is None else readout.tolist(),
        "head": None if snn.head is None else type(snn.head).__name__,
        "states": drawn.states,
        "spikes": drawn.spikes,
        "outputs": drawn.outputs,
        "recipe": snn.recipe.to_dict(),
    }
