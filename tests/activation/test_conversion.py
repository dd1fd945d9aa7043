"""From trained activations to neurons: the clean graph is the network, thresholds are the trained ones."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc.activation import QCFS, RateNorm, SlipReLU, ThresholdReLU
from ftbc.calibrate import Calibration
from ftbc.errors import RecipeError
from ftbc.graph.ops import Activation, Affine
from ftbc.neuron import IntegrateFire
from ftbc.threshold import Trained
from tests.conftest import Refused
from tests.graph.support import ROUTES, answer, clean

ALL = {
    "ThresholdReLU": ThresholdReLU(0.8),
    "QCFS": QCFS(4, 0.8),
    "SlipReLU": SlipReLU(4, 0.3, 0.8, clip_shift=0.2, step_shift=0.4),
    "RateNorm": RateNorm(0.8),
}


def _network(activation: nn.Module, name: str = "resnet20") -> nn.Module:
    """Narrow, in double precision, with BatchNorms that have seen data and thresholds that all differ."""
    model = ftbc.zoo.build(name, width=0.25, activation=activation).double()
    for _ in range(3):
        model(_images(16))
    for place, module in enumerate(m for m in model.modules() if isinstance(m, type(activation))):
        module.set_threshold(0.5 + 0.05 * place)
    return model.eval()


def _images(count: int = 6) -> Tensor:
    return torch.randn(count, 3, 32, 32, dtype=torch.float64)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", ALL)
def test_the_clean_graph_is_the_network(name: str, route: str) -> None:
    model, x = _network(ALL[name]), _images()
    cleaned = clean(model, x, route, folded=False)
    torch.testing.assert_close(answer(cleaned, x), model(x).detach(), rtol=0, atol=1e-12)
    sites = cleaned.graph.of_type(Activation)
    assert [site.name for site in sites] == [n for n, m in model.named_modules() if type(m) is type(ALL[name])]
    assert all(site.source.startswith(("resnet_cifar.py:", "residual.py:")) for site in sites)


@pytest.mark.parametrize("name", ALL)
def test_in_single_precision(name: str) -> None:
    model, x = _network(ALL[name]).float(), _images().float()
    found = answer(clean(model, x, folded=False), x)
    torch.testing.assert_close(found, model(x).detach(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_trained_thresholds_become_those_of_the_neurons(name: str, tmp_path: Path) -> None:
    model, x = _network(ALL[name]), _images()
    snn = ftbc.convert(model, x, steps=3, recipe="qcfs")
    own = [m.threshold.detach() for m in model.modules() if type(m) is type(ALL[name])]
    wanted = [1.0] * len(own) if name == "RateNorm" else [float(theta) for theta in own]  # the weights were divided
    assert [row.threshold for row in snn.layers()] == wanted
    for neuron in snn.graph.of_type(IntegrateFire):
        assert torch.equal(neuron.module.initial, neuron.module.threshold / 2) and not neuron.module.bias.any()
    snn.save(tmp_path / "net.snn")
    assert torch.equal(ftbc.load(tmp_path / "net.snn")(x), snn(x))


def test_the_division_of_rates_folds_into_weights() -> None:
    model, x = _network(RateNorm(0.8), "vgg16-cifar"), _images()
    assert not clean(model, x).graph.of_type(Affine)


def _three_layers(make: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(3, 6, 3), make(), nn.Conv2d(6, 6, 3), make(), nn.Flatten(), nn.Linear(24, 12), make(),
        nn.Linear(12, 5),
    ).double()  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_many_steps_are_the_clipped_network(name: str) -> None:
    """Whatever the activation was, a neuron sends clamp(z, 0, theta) in the limit; as a rate, divided by theta."""
    theta = ALL[name].threshold.detach()
    model = _three_layers(lambda: copy.deepcopy(ALL[name])).eval()
    clipped = _three_layers(lambda: ThresholdReLU(float(theta)))
    if name == "RateNorm":
        for place in (2, 5, 7):
            clipped[place].weight.data /= theta
    x = torch.randn(4, 3, 6, 6, dtype=torch.float64)
    outputs, wanted = ftbc.convert(model, x, steps=2048, recipe="qcfs")(x), clipped(x).detach()
    gaps = [(outputs[t - 1] - wanted).norm() / wanted.norm() for t in (32, 256, 2048)]
    assert gaps[0] > gaps[1] > gaps[2] and gaps[2] < 0.005


# ---- the recipe qcfs: T = L -------------------------------------------------------------------------------


def _two_layers(levels: int, activation: nn.Module | None = None) -> nn.Module:
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(10, 40), activation or QCFS(levels, 0.9), nn.Linear(40, 5)).double()


@pytest.mark.parametrize("levels", [1, 2, 4, 8, 32])
def test_after_as_many_steps_as_levels_neurons_have_sent_the_activation(levels: int) -> None:
    """The input of the first layer is the same at each step."""
    model, x = _two_layers(levels), torch.randn(200, 10, dtype=torch.float64)
    snn = ftbc.convert(model, x, steps=levels, recipe="qcfs")
    torch.testing.assert_close(snn(x)[-1], model(x).detach(), rtol=0, atol=1e-12)
    assert snn.layers()[0].error == pytest.approx(0, abs=1e-24)


def test_with_other_numbers_of_steps_they_have_not() -> None:
    model, x = _two_layers(4), torch.randn(200, 10, dtype=torch.float64)
    for steps in (1, 3, 5):
        assert (ftbc.convert(model, x, steps, "qcfs")(x)[-1] - model(x)).abs().max() > 0.01


@pytest.mark.parametrize("levels", [2, 4])
def test_deep_networks_too_if_spikes_arrive_evenly(levels: int) -> None:
    """A first layer that is either silent or fires at each step sends a constant current to the second."""
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Linear(10, 30), QCFS(levels, 0.7), nn.Linear(30, 30), QCFS(levels, 0.9), nn.Linear(30, 5)
    ).double()
    model[0].weight.data *= 1e4
    x = torch.randn(100, 10, dtype=torch.float64)
    assert len(model[:2](x).detach().unique()) == 2 and len(model[:4](x).detach().unique()) == levels + 1
    snn = ftbc.convert(model, x, steps=levels, recipe="qcfs")
    torch.testing.assert_close(snn(x)[-1], model(x).detach(), rtol=0, atol=1e-12)


def test_one_step_is_a_comparison_with_half_the_threshold() -> None:
    model, x = _two_layers(1), torch.randn(50, 10, dtype=torch.float64)
    z = model[0](x)
    theta = model[1].threshold
    wanted = model[2](theta * (z >= theta / 2))
    torch.testing.assert_close(ftbc.convert(model, x, 1, "qcfs")(x)[0], wanted.detach(), rtol=0, atol=1e-12)


def test_slip_relu_is_between_its_two_limits() -> None:
    """Its error is c times the rounding of the staircase at T = N, and c - 1 times that for many steps."""
    c, theta, levels = 0.3, 0.9, 4
    model, x = _two_layers(levels, SlipReLU(levels, c, theta)), torch.randn(300, 10, dtype=torch.float64)
    z = model[0](x).detach()
    clipped, steps = z.clamp(0, float(model[1].threshold.detach())), QCFS(levels, theta).double()(z).detach()
    a = model[1](z).detach()
    torch.testing.assert_close(a, c * clipped + (1 - c) * steps, rtol=0, atol=1e-12)

    def sent(count: int) -> Tensor:
        return ftbc.convert(model[:2], x, count, "qcfs")(x)[-1]

    torch.testing.assert_close(sent(levels), steps, rtol=0, atol=1e-12)
    torch.testing.assert_close(sent(levels) - a, c * (steps - clipped), rtol=0, atol=1e-12)
    assert (sent(levels) - a).abs().max() <= c * theta / (2 * levels) + 1e-6
    assert (sent(1000) - a + (1 - c) * (steps - clipped)).abs().max() <= theta / 2000 + 1e-6


# ---- beside the recipe ------------------------------------------------------------------------------------


def test_levels_and_bound_are_known_to_threshold_rules() -> None:
    from ftbc.threshold.activations import gather

    x = torch.randn(20, 10, dtype=torch.float64)
    seen = gather(clean(_two_layers(8), x).graph, [x], "layer")["1"]
    assert seen.levels == 8 and seen.upper == pytest.approx(0.9) and seen.place.startswith("'1' (Staircase")
    plain = gather(clean(_two_layers(8, nn.ReLU()), x).graph, [x], "layer")["1"]
    assert plain.levels is None and plain.upper is None


def test_plain_relus_have_no_trained_threshold(refused: Refused) -> None:
    model = nn.Sequential(nn.Linear(10, 20), QCFS(4), nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 2))
    refused(RecipeError, ("'3' (Activation", "plain ReLU", "mean-square"), ftbc.convert, model, torch.rand(9, 10), 2,
            "qcfs")  # fmt: skip


def test_bounds_of_clamps_count_as_trained() -> None:
    model = nn.Sequential(nn.Linear(10, 20), nn.ReLU6(), nn.Linear(20, 2))
    assert ftbc.convert(model, torch.rand(9, 10), 2, "qcfs").layers()[0].threshold == 6


def test_calibration_aims_at_the_quantised_activation() -> None:
    model, x = _three_layers(lambda: QCFS(4, 0.8)), torch.randn(64, 3, 6, 6, dtype=torch.float64)
    recipe = ftbc.Recipe(threshold=Trained(), calibrate=(ftbc.FTBC(iterations=1, batch=32),))
    assert ftbc.Recipe.from_dict(recipe.to_dict()) == recipe
    snn = ftbc.convert(model, x, 4, recipe).graph
    assert all(neuron.module.bias.any() for neuron in snn.of_type(IntegrateFire))
    calibration = Calibration(clean(model, x).graph, snn, 4, x, torch.Generator())
    aims = ftbc.FTBC().targets(calibration, x)
    for layers in (2, 4, 7):
        quantised = model[:layers](x).detach()
        wanted = quantised.mean((0, *range(2, quantised.ndim)))
        torch.testing.assert_close(aims[str(layers - 1)], wanted, rtol=0, atol=1e-12)


def test_rounding_does_not_stop_the_conversion_of_staircases() -> None:
    """Folding moves pre-activations by a rounding error, of which a staircase makes a whole step now and then."""
    torch.manual_seed(0)
    model = ftbc.zoo.build("resnet20", activation=QCFS(4, 2.0)).train()
    x = torch.randn(64, 3, 32, 32)
    with torch.no_grad():
        model(x), model(x)
        model.eval()
        gap = (answer(clean(model, x), x) - model(x)).abs().max()
        assert gap > 1e-3 * model(x).abs().max(), "this network shows nothing"
    assert len(ftbc.convert(model, x, 1, "qcfs").layers()) == 19


class _Mine(QCFS):
    def forward(self, z: Tensor) -> Tensor:
        return z.clamp(0, 1)


@pytest.mark.parametrize("route", ROUTES)
def test_a_subclass_is_looked_into(route: str) -> None:
    model, x = _two_layers(4, _Mine()), torch.randn(20, 10, dtype=torch.float64)
    cleaned = clean(model, x, route)
    assert [site.module.upper for site in cleaned.graph.of_type(Activation)] == [1.0]
    torch.testing.assert_close(answer(cleaned, x), model(x).detach(), rtol=0, atol=1e-12)


def test_check_names_the_levels() -> None:
    said = str(ftbc.check(_two_layers(4), torch.rand(1, 10, dtype=torch.float64)))
    assert "Staircase" in said and "neurons" in said and "in 4 steps" in said and "'qcfs'" in said
