"""What a spike is worth: the slope of least squares, folded into the weights behind."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ftbc
from ftbc.calibrate import Calibration, Gain, QuantileBias
from ftbc.calibrate.gain import gain
from ftbc.calibrate.walk import LayerCalibrator
from ftbc.errors import RecipeError
from ftbc.graph.ops import Affine
from ftbc.neuron import IntegrateFire
from ftbc.neuron.scale import amplify
from ftbc.simulate import layerwise
from tests.calibrate.walk.test_plan import graphs
from tests.networks import INPUT_SHAPE, NETWORKS


def _spikes(steps: int, channels: int = 3, places: int = 200) -> Tensor:
    return (torch.rand(steps, channels, places, generator=torch.Generator().manual_seed(2)) < 0.4).double()


def test_gain_is_the_slope_of_a_regression() -> None:
    spikes, a = _spikes(4), torch.rand(3, 200).double()
    n = spikes.sum(0)
    a += 0.3 * n
    found = gain(spikes, a, torch.ones(3).double())
    for c in range(3):
        A = torch.stack([n[c] / 4, torch.ones(200)], 1)
        assert float(found[c]) == pytest.approx(float(torch.linalg.lstsq(A, a[c].unsqueeze(1)).solution[0]))


def test_gain_of_several_readings_is_that_of_one_regression_with_an_offset_for_each() -> None:
    steps, first = 6, 4
    spikes, a = _spikes(steps), torch.rand(3, 200).double()
    a += 0.3 * spikes.sum(0)
    found = gain(spikes, a, torch.ones(3).double(), first)
    for c in range(3):
        rows, wanted = [], []
        for t in range(first, steps + 1):
            own = torch.zeros(200, 1 + steps, dtype=torch.float64)
            own[:, 0], own[:, t] = spikes[:t, c].sum(0) / t, 1.0
            weight = (first / t) ** 0.625  # of a row: its square counts
            rows.append(weight * own)
            wanted.append(weight * a[c])
        slope = torch.linalg.lstsq(torch.cat(rows), torch.cat(wanted).unsqueeze(1), driver="gelsd").solution[0]
        assert float(found[c]) == pytest.approx(float(slope))


@pytest.mark.parametrize("steps", [1, 3, 4])
def test_gain_of_a_network_that_ends_before_it_is_to_be_read(steps: int) -> None:
    spikes, a, theta = _spikes(steps), torch.rand(3, 200).double(), torch.ones(3).double()
    assert torch.equal(gain(spikes, a, theta, first=4), gain(spikes, a, theta))


def test_silent_or_contrary_channels_keep_theta() -> None:
    n = torch.tensor([[0.0, 0, 0, 0], [0, 1, 2, 3]]).double()
    a = torch.tensor([[0.0, 1, 2, 3], [3, 2, 1, 0]]).double()
    spikes = torch.stack([n > t for t in range(4)]).double()
    assert gain(spikes, a, torch.tensor([0.7, 0.9]).double()).tolist() == pytest.approx([0.7, 0.9])


class _Mixed(nn.Module):
    """Readers of all kinds: pools, a concatenation, an identity shortcut, a slice with padding, a factor."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(8, 6, 1)
        self.d = nn.Linear(6 * 4, 5)
        self.register_buffer("scale", torch.rand(8, 1, 1) + 0.5)
        self.register_buffer("shift", torch.rand(8, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.a(x))
        y = F.relu(self.b(x) + x)
        z = F.relu(torch.cat([x, F.pad(y[:, :2], (0, 0, 0, 0, 1, 1))], 1) * self.scale - self.shift)
        z = F.max_pool2d(F.relu(self.c(F.avg_pool2d(z, 2))), 2)
        return self.d(z.flatten(1))


@pytest.mark.parametrize("name", [*NETWORKS, "mixed"])
def test_amplify_is_a_factor_on_what_readers_see(name: str) -> None:
    """The spikes stay; all that reads them gets them times the factor, wherever that went."""
    torch.manual_seed(3)
    network = NETWORKS[name]() if name in NETWORKS else _Mixed().double()
    images = torch.rand(6, *INPUT_SHAPE, dtype=torch.float64)
    _, snn = graphs(network, images)
    for site in [node.name for node in snn.of_type(IntegrateFire)]:
        factor = torch.rand(1, snn.shape(site)[0], *[1] * (len(snn.shape(site)) - 1), dtype=torch.float64) + 0.5
        folded, plain = snn.copy(), snn.copy()
        amplify(folded, site, factor)
        assert set(snn.nodes) <= set(folded.nodes)

        def run(graph, factor=factor, site=site):
            """By hand: each step of the site's output times the factor."""
            neuron = graph[site].module
            own = neuron.run
            neuron.run = neuron.consume = lambda x: own(x) * factor
            return layerwise(graph, images, 3)

        torch.testing.assert_close(layerwise(folded, images, 3), run(plain), rtol=1e-9, atol=1e-12)


def test_in_a_network_the_gain_is_that_of_the_regression_and_spikes_stay_binary() -> None:
    torch.manual_seed(3)
    images = torch.rand(24, *INPUT_SHAPE, dtype=torch.float64)
    recipe = ftbc.Recipe(calibrate=(QuantileBias(), Gain()))
    snn = ftbc.convert(NETWORKS["residual"](), images, 4, recipe)
    base = ftbc.convert(NETWORKS["residual"](), images, 4, ftbc.Recipe(calibrate=(QuantileBias(),)))
    assert not torch.allclose(snn(images), base(images))
    assert snn.graph.of_type(Affine)  # the identity shortcut
    unit = snn.with_unit_thresholds()
    seen = []
    unit(images, observe=lambda node, i, s, t: seen.append(s) if isinstance(node.module, IntegrateFire) else None)
    assert len(seen) >= 4 and all(set(spikes.unique().tolist()) <= {0.0, 1.0} for spikes in seen)
    torch.testing.assert_close(unit(images), snn(images), rtol=1e-9, atol=1e-12)


def test_all_gains_of_theta_change_nothing() -> None:
    """A network whose spikes stand for its activations exactly."""
    network = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1)).double()
    network[0].weight.data.fill_(1.0)
    network[0].bias.data.fill_(0.0)
    x = torch.tensor([[0.0], [0.25], [0.5], [0.75], [1.0]]).double()
    ann, snn = graphs(network, x)
    snn["1"].module.set(torch.ones(1).double(), torch.zeros(1).double())
    snn["1"].module.steps, snn["1"].module.bias = 4, torch.zeros(4, 1).double()
    before = layerwise(snn, x, 4)
    Gain()(Calibration(ann, snn, 4, x, torch.Generator()))
    torch.testing.assert_close(layerwise(snn, x, 4), before)


def test_networks_of_many_steps_keep_theta() -> None:
    images = torch.rand(24, *INPUT_SHAPE, dtype=torch.float64)

    def outputs(steps: int, *calibrate: LayerCalibrator) -> Tensor:
        return ftbc.convert(NETWORKS["plain"](), images, steps, ftbc.Recipe(calibrate=calibrate))(images)

    for steps in (4, 5):
        found = []
        for calibrate in ((QuantileBias(),), (QuantileBias(), Gain()), (QuantileBias(), Gain(most_steps=4))):
            torch.manual_seed(3)
            found.append(outputs(steps, *calibrate))
        without, always, here = found
        assert not torch.equal(without, always)
        assert torch.equal(here, always if steps <= 4 else without)
    for wrong in ({"most_steps": -1}, {"first": -1}):
        with pytest.raises(RecipeError, match="must not be negative"):
            Gain(**wrong)
