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


class _Smallest(nn.Module):
    """A max-pool of what is negated, or negated in every other channel."""

    def __init__(self, factor: Tensor) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(64, 5)
        self.register_buffer("factor", factor.view(1, -1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.max_pool2d(self.factor * F.relu(self.conv(x)), 2).flatten(1))


@pytest.mark.parametrize("factor", [(-1.0,), (1.0, -0.5, 2.0, -3.0), (0.0, 1.0, 2.0, 0.5)], ids=str)
def test_a_negative_factor_stays_before_a_max_pool(factor: tuple[float, ...]) -> None:
    torch.manual_seed(2)
    images = torch.rand(20, *INPUT_SHAPE, dtype=torch.float64)
    network = _Smallest(torch.tensor(factor, dtype=torch.float64)).double().eval()
    snn = ftbc.convert(network, images, 16, "maximum")
    wanted = snn(images)
    torch.testing.assert_close(snn.with_unit_thresholds()(images), wanted)
    torch.testing.assert_close(snn(images, engine="event"), wanted)
    assert float((wanted[-1] - network(images).detach()).abs().max()) < 0.5 * float(wanted[-1].std())


class _Numbers(nn.Module):
    """Neurons with one number for each image, without a dimension for channels."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(10, 8), nn.Linear(8, 1), nn.Linear(1, 3)

    def forward(self, x: Tensor) -> Tensor:
        number = F.relu(self.b(F.relu(self.a(x))).squeeze(1) + 0.3) * 2
        return self.c(number.unsqueeze(1))


class _Mean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(10, 8)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.a(x)).mean(1).relu()


@pytest.mark.parametrize("kind", [_Numbers, _Mean])
def test_values_of_one_number_for_each_image(kind: type[nn.Module]) -> None:
    torch.manual_seed(3)
    images = torch.rand(24, 10)
    snn = ftbc.convert(kind().eval(), images, 8, "maximum")
    wanted = snn(images)
    torch.testing.assert_close(snn.with_unit_thresholds()(images), wanted)
    torch.testing.assert_close(snn(images, engine="event"), wanted)
    rounded = snn.rounded(images)
    torch.testing.assert_close(rounded(images), rounded(images, engine="event"))
