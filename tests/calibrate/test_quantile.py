"""Biases by selection: mean spikes are mean activations, to within half a spike."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import ftbc
from ftbc import FTBC
from ftbc.calibrate import Calibration, QuantileBias
from ftbc.calibrate.quantile import quantile_bias
from ftbc.convert import convert
from ftbc.errors import RecipeError
from ftbc.neuron import IntegrateFire
from ftbc.simulate import layerwise
from ftbc.threshold import Maximum
from tests.calibrate.walk.test_plan import graphs
from tests.networks import INPUT_SHAPE, NETWORKS


def _naive(x, a, theta, v0, count):
    """One channel in plain Python: sort the membranes, put the threshold between the count-th and the next."""
    v, b = [v0] * len(a), []
    for current in x:
        u = [before + now for before, now in zip(v, current, strict=True)]
        order = sorted(u, reverse=True)
        b.append(theta - (order[count - 1] + order[count]) / 2)
        v = [value + b[-1] - (theta if value + b[-1] >= theta else 0.0) for value in u]
    return b


def test_equals_sorting() -> None:
    x, a = torch.randn(4, 3, 50, dtype=torch.float64), torch.rand(3, 50, dtype=torch.float64)
    theta, v0 = torch.tensor([1.0, 0.8, 2.0]).double(), torch.tensor([0.5, 0.0, 1.0]).double()
    found = quantile_bias(x, a, theta, v0, torch.zeros(4, 3).double())
    for c in range(3):
        count = round(float(a[c].clamp(max=float(theta[c])).mean() / theta[c] * 50))
        wanted = _naive(x[:, c].tolist(), a[c].tolist(), float(theta[c]), float(v0[c]), count)
        assert found[:, c].tolist() == pytest.approx(wanted)


def test_the_spikes_of_each_step_are_as_many_as_wanted() -> None:
    x, a = torch.randn(5, 4, 333, dtype=torch.float64), torch.rand(4, 333, dtype=torch.float64) * 0.9
    theta = torch.ones(4).double()
    b = quantile_bias(x, a, theta, theta / 2, torch.zeros(5, 4).double())
    neuron = IntegrateFire(5, 1).set(theta, theta / 2, b)
    spikes = neuron.run(x.transpose(1, 2))
    assert float((spikes.mean(1) - a.mean(1)).abs().max()) <= 0.5 / 333 + 1e-12


def test_silent_and_full_channels_keep_what_they_have() -> None:
    x = torch.tensor([[[-5.0, -4.0, -3.0], [9.0, 8.0, 7.0], [3.0, -1.0, 0.0], [0.2, 0.3, 0.1]]]).double()
    a = torch.tensor([[0.0] * 3, [1.0] * 3, [0.0] * 3, [1.0] * 3]).double()
    theta, v0 = torch.ones(4).double(), torch.zeros(4).double()
    b = quantile_bias(x, a, theta, v0, torch.zeros(1, 4).double())
    assert b[0, :2].tolist() == [0, 0]  # silent already, full already
    assert bool((x[0, 2] + b[0, 2] < 1).all())  # was not silent
    assert bool((x[0, 3] + b[0, 3] >= 1).all())  # was not full


@pytest.mark.parametrize(("wanted", "fires"), [(0.2, 2), (0.4, 2), (0.5, 7), (0.7, 7), (0.8, 8)])
def test_membranes_that_are_equal_fire_together_and_none_stands_on_its_threshold(wanted: float, fires: int) -> None:
    """Five of ten membranes are equal: as many of all fire as is nearest, and rounding cannot change which."""
    x = torch.tensor([3.0, 2.0, *[1.0] * 5, 0.5, 0.2, -1.0]).double().view(1, 1, -1)
    theta = torch.ones(1).double()
    b = quantile_bias(x, torch.full((1, 10), wanted).double(), theta, 0 * theta, torch.zeros(1, 1).double())
    above = x[0, 0] + b[0, 0] - 1
    assert int((above >= 0).sum()) == fires
    assert float(above.abs().min()) > 0.05


def test_membranes_that_are_all_equal_keep_clear_of_the_threshold() -> None:
    x, theta = torch.full((1, 2, 8), 0.3).double(), torch.ones(2).double()
    a = torch.tensor([[0.2] * 8, [0.8] * 8]).double()
    b = quantile_bias(x, a, theta, 0 * theta, torch.zeros(1, 2).double())
    above = x[0, :, 0] + b[0] - 1
    assert float(above[0]) < -0.1
    assert float(above[1]) > 0.1


def test_uniform_input_gives_one_half() -> None:
    """The special case after Theorem 1 of the paper, exactly."""
    x = torch.linspace(0, 1, 1001, dtype=torch.float64).view(1, 1, -1)
    b = quantile_bias(x, x[0], torch.ones(1).double(), torch.zeros(1).double(), torch.zeros(1, 1).double())
    assert float(b) == pytest.approx(0.5, abs=1e-3)


def _calibration(network: nn.Module, images: torch.Tensor) -> Calibration:
    ann, snn = graphs(network, images)
    return Calibration(ann, snn, 3, images, torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", ["plain", "residual"])
def test_in_a_network_every_layer_and_step_has_the_mean_of_the_ann(name: str) -> None:
    """All neurons and images: the gap is that of half a spike, which FTBC needs many iterations to come near."""
    torch.manual_seed(2)
    images = torch.rand(32, *INPUT_SHAPE, dtype=torch.float64)
    calibration = _calibration(NETWORKS[name](), images)
    QuantileBias(rows=10**6)(calibration)
    targets = FTBC().targets(calibration, images)
    seen = {}

    def compare(node, inputs, spikes, start) -> None:
        if isinstance(node.module, IntegrateFire):
            seen.setdefault(node.name, []).append(spikes)

    layerwise(calibration.snn, images, 3, observe=compare)
    assert len(seen) == len(targets) > 1
    for site, parts in seen.items():
        spikes, theta = torch.cat(parts, 1), calibration.snn[site].module.threshold
        count = spikes[0, :, 0].numel()
        gap = (spikes.mean([1, *range(3, spikes.ndim)]) - targets[site]).abs() / theta
        # A spiking input has few distinct values, so that some membranes are equal.
        assert float(gap.max()) <= (0.5 / count + 1e-9 if site == next(iter(seen)) else 0.05), site


def test_as_a_recipe() -> None:
    images = torch.rand(16, *INPUT_SHAPE, dtype=torch.float64)
    recipe = ftbc.Recipe(threshold=Maximum(), calibrate=(QuantileBias(),))
    snn = convert(NETWORKS["residual"](), images, 3, recipe)
    assert all(float(node.module.bias.abs().max()) > 0 for node in snn.graph.of_type(IntegrateFire))
    assert torch.equal(snn(images), snn(images, engine="stepwise"))
    with pytest.raises(RecipeError, match="rows"):
        QuantileBias(rows=0)
