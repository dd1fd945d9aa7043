"""Figure `fig:overview`: what the method does, on a real layer: mean outputs at each step, and the biases found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ftbc.convert import convert
from ftbc.errors import FileError
from ftbc.graph.ir import Node
from ftbc.measure.speed import folded
from ftbc.network import SpikingNetwork
from ftbc.neuron import Spiking
from ftbc.neuron.functional import mean_over
from ftbc.recipes import recipe
from ftbc.report.overview_plot import method_overview
from ftbc.reproduce.result import Figure
from ftbc.reproduce.setting import Setting
from ftbc.reproduce.subject import Kept, Subject, find_subject
from ftbc.reproduce.toml_table import TomlTable

_CHANNELS = 64


def measure_overview(setting: Setting) -> Figure:
    """Mean activation and mean spikes of every channel of a layer, at each step, without FTBC and with it; and b[t]."""
    table = TomlTable(dict(setting.experiment.figure), f"{setting.experiment.name}, figure")
    base, layer = table.get("recipe", str), table.get("layer", int)
    table.close()
    subject, steps = find_subject(setting), max(setting.scale.steps)
    kept = Kept(setting, {**subject.key(), "base": base, "steps": steps, "seed": setting.seed})
    found = kept.get({"what": f"overview-layer{layer}", "layer": layer}, lambda: _measure(subject, base, layer, steps))
    rows = [
        {
            "channel": channel, "step": t + 1, "activation": found["activation"][channel],
            "without": found["without"][t][channel], "with": found["with"][t][channel],
            "bias": found["bias"][t][channel],
        }
        for t in range(steps)
        for channel in range(len(found["activation"]))
    ]  # fmt: skip
    before, after = (_gap(found["activation"], found[which]) for which in ("without", "with"))
    said = (
        f"Layer `{found['name']}`: the mean output of a channel misses the mean activation by {before:.1f} % of the "
        f"layer's mean activation without FTBC and by {after:.1f} % with it, in the mean over channels and the {steps} "
        "steps."
    )
    title = f"{subject.name}, layer {found['name']}, T = {steps}"
    return Figure(
        rows, [said], lambda path: method_overview(path, found, title), subject.name,
        f"{len(subject.test):,} of {subject.test.name}, calibrated on {len(subject.images):,}",
    )  # fmt: skip


def mean_outputs(snn: SpikingNetwork, x: Tensor, layer: str) -> Tensor:
    """The mean output of each channel of a layer at each step, ``[T, C]``, over images and positions."""
    shape = snn.graph.shape(layer)
    sums = torch.zeros(snn.extra_steps + snn.steps, shape[0], dtype=torch.float64)

    def observe(node: Node, _: list[Tensor], output: Tensor, start: int) -> None:
        if node.name == layer:
            rest = [axis for axis in range(1, output.ndim) if axis != 2]
            sums[start : start + len(output)] += output.sum(rest).double().cpu()

    for part in x.split(100):
        snn(part, head=False, observe=observe)
    return sums / (len(x) * torch.Size(shape[1:]).numel())


@torch.no_grad()
def _measure(subject: Subject, base: str, layer: int, steps: int) -> dict[str, Any]:
    setting, method, x = subject.setting, recipe(base), subject.test.tensor()
    plain, corrected = (
        convert(subject.model, subject.images, steps, made, seed=setting.seed, progress=setting.progress)
        for made in (replace(method, calibrate=()), method)
    )
    sites = corrected.graph.of_type(Spiking)
    if layer > len(sites):
        raise FileError(f"'{setting.experiment.name}': the network has {len(sites)} spiking layers, not {layer}")
    name, neuron = sites[layer - 1].name, sites[layer - 1].module
    assert isinstance(neuron, Spiking)
    means: list[Tensor] = []
    ann = folded(subject.model, subject.images[:1])
    ann(x, lambda node, a: means.append(mean_over(a, neuron.bias[0])) if node.name == name else None)
    theta = neuron.threshold.expand(len(means[0]))
    bias = neuron.bias.reshape(steps, -1) / theta
    outputs = [mean_outputs(snn, x, name) for snn in (plain, corrected)]
    return {
        "name": name,
        "activation": _short(means[0][:_CHANNELS]),
        "without": [_short(row[:_CHANNELS]) for row in outputs[0]],
        "with": [_short(row[:_CHANNELS]) for row in outputs[1]],
        "bias": [_short(row[:_CHANNELS]) for row in bias],
    }


def _gap(activation: list[float], outputs: list[list[float]]) -> float:
    a, s = torch.tensor(activation), torch.tensor(outputs)
    return 100 * float((s - a).abs().mean() / a.mean())


def _short(values: Tensor) -> list[float]:
    return [round(value, 5) for value in values.tolist()]
