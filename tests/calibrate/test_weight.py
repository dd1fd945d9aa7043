"""Weights of SNNC-AP: which are trained, on what, and that their error falls."""

from __future__ import annotations

import copy
import math
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ftbc
from ftbc.calibrate import WeightCorrection
from ftbc.calibrate.in_order import Site, activations, in_order
from ftbc.calibrate.weight import Layer, own_synapses
from ftbc.errors import RecipeError
from ftbc.graph.ops import Synapses
from ftbc.initial import Zero
from tests.calibrate.support import STEPS, make_calibration, make_images
from tests.conftest import Refused
from tests.networks import NETWORKS, residual

QUICK = WeightCorrection(iterations=30, batch=8, learning_rate=1e-3, images=24)
EMPTY = ftbc.Recipe(initial=Zero())  # neurons that round down leave much to make up for


def _own(network: nn.Module, recipe: str | ftbc.Recipe = "mean-square") -> dict[str, list[str]]:
    images = make_images(4)
    snn = make_calibration(network, images, recipe=recipe).snn
    with torch.no_grad():
        return {
            site.node.name: [node.name for node in own_synapses(snn, site.segment)]
            for site in in_order(snn, images, STEPS)
        }


def test_which_weights_a_layer_trains() -> None:
    assert list(_own(NETWORKS["plain"]()).values()) == [["0"], ["5"]]
    assert list(_own(residual()).values()) == [["stem"], ["conv1"], ["conv2"], ["conv3", "down"]]
    assert list(_own(NETWORKS["depthwise"]()).values()) == [["wide"], ["depthwise"], ["narrow"]]


class _Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.both, self.one, self.head = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 1), nn.Linear(4 * 36, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.both(x)
        return self.head((F.relu(y) + F.relu(self.one(y))).flatten(1)) + y.mean((1, 2, 3))[:, None]


def test_weights_that_several_layers_or_the_output_read_stay() -> None:
    assert list(_own(_Shared().double()).values()) == [[], ["one"]]


def test_weights_before_a_pool_before_the_neurons_stay() -> None:
    network = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 1), nn.ReLU(), nn.Flatten(), nn.Linear(36, 2)
    ).double()
    before = ftbc.recipe("mean-square", pool="before")
    assert list(_own(network, before).values()) == [[], ["3"]]
    assert list(_own(network).values()) == [["0"], ["3"]]


def _error_naively(site: Site, a: Tensor, z: Tensor, charge: bool) -> float:
    """z: mean currents. Number after number."""
    neuron, steps, total = site.neuron, site.steps, 0.0
    for place in product(*map(range, a.shape)):
        channel = place[1]
        theta, v0 = float(neuron.threshold[channel]), float(neuron.initial[channel])
        b = float(sum(neuron.bias[:, channel]))
        held = v0 + b if charge else 0.0
        count = min(max((steps * float(z[place]) + held) / theta, 0), steps)
        total += (theta / steps * math.floor(count) - float(a[place])) ** 2
    return total * a.shape[1] / a.numel()


@pytest.mark.parametrize("charge", [True, False])
@pytest.mark.parametrize("name", NETWORKS)
@torch.no_grad()
def test_the_error_is_the_formula(name: str, charge: bool) -> None:
    images = make_images(3)
    calibration = make_calibration(NETWORKS[name](), images, recipe="snnc-lp")
    for site, a in zip(in_order(calibration.snn, images, STEPS), activations(calibration.ann, images), strict=True):
        z = torch.cat(list(site.currents()), 1).mean(0)
        assert Layer(site, a, charge).total_error({}) == pytest.approx(_error_naively(site, a, z, charge), rel=1e-9)


@torch.no_grad()
def test_the_count_is_what_a_neuron_sends_of_an_even_current() -> None:
    """q is exact for the first layer, whose current is the image's at each step."""
    images = make_images(8)
    calibration = make_calibration(residual(), images, recipe="snnc-lp")
    site = next(in_order(calibration.snn, images, STEPS))
    sent = torch.cat(list(site.spikes()), 1).mean(0)
    assert Layer(site, sent).total_error({}) == pytest.approx(0, abs=1e-20)


