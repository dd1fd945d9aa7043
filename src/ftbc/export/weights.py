"""`ftbc.export.weights`: a network in integers for chips, simulated before its files are put in their place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ftbc.atomic import require_ending, require_writable
from ftbc.export.agreement import Agreement, agreement, recorded
from ftbc.export.integer_file import write
from ftbc.export.quantise import integers
from ftbc.export.sample import require_network
from ftbc.export.score import Score, score
from ftbc.network import SpikingNetwork
from ftbc.progress import Progress, silent


@dataclass(frozen=True)
class WeightsReport:
    """What integers do to a network: accuracy in percent at each time step, as it was and in integers."""

    path: str
    bits: int
    bytes: int
    agreement: Agreement
    score: Score | None

    def __str__(self) -> str:
        names = f"{self.path} and {Path(self.path).with_suffix('.json')}"
        lines = [f"{names}: weights of {self.bits} bits, {self.bytes / 1e6:.2f} MB"]
        lines += [f"in integers: {self.agreement}"]
        return "\n".join([*lines, *([str(self.score)] if self.score is not None else [])])


@torch.no_grad()
def weights(
    snn: SpikingNetwork,
    path: str | Path,
    images: Tensor,
    *,
    bits: int = 8,
    per_channel: bool = False,
    data: Any = None,
    progress: Progress = silent,
) -> WeightsReport:
    """Write a network in integers, as an .npz file with a description in JSON beside it, and simulate it.

    images: ``[N, ...]``, a few, never those it is tested on: their largest pixel decides on the scale of the input, and
    spikes are compared on them. bits: of a weight, the sign included. per_channel: a scale and a threshold for each
    channel, instead of each layer. data: labelled data as for `ftbc.evaluate`, to measure the accuracy of the integers.
    """
    require_network(snn)
    path = Path(path)
    require_ending(path, ".npz")
    require_writable(path, path.with_suffix(".json"))
    network = integers(snn, bits, images, per_channel)
    x = images[:16]
    found = agreement(recorded(snn.graph, x, snn.extra_steps + snn.steps), network.recorded(x))
    measured = None if data is None else score(snn, {"integers": network.run}, data, progress)
    more = {
        "recipe": snn.recipe.to_dict(),
        "accuracy": None if measured is None else {"network": measured.network, **measured.others},
        "images": None if measured is None else measured.images,
    }
    size = write(network, path, bits, more)
    return WeightsReport(str(path), bits, size, found, measured)
