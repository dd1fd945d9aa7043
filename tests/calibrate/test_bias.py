"""SNNC-LP against the network run anew for each layer, and its properties."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc.activation import QCFS
from ftbc.calibrate import FTBC, BiasCorrection, Calibration
from ftbc.errors import RecipeError
from ftbc.initial import Zero
from ftbc.threshold import Maximum
from tests.calibrate.support import STEPS, by_rerunning, channel_mean, make_calibration, make_images, neurons, record
from tests.conftest import Refused
from tests.networks import NETWORKS, residual


def _naively(calibration: Calibration, x: Tensor) -> None:
    for neuron, _, spikes, a in by_rerunning(calibration, x):
        average = sum(spikes) / calibration.steps
        for channel in range(a.shape[1]):
            gap = channel_mean(average, channel) - channel_mean(a, channel)
            for t in range(calibration.steps):
                neuron.bias[t, channel] -= gap


@pytest.mark.parametrize("name", NETWORKS)
@torch.no_grad()
def test_one_pass_equals_rerunning_the_network_for_each_layer(name: str) -> None:
    images = make_images(16)
    network = NETWORKS[name]()
    one_pass, rerun = (make_calibration(network, images) for _ in range(2))
    BiasCorrection(batch=8, batches=2)(one_pass)
    for chosen in rerun.draw(8, 2):
        _naively(rerun, images[chosen])
    for site, neuron in neurons(one_pass).items():
        assert neuron.bias.abs().max() > 1e-3
        torch.testing.assert_close(neuron.bias, neurons(rerun)[site].bias, rtol=0, atol=1e-12, msg=site)


@torch.no_grad()
def test_it_brings_the_mean_spikes_nearer_to_the_mean_activations() -> None:
    images = make_images(48)
    calibration = make_calibration(residual(), images, recipe=ftbc.Recipe(initial=Zero()))

    def gap() -> float:
        visits = by_rerunning(calibration, images)
        return sum(float((spikes.mean((0, 1, 3, 4)) - a.mean((0, 2, 3))).abs().sum()) for _, _, spikes, a in visits)

    before = gap()
    BiasCorrection(batch=48)(calibration)
    assert gap() < before / 2


@torch.no_grad()
def test_it_is_a_bias_of_the_layer_before() -> None:
    """Rows of b that are all alike do what the bias of the convolution does."""
    images = make_images(12)
    network = NETWORKS["plain"]()
    calibration = make_calibration(network, images)
    BiasCorrection(batch=12)(calibration)
    plain = make_calibration(network, images)
    for layer, site in (("0", "2"), ("5", "6")):
        rows = neurons(calibration)[site].bias
        assert torch.equal(rows, rows[:1].expand_as(rows))
        plain.snn[layer].module.bias += rows[0]
    for neuron in neurons(plain).values():
        assert not neuron.bias.any()
    for site in neurons(plain):
        assert torch.equal(*(_spikes(found, images, site) for found in (plain, calibration)))


def _spikes(calibration: Calibration, x: Tensor, site: str) -> Tensor:
    return record(calibration.snn, x, STEPS, site)[1] != 0


@torch.no_grad()
def test_activations_that_spikes_reproduce_exactly_are_not_corrected() -> None:
    """Nothing to correct is the base method: activations of 0 and theta alone."""
    network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).double()
    network[0].weight.data, network[0].bias.data = torch.eye(4, 3, dtype=torch.float64), torch.zeros(4).double()
    x = torch.randint(0, 2, (32, 3), dtype=torch.float64)
    calibration = make_calibration(network, x, recipe=ftbc.Recipe(threshold=Maximum()))
    BiasCorrection()(calibration)
    assert not neurons(calibration)["1"].bias.any()


@torch.no_grad()
def test_a_threshold_for_the_layer_gets_biases_per_channel() -> None:
    network = nn.Sequential(nn.Conv2d(3, 5, 3), QCFS(4, 0.7), nn.Flatten(), nn.Linear(180, 2)).double()
    images = make_images(8)
    snn = ftbc.convert(network, images, 3, ftbc.recipe("qcfs", calibrate=(BiasCorrection(),)))
    neuron = snn.graph["1"].module
    assert neuron.threshold.shape == (1,) and neuron.bias.shape == (3, 5)
    assert len(neuron.bias.unique()) == 5


@torch.no_grad()
def test_biases_per_neuron_keep_their_differences() -> None:
    images = make_images(8)
    calibration = make_calibration(residual(), images)
    FTBC(iterations=1, grain="neuron")(calibration)
    before = {site: neuron.bias.clone() for site, neuron in neurons(calibration).items()}
    BiasCorrection()(calibration)
    for site, neuron in neurons(calibration).items():
        change = neuron.bias - before[site]
        assert change.shape[1:] == neuron.bias.shape[1:] and change.abs().max() > 0
        torch.testing.assert_close(change, change[:1, :, :1, :1].expand_as(change), rtol=0, atol=1e-12)


def test_by_hand() -> None:
    """Two images, one neuron: a = 0.2 and 0.9, theta = 0.6, v[0] = 0, T = 2 send 0 and 0.6 a step."""
    network = nn.Sequential(nn.Linear(1, 1, bias=False), nn.ReLU(), nn.Linear(1, 1)).double()
    network[0].weight.data.fill_(1.0)
    x = torch.tensor([[0.2], [0.9]], dtype=torch.float64)
    calibration = make_calibration(network, x, steps=2)
    neuron = neurons(calibration)["1"]
    neuron.threshold.fill_(0.6)
    neuron.initial.zero_()
    with torch.no_grad():
        BiasCorrection()(calibration)
    assert neuron.bias.flatten().tolist() == pytest.approx([0.25, 0.25])  # (0.2 + 0.9) / 2 - (0 + 0.6) / 2


@pytest.mark.parametrize("wrong", [{"batch": 0}, {"batches": 0}, {"batch": 1.5}])
def test_wrong_settings_are_refused(wrong: dict, refused: Refused) -> None:
    refused(RecipeError, "BiasCorrection", BiasCorrection, **wrong)
