"""Give a trained ReLU network other activations, with thresholds that fit what it computes.

Each threshold comes from the activations of the ReLU network on training images. With levels, it is the one of least
square error in a single step (`threshold.MeanSquare`), whatever their number: thresholds hardly move in a few epochs,
and the larger ones that suit L steps leave a network that is right after L steps and wrong before, as held-out training
images showed. Without levels it is the 99.9th percentile, which needs hardly any training. `fit_steps` chooses
otherwise.
"""

from __future__ import annotations

import copy
import re

import torch
from torch import Tensor, nn

from ftbc.activation import ThresholdActivation
from ftbc.errors import UnsupportedError
from ftbc.graph.canonical import canonical
from ftbc.graph.leaves import put
from ftbc.graph.trace import trace
from ftbc.threshold import Activations, MeanSquare, Percentile
from ftbc.threshold.activations import gather

_BATCH = 128
_RECTIFIERS = (nn.ReLU, nn.ReLU6, nn.Hardtanh)


@torch.no_grad()
def swap_activations(
    model: nn.Module, prototype: ThresholdActivation, images: Tensor, fit_steps: int | None = None
) -> nn.Module:
    """Put a copy of ``prototype`` in the place of each ReLU, in place, and return the model in eval mode.

    images: normalised training images ``[N, ...]``, a few hundred. fit_steps: thresholds of least square error in so
    many time steps: the fewer, the smaller.
    """
    graph = canonical(trace(model.eval(), images[:1])).require().graph
    if fit_steps is None and prototype.levels is not None:
        fit_steps = 1
    thresholds: dict[str, float] = {}
    for name, seen in gather(graph, images.split(_BATCH), "layer").items():
        place = _module_name(model, name)
        if place is None:
            raise UnsupportedError(
                f"{seen.place} is not an activation module of its own: write it as nn.ReLU() in the network's __init__"
            )
        # A module in several places has one threshold: the largest, which clips none of them.
        thresholds[place] = max(thresholds.get(place, 0.0), _fitted(seen, fit_steps))
    for name, theta in thresholds.items():
        own, old = copy.deepcopy(prototype).to(images.dtype), model.get_submodule(name)
        own.set_threshold(theta)
        for alias in [each for each, module in model.named_modules(remove_duplicate=False) if module is old]:
            put(model, alias, own)
    return model.eval()


def _fitted(seen: Activations, steps: int | None) -> float:
    """The threshold for these activations of one layer, taken as a whole; positive also where nothing was active."""
    rule = Percentile(99.9, "layer") if steps is None else MeanSquare("nearest", "layer")
    return float(rule(seen, steps or 1))


def _module_name(model: nn.Module, site: str) -> str | None:
    """The name of the ReLU module behind a neuron site; the second call of a module is called ``name_1``."""
    modules = dict(model.named_modules())
    for name in (site, re.sub(r"_\d+$", "", site)):
        if isinstance(modules.get(name), _RECTIFIERS):
            return name
    return None
