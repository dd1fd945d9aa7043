"""Unit thresholds: spikes of exactly 0 and 1, and the same network otherwise."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ftbc
from ftbc.graph.ops import Affine, Synapses
from ftbc.neuron import IntegrateFire
from ftbc.threshold import MeanSquare
from tests.networks import INPUT_SHAPE, NETWORKS

RECIPE = ftbc.recipe("ftbc", calibrate=(ftbc.FTBC(iterations=2),))


class _Joined(nn.Module):
    """Shortcut without parameters, concatenation of two spiking branches, upsampling, a slice of channels."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.c, self.d = nn.Conv2d(12, 6, 3, padding=1), nn.Linear(6 * 16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.a(x).relu()
        y = torch.relu(self.b(x) + F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 2, 2)))
        z = torch.cat([F.interpolate(y, scale_factor=2.0), x], 1)
        z = F.max_pool2d(F.relu(self.c(z)), 2)
        return self.d(z.flatten(1))


def _spikes(snn: ftbc.SpikingNetwork, x: Tensor) -> dict[str, Tensor]:
    seen = {}

    def keep(node, inputs, output, start) -> None:
        if isinstance(node.module, IntegrateFire):
            seen.setdefault(node.name, []).append(output)

    snn(x, observe=keep)
    return {name: torch.cat(parts, 1) for name, parts in seen.items()}


@pytest.mark.parametrize("name", [*NETWORKS, "joined"])
@pytest.mark.parametrize("grain", ["layer", "channel", "neuron"])
def test_spikes_are_zero_or_one_and_where_they_were(name: str, grain: str) -> None:
    torch.manual_seed(4)
    network = NETWORKS[name]() if name in NETWORKS else _Joined().double()
    images = torch.rand(20, *INPUT_SHAPE, dtype=torch.float64)
    snn = ftbc.convert(
        network, images, 5, ftbc.recipe("ftbc", calibrate=RECIPE.calibrate, threshold=MeanSquare(grain=grain))
    )
    unit = snn.with_unit_thresholds()
    original, scaled = _spikes(snn, images), _spikes(unit, images)
    assert original.keys() == scaled.keys()
    for site, spikes in scaled.items():
        assert set(spikes.unique().tolist()) <= {0.0, 1.0}
        assert torch.equal(spikes != 0, original[site] != 0), site
        assert bool((unit.graph[site].module.threshold == 1).all())
    assert torch.allclose(unit(images), snn(images), atol=1e-12)


def test_weights_read_spikes_directly_and_identity_shortcuts_keep_one_factor() -> None:
    """After scaling, every convolution behind neurons reads 0/1; only the identity shortcut has a factor of its own."""
    torch.manual_seed(4)
    images = torch.rand(20, *INPUT_SHAPE, dtype=torch.float64)
    unit = ftbc.convert(NETWORKS["residual"](), images, 5, RECIPE).with_unit_thresholds()
    assert len(unit.graph.of_type(Affine)) == 1
    inputs = {}
    unit(
        images,
        observe=lambda node, ins, out, start: (
            inputs.setdefault(node.name, ins[0]) if isinstance(node.module, Synapses) else None
        ),
    )
    for name in ("conv1", "conv2", "conv3", "down"):
        assert set(inputs[name].unique().tolist()) <= {0.0, 1.0}, name


def test_the_original_network_is_not_changed() -> None:
    images = torch.rand(8, *INPUT_SHAPE, dtype=torch.float64)
    snn = ftbc.convert(NETWORKS["residual"](), images, 3, RECIPE)
    before = snn(images)
    snn.with_unit_thresholds()
    assert torch.equal(snn(images), before)
