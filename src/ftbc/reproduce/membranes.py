"""Figure `fig mem dist`: how membrane potentials are spread just before a layer fires, one neuron over many images.

All layers before it are calibrated, and in its own layer all steps before: what is left to correct is this b[t], and
the proposition of the paper says that some b[t] does it if the potentials are spread without gaps.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ftbc.calibrate import FTBC
from ftbc.calibrate.widen import widen_bias
from ftbc.convert import convert
from ftbc.errors import FileError
from ftbc.graph.ir import Node
from ftbc.measure.membrane import before_firing
from ftbc.measure.speed import folded
from ftbc.network import SpikingNetwork
from ftbc.neuron import Spiking
from ftbc.recipes import recipe
from ftbc.report.paper_plots import membrane_histograms
from ftbc.reproduce.result import Figure
from ftbc.reproduce.setting import Setting
from ftbc.reproduce.subject import Kept, Subject, find_subject
from ftbc.reproduce.toml_table import TomlTable


def measure_membranes(setting: Setting) -> Figure:
    """The potentials of a random neuron for each ``[[figure.panel]]``, a layer (counted from 1) and a step."""
    table = TomlTable(dict(setting.experiment.figure), f"{setting.experiment.name}, figure")
    base, iterations, alpha = table.get("recipe", str), table.get("iterations", int), table.get("alpha", float)
    panels = [(panel.get("layer", int), panel.get("step", int)) for panel in table.tables("panel")]
    table.close()
    subject, steps = find_subject(setting), max(setting.scale.steps)
    own = {"base": base, "iterations": iterations, "alpha": alpha, "steps": steps, "seed": setting.seed}
    kept = Kept(setting, {**subject.key(), **own})
    networks: list[SpikingNetwork] = []

    def measure(layer: int, step: int) -> dict[str, Any]:
        if not networks:
            method = recipe(base)
            pieces = tuple(
                replace(piece, iterations=iterations, alpha=alpha) if isinstance(piece, FTBC) else piece
                for piece in method.calibrate
            )
            for calibrate in ((), pieces):
                made = replace(method, calibrate=calibrate)
                networks.append(
                    convert(subject.model, subject.images, steps, made, seed=setting.seed, progress=setting.progress)
                )
        return _panel(subject, networks[0], networks[1], layer, step)

    found = [
        kept.get(
            {"what": f"membranes-layer{layer}-t{step}", "layer": layer, "step": step}, partial(measure, layer, step)
        )
        for layer, step in panels
    ]
    rows = [
        {"layer": panel["layer"], "step": panel["step"], "neuron": panel["neuron"], "image": image, "potential": value}
        for panel in found
        for image, value in enumerate(panel["potentials"])
    ]
    title = f"{subject.name} on {subject.test.name}, T = {steps}"
    return Figure(
        rows, [_said(panel) for panel in found], lambda path: membrane_histograms(path, found, title), subject.name,
        f"{len(subject.test):,} of {subject.test.name}, calibrated on {len(subject.images):,}",
    )  # fmt: skip


def correction_for(potentials: Tensor, theta: float, share: float) -> float:
    """The b for which a share of the potentials reaches theta: b* of the proposition, of a sample of N.

    >>> correction_for(torch.tensor([0.25, 0.5, 0.75, 1.0]), 1.0, share=0.5)
    0.25
    """
    count = round(min(max(share, 0.0), 1.0) * len(potentials))
    ordered = potentials.sort(descending=True).values
    # As many as that are at or above theta; for none, all are just below.
    return float(theta - ordered[count - 1]) if count else float(theta - ordered[0]) - 1e-6 * max(1.0, abs(theta))


@torch.no_grad()
def _panel(
    subject: Subject, plain: SpikingNetwork, calibrated: SpikingNetwork, layer: int, step: int
) -> dict[str, Any]:
    sites = calibrated.graph.of_type(Spiking)
    if layer > len(sites) or step > calibrated.steps:
        raise FileError(
            f"'{subject.setting.experiment.name}': layer {layer}, step {step} is not in a network of {len(sites)} "
            f"spiking layers and {calibrated.steps} steps: choose others"
        )
    name = sites[layer - 1].name
    snn = not_yet(plain, calibrated, name, step)
    neuron = snn.graph[name].module
    assert isinstance(neuron, Spiking)
    x = subject.test.tensor()
    v = before_firing(snn, x, name, step).flatten(1)
    a = _activations(subject, name).flatten(1)
    theta = neuron.spread(neuron.threshold).expand(1, *snn.graph.shape(name)).flatten()
    # A neuron that is silent on all images says nothing: one of the others.
    alive = (a > 0).float().mean(0).gt(0.1).nonzero().flatten()
    generator = torch.Generator().manual_seed(subject.setting.seed)
    alive = alive if len(alive) else torch.arange(v.shape[1])
    chosen = int(alive[torch.randint(len(alive), (1,), generator=generator)])
    own, level = v[:, chosen], float(theta[chosen])
    share = float(a[:, chosen].clamp(max=level).mean()) / level
    return {
        "layer": layer, "name": name, "step": step, "neuron": chosen, "threshold": level,
        "potentials": [round(value, 5) for value in own.tolist()],
        "firing": float((own >= level).float().mean()), "wanted": share,
        "correction": correction_for(own, level, share),
    }  # fmt: skip


def not_yet(plain: SpikingNetwork, calibrated: SpikingNetwork, name: str, step: int) -> SpikingNetwork:
    """The calibrated network, in which a layer is not yet calibrated from a step on."""
    snn = copy.deepcopy(calibrated)
    node: Node = copy.deepcopy(plain.graph[name])
    widen_bias(node, "channel")
    before, now = node.module, snn.graph[name].module
    assert isinstance(before, Spiking) and isinstance(now, Spiking)
    now.bias[step - 1 :] = before.bias[step - 1 :]
    return snn


def _activations(subject: Subject, name: str) -> Tensor:
    found: list[Tensor] = []
    ann = folded(subject.model, subject.images[:1])
    for x in subject.test.tensor().split(100):
        ann(x, lambda node, a: found.append(a) if node.name == name else None)
    return torch.cat(found)


def _said(panel: dict[str, Any]) -> str:
    potentials, share, wanted = panel["potentials"], 100 * panel["firing"], 100 * panel["wanted"]
    return (
        f"Layer {panel['layer']} (`{panel['name']}`), step {panel['step']}, neuron {panel['neuron']}: "
        f"{len(set(potentials))} different potentials on {len(potentials)} images; {share:.1f} % reach the threshold "
        f"of {panel['threshold']:.3f}, {wanted:.1f} % should (the mean activation, clipped, over the threshold), and "
        f"b* = {panel['correction']:+.3f} makes it so."
    )
