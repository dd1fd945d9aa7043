"""snnTorch: our network with its `Leaky` neurons (decay 1, reset by subtraction), in a loop over the steps."""

from __future__ import annotations

import importlib

import torch
from torch import Tensor, nn

from benchmarks.rivals.straight import stem_and_body
from benchmarks.rivals.task import Offer, Task, in_batches, sizes

BATCHES = (8, 64)


def offers(task: Task) -> tuple[dict[str, Offer], dict[str, str]]:
    """The loop, in batches of several sizes."""
    library = importlib.import_module("snntorch")

    class Neuron(nn.Module):
        """`Leaky` whose membrane begins where it should."""

        def __init__(self, start: float) -> None:
            super().__init__()
            self.leaky = library.Leaky(beta=1.0, threshold=1.0, reset_mechanism="subtract", surrogate_disable=True)
            self.start, self.membrane = start, None

        def forward(self, x: Tensor) -> Tensor:
            before = torch.full_like(x, self.start) if self.membrane is None else self.membrane
            spikes, self.membrane = self.leaky(x, before)
            return spikes

    stem, body = stem_and_body(task.snn.with_unit_thresholds().graph, Neuron, lambda module: module)
    neurons = [module for module in body.modules() if isinstance(module, Neuron)]

    def run(x: Tensor) -> Tensor:
        for neuron in neurons:
            neuron.membrane = None
        current = stem(x)
        total = body(current)
        for _ in range(task.snn.steps - 1):
            total = total + body(current)
        return total / task.snn.steps

    found = {
        f"same network, batch {batch}": in_batches(run, task.images, batch) for batch in sizes(BATCHES, task.images)
    }
    return found, {"snntorch": library.__version__, "torch": str(torch.__version__)}
