"""Thresholds balanced on the spiking network, against the network run anew for each layer."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import ftbc
from ftbc.calibrate import FTBC, ThresholdBalance
from ftbc.errors import RecipeError
from ftbc.initial import Given, SpreadHalf, Zero
from ftbc.threshold import Maximum
from tests.calibrate.support import STEPS, by_rerunning, make_calibration, make_images, neurons
from tests.conftest import Refused
from tests.networks import INPUT_SHAPE, NETWORKS


@pytest.mark.parametrize("grain", ["layer", "channel", "neuron"])
@pytest.mark.parametrize("name", NETWORKS)
@torch.no_grad()
def test_one_pass_equals_rerunning_the_network_for_each_layer(name: str, grain) -> None:
    images = make_images(12)
    network, recipe = NETWORKS[name](), ftbc.Recipe(threshold=Maximum(grain), initial=Zero())
    one_pass, rerun = (make_calibration(network, images, recipe=recipe) for _ in range(2))
    ThresholdBalance(factor=0.7, batch=8)(one_pass)
    for neuron, currents, _, a in by_rerunning(rerun, images[next(rerun.draw(8))]):
        shared = {"layer": (1,), "channel": a.shape[1:2], "neuron": a.shape[1:]}[grain]
        for place in range(neuron.threshold.numel()):
            seen = currents.flatten() if shared == (1,) else currents.flatten(2)[:, :, _places(place, shared, a.shape)]
            largest = max(seen.flatten().tolist())
            if largest > 0:
                neuron.threshold.view(-1)[place] = 0.7 * largest
    for site, neuron in neurons(one_pass).items():
        torch.testing.assert_close(neuron.threshold, neurons(rerun)[site].threshold, rtol=1e-12, atol=0, msg=site)
        assert not neuron.initial.any() and not neuron.bias.any()


def _places(place: int, shared: tuple[int, ...], shape: torch.Size) -> list[int]:
    if len(shared) == len(shape) - 1:
        return [place]
    positions = torch.Size(shape[2:]).numel()
    return list(range(place * positions, (place + 1) * positions))


@torch.no_grad()
def test_it_is_spike_norm_of_unit_spikes() -> None:
    """With spikes of 1 the thresholds of the layers before multiply: W s of unit spikes is our current over theta."""
    torch.manual_seed(3)
    layers = [layer for _ in range(3) for layer in (nn.Linear(8, 8, bias=False), nn.ReLU())]
    network = nn.Sequential(*layers, nn.Linear(8, 2, bias=False)).double()
    x, factor = torch.rand(20, 8, dtype=torch.float64), 0.9
    snn = ftbc.convert(network, x, 6, ftbc.recipe("rmp", calibrate=(ThresholdBalance(factor, batch=20),))).graph

    trains, product = x.expand(6, *x.shape), 1.0
    for place in (0, 2, 4):
        currents = trains @ network[place].weight.T
        theta = factor * currents.max()
        v, sent = torch.zeros(20, 8, dtype=torch.float64), []
        for current in currents:
            v = v + current
            sent.append((v >= theta).double())
            v = v - theta * sent[-1]
        trains, product = torch.stack(sent), product * float(theta)
        assert float(snn[str(place + 1)].module.threshold) == pytest.approx(product, rel=1e-12)


@torch.no_grad()
def test_charges_keep_their_share_of_the_threshold() -> None:
    images = make_images(8)
    for initial, v0, total in ((Given(0.3), 0.3, 0.0), (SpreadHalf(), 0.0, 0.5)):
        recipe = ftbc.Recipe(threshold=Maximum("channel"), initial=initial)
        calibration = make_calibration(NETWORKS["residual"](), images, recipe=recipe)
        ThresholdBalance()(calibration)
        for neuron in neurons(calibration).values():
            torch.testing.assert_close(neuron.initial, v0 * neuron.threshold)
            torch.testing.assert_close(neuron.bias.sum(0), total * neuron.threshold)


def test_single_currents_are_larger_than_mean_ones() -> None:
    """What a factor below 1 makes up for: spikes come all or none."""
    images = make_images(16)
    network = NETWORKS["residual"]()
    balanced = ftbc.convert(network, images, 16, ftbc.recipe("rmp", calibrate=(ThresholdBalance(1.0),)))
    largest = ftbc.convert(network, images, 16, ftbc.Recipe(threshold=Maximum("layer")))
    pairs = [(row.threshold, other.threshold) for row, other in zip(balanced.layers(), largest.layers(), strict=True)]
    assert pairs[0][0] == pytest.approx(pairs[0][1]) and all(one > other for one, other in pairs[1:])


def test_it_comes_before_what_learns_for_given_thresholds(refused: Refused) -> None:
    words = ("ThresholdBalance", "FTBC", "first")
    refused(RecipeError, words, ftbc.Recipe, calibrate=[FTBC(), ThresholdBalance()], name="mine")
    snn = ftbc.convert(
        NETWORKS["plain"](), torch.rand(8, *INPUT_SHAPE).double(), STEPS,
        ftbc.Recipe(calibrate=[ThresholdBalance(), FTBC(iterations=1)]),
    )  # fmt: skip
    assert len(snn.layers()) == 2


@pytest.mark.parametrize("wrong", [{"factor": 0.0}, {"factor": -1.0}, {"batch": 0}])
def test_wrong_settings_are_refused(wrong: dict, refused: Refused) -> None:
    refused(RecipeError, "ThresholdBalance", ThresholdBalance, **wrong)
