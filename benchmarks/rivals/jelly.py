"""SpikingJelly: its own conversion of the ANN, and our network in its layers and neurons."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.rivals.straight import plain_ann, stem_and_body
from benchmarks.rivals.task import Offer, Task, in_batches, sizes
from ftbc.measure.speed import folded

BATCHES = (8, 64)
Run = Callable[[Tensor], Tensor]


def offers(task: Task) -> tuple[dict[str, Offer], dict[str, str]]:
    """Both in batches of several sizes, its own conversion step by step and all steps at once."""
    one_by_one, at_once = _own_conversion(task)
    same = _same_network(task)
    found = {}
    for batch in sizes(BATCHES, task.images):
        found[f"ann2snn, batch {batch}, step by step"] = in_batches(one_by_one, task.images, batch)
        found[f"ann2snn, batch {batch}, multi-step"] = in_batches(at_once, task.images, batch)
        found[f"same network, batch {batch}, multi-step"] = in_batches(same, task.images, batch)
    return found, {"spikingjelly": version("spikingjelly"), "torch": str(torch.__version__)}


def _library(name: str) -> Any:
    return importlib.import_module(f"spikingjelly.activation_based.{name}")


def _own_conversion(task: Task) -> tuple[Run, Run]:
    ann2snn, functional = _library("ann2snn"), _library("functional")
    ann = plain_ann(folded(task.ann, task.images[:1]))
    recipe = ann2snn.RateCodingRecipe(dataloader=list(task.images.split(64)), mode="99.9%")
    network = ann2snn.Converter(recipe=recipe).convert(ann).eval()
    steps = task.snn.steps

    def one_by_one(x: Tensor) -> Tensor:
        functional.set_step_mode(network, "s")
        functional.reset_net(network)
        total = network(x)
        for _ in range(steps - 1):
            total = total + network(x)
        return total / steps

    def at_once(x: Tensor) -> Tensor:
        functional.set_step_mode(network, "m")
        functional.reset_net(network)
        return network(x.expand(steps, *x.shape)).mean(0)

    return one_by_one, at_once


def _same_network(task: Task) -> Run:
    neurons, layers, functional = _library("neuron"), _library("layer"), _library("functional")

    def neuron(start: float) -> nn.Module:
        node = neurons.IFNode(v_threshold=1.0, v_reset=None, step_mode="m")
        node.set_reset_value("v", start)
        return node

    stem, body = stem_and_body(task.snn.with_unit_thresholds().graph, neuron, layers.SeqToANNContainer)

    def run(x: Tensor) -> Tensor:
        functional.reset_net(body)
        current = stem(x)
        return body(current.expand(task.snn.steps, *current.shape)).mean(0)

    return run