def test_floor_passes_gradients_and_bounds_do_not() -> None:
    network = nn.Sequential(nn.Linear(1, 3, bias=False), nn.ReLU(), nn.Linear(3, 1)).double()
    network[0].weight.data = torch.tensor([[-1.0], [0.45], [5.0]]).double()
    x = torch.ones(1, 1, dtype=torch.float64)
    with torch.no_grad():
        calibration = make_calibration(network, x)
        site = next(in_order(calibration.snn, x, STEPS))
        site.neuron.threshold, site.neuron.initial = torch.ones(3).double(), torch.zeros(3).double()
        layer = Layer(site, torch.zeros(1, 3, dtype=torch.float64))
    weight = network[0].weight.detach().clone().requires_grad_()
    (gradient,) = torch.autograd.grad(layer.error(torch.arange(1), {"0": weight}), weight)
    # 2 (sent - 0) * dz/dw inside, nothing below 0 and above theta; 0.45 in 4 steps is 1 of 4 spikes
    assert gradient.flatten().tolist() == pytest.approx([0, 2 * 0.25, 0])


@pytest.mark.parametrize("name", NETWORKS)
@torch.no_grad()
def test_it_lowers_its_own_error_at_each_layer(name: str) -> None:
    images = make_images(24)
    calibration = make_calibration(NETWORKS[name](), images, recipe=EMPTY)
    for site, a in zip(in_order(calibration.snn, images, STEPS), activations(calibration.ann, images), strict=True):
        own = own_synapses(calibration.snn, site.segment)
        before = {node.name: node.module.weight.detach().clone() for node in own}
        after = QUICK.fit(site, own, a, calibration.generator)
        layer = Layer(site, a)
        assert layer.total_error(after) < 0.9 * layer.total_error(before)
        assert all(torch.equal(node.module.weight, before[node.name]) for node in own), "put only afterwards"


def test_the_whole_calibration_changes_these_weights_alone() -> None:
    images = make_images(24)
    network = residual()
    base, trained = (make_calibration(network, images, recipe=EMPTY) for _ in range(2))
    told = []
    trained.progress = lambda *what: told.append(what)
    with torch.no_grad():  # as `convert` calls it
        QUICK(trained)
    assert told[-1] == ("calibrating weights", 4, 4)
    for node in base.snn.of_type(*Synapses):
        same = torch.equal(node.module.weight, trained.snn[node.name].module.weight)
        assert same == (node.name == "head"), node.name
        if node.module.bias is not None:
            assert torch.equal(node.module.bias, trained.snn[node.name].module.bias)
    for name, value in base.ann.state_dict().items():
        assert torch.equal(value, trained.ann.state_dict()[name])
    assert not any(parameter.grad is not None for parameter in trained.snn.parameters())


def test_tied_weights_part() -> None:
    layer = nn.Linear(6, 6)
    network = nn.Sequential(layer, nn.ReLU(), layer, nn.ReLU(), nn.Linear(6, 2)).double()
    x = torch.rand(24, 6, dtype=torch.float64)
    snn = ftbc.convert(network, x, STEPS, ftbc.Recipe(initial=Zero(), calibrate=[QUICK])).graph
    one, two = (node.module.weight for node in snn.of_type(nn.Linear)[:2])
    assert not torch.equal(one, two) and not torch.equal(one, layer.weight) and not torch.equal(two, layer.weight)


@torch.no_grad()
def test_weights_that_do_not_help_are_put_back() -> None:
    images = make_images(8)
    calibration = make_calibration(residual(), images)
    before = copy.deepcopy(calibration.snn.state_dict())
    WeightCorrection(iterations=3, learning_rate=1e6)(calibration)
    assert all(torch.equal(value, before[name]) for name, value in calibration.snn.state_dict().items())


def test_the_seed_decides() -> None:
    images = make_images(24)
    network, recipe = residual(), ftbc.Recipe(initial=Zero(), calibrate=[QUICK])

    def weight(seed: int) -> Tensor:
        return ftbc.convert(network, images, 2, recipe, seed=seed).graph["conv2"].module.weight

    assert torch.equal(weight(1), weight(1)) and not torch.equal(weight(1), weight(2))


@pytest.mark.parametrize("wrong", [{"iterations": 0}, {"batch": 0}, {"learning_rate": 0.0}, {"images": 0}])
def test_wrong_settings_are_refused(wrong: dict, refused: Refused) -> None:
    refused(RecipeError, "WeightCorrection", WeightCorrection, **wrong)
