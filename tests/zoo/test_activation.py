"""The activation of every network can be replaced, each place with a module of its own."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ftbc import zoo

from .test_conversion import SPIKING_LAYERS


class Threshold(nn.Module):
    """A clipped ReLU with a trainable bound, which counts its uses."""

    def __init__(self) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.tensor(2.0))
        self.uses = 0

    def forward(self, x: Tensor) -> Tensor:
        self.uses += 1
        return x.clamp(min=0).minimum(self.theta)


@pytest.mark.parametrize("name", zoo.architectures())
def test_each_place_has_its_own(name: str) -> None:
    side = zoo.architectures()[name].side
    with torch.device("meta"):  # shapes alone are enough
        model = zoo.build(name, activation=Threshold)
        model(torch.empty(2, 3, side, side))
    own = [module for module in model.modules() if isinstance(module, Threshold)]
    assert len(own) == SPIKING_LAYERS[name] and all(module.uses == 1 for module in own)
    assert len([key for key in model.state_dict() if key.endswith(".theta")]) == len(own)
    assert not any(isinstance(module, nn.ReLU | nn.ReLU6) for module in model.modules())
