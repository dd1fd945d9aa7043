"""FTBC against its slow form, against the paper's theory, and its properties."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import ftbc
from ftbc import FTBC
from ftbc.calibrate import Calibration
from ftbc.convert import convert
from ftbc.errors import RecipeError
from ftbc.graph.ops import Activation
from ftbc.initial import Zero
from ftbc.neuron import IntegrateFire
from ftbc.threshold import Maximum
from tests.calibrate.rerun import correct_by_rerunning
from tests.calibrate.support import STEPS, make_calibration, make_images
from tests.networks import NETWORKS, residual


def _biases(calibration: Calibration) -> dict[str, torch.Tensor]:
    return {node.name: node.module.bias.clone() for node in calibration.snn.of_type(IntegrateFire)}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("clip", [True, False])
def test_one_pass_equals_rerunning_the_network_for_each_layer_and_step(name: str, clip: bool) -> None:
    torch.manual_seed(1)
    network, images = NETWORKS[name](), make_images(24)
    one_pass, rerun = make_calibration(network, images), make_calibration(network, images)
    method = FTBC(alpha=0.5, clip=clip)
    with torch.no_grad():
        for batch in images.split(12):
            method.correct(one_pass, batch)
            correct_by_rerunning(method, rerun, batch)
    for site, bias in _biases(one_pass).items():
        assert bias.abs().max() > 0, f"{site} was never corrected"
        # Spikes are counted here and averaged there: the last bit of a mean may differ, no spike does.
        torch.testing.assert_close(bias, _biases(rerun)[site], rtol=1e-13, atol=1e-15, msg=site)


def test_every_activation_gets_a_bias_row_per_step_and_channel() -> None:
    network = residual()
    snn = convert(network, make_images(16), STEPS, ftbc.recipe("ftbc", calibrate=(FTBC(iterations=1),)))
    sites = snn.graph.of_type(IntegrateFire)
    assert len(sites) == len(make_calibration(network, make_images(4)).ann.of_type(Activation)) == 4
    for node in sites:
        assert node.module.bias.shape == (STEPS, node.shape[0])
        rows = {row.data_ptr() for row in node.module.bias}
        assert len(rows) == STEPS
        assert node.module.bias.abs().amax(1).min() > 0


def test_uniform_input_gives_a_first_bias_of_one_half() -> None:
    """The special case after Theorem 1 of the paper."""
    network = nn.Sequential(nn.Linear(1, 1, bias=False), nn.ReLU(), nn.Linear(1, 1)).double()
    network[0].weight.data.fill_(1.0)
    x = torch.linspace(0, 1, 2001, dtype=torch.float64).view(-1, 1)
    method = FTBC(alpha=0.2, iterations=200, batch=2001, batches=1)
    snn = convert(network, x, 1, ftbc.Recipe(threshold=Maximum(), initial=Zero(), calibrate=(method,)))
    assert snn.graph["1"].module.bias.item() == pytest.approx(0.5, abs=2e-3)


# Not the depthwise network: one spiking input channel gives a few discrete potentials, and the theorem asks for a
# continuous distribution.
@pytest.mark.parametrize("name", ["plain", "residual"])
def test_after_calibration_mean_spikes_equal_mean_activations_at_each_step(name: str) -> None:
    """Theorem 1: at every layer and step, to within the resolution of the sample."""
    torch.manual_seed(2)
    network, images = NETWORKS[name](), make_images(64)
    method = FTBC(alpha=0.2, iterations=150, batch=64, batches=1)
    calibration = make_calibration(network, images)
    with torch.no_grad():
        before = _worst_gap(calibration, images, method)
        method(calibration)
        after = _worst_gap(calibration, images, method)
    assert before > 0.2
    assert after < 0.04


def _worst_gap(calibration: Calibration, x: torch.Tensor, method: FTBC) -> float:
    """Largest |mean spikes - mean clipped activation| / theta over layers, steps and channels."""
    from ftbc.simulate import layerwise

    targets, gaps = method.targets(calibration, x), []

    def compare(node, inputs, spikes, start) -> None:
        if isinstance(node.module, IntegrateFire):
            mean = spikes.mean([1, *range(3, spikes.ndim)])
            gaps.append(((mean - targets[node.name]).abs() / node.module.threshold).max())

    layerwise(calibration.snn, x, calibration.steps, observe=compare)
    return float(torch.stack(gaps).max())


def test_zero_bias_is_the_base_method() -> None:
    network, images = residual(), make_images(16)
    corrected = convert(network, images, STEPS, ftbc.recipe("ftbc", calibrate=(FTBC(iterations=2),)))
    base = convert(network, images, STEPS, "mean-square")
    assert not torch.equal(corrected(images), base(images))
    for node in corrected.graph.of_type(IntegrateFire):
        node.module.bias.zero_()
    assert torch.equal(corrected(images), base(images))


def test_order_inside_a_batch_does_not_matter_and_a_second_batch_does() -> None:
    network, images = residual(), make_images(16)
    method = FTBC()
    first, shuffled, twice = (make_calibration(network, images) for _ in range(3))
    with torch.no_grad():
        method.correct(first, images)
        method.correct(shuffled, images[torch.randperm(16)])
        method.correct(twice, images)
        method.correct(twice, make_images(16, seed=5))
    for site, bias in _biases(first).items():
        assert torch.allclose(bias, _biases(shuffled)[site], atol=1e-12)
        assert not torch.allclose(bias, _biases(twice)[site], atol=1e-6)


def test_the_seed_decides_which_images_are_drawn() -> None:
    network, images = residual(), make_images(40)
    recipe = ftbc.recipe("ftbc", calibrate=(FTBC(iterations=2, batch=8, batches=1),))

    def bias(seed: int) -> torch.Tensor:
        return convert(network, images, 2, recipe, seed=seed).graph.of_type(IntegrateFire)[0].module.bias

    assert torch.equal(bias(3), bias(3))
    assert not torch.equal(bias(3), bias(4))


def test_an_unreachable_target_winds_up_only_without_clipping() -> None:
    """A channel whose mean activation exceeds theta: the bias must stay bounded, or grow with each iteration."""
    network = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1)).double()
    network[0].weight.data.fill_(0.0)
    network[0].bias.data.fill_(1.0)
    x = torch.rand(8, 1, dtype=torch.float64)

    def bias(clip: bool, iterations: int) -> float:
        calibration = make_calibration(network, x)
        calibration.snn["1"].module.threshold.fill_(0.4)
        with torch.no_grad():
            FTBC(iterations=iterations, clip=clip)(calibration)
        return float(calibration.snn["1"].module.bias.abs().max())

    assert bias(True, 40) == bias(True, 20)
    assert bias(False, 40) == pytest.approx(2 * bias(False, 20), rel=0.05)
    assert bias(False, 40) > 5


@pytest.mark.parametrize(("grain", "shape"), [("layer", (1,)), ("channel", (6,)), ("neuron", (6, 8, 8))])
def test_biases_per_layer_channel_or_neuron(grain, shape) -> None:
    images = make_images(12)
    recipe = ftbc.recipe("ftbc", calibrate=(FTBC(iterations=2, grain=grain),))
    snn = convert(residual(), images, 3, recipe)
    assert snn.graph["relu"].module.bias.shape == (3, *shape)
    assert torch.equal(snn(images), snn(images, engine="stepwise"))


def test_one_neuron_bias_follows_the_formula_written_out() -> None:
    """b <- b + alpha (mean a - mean s), then fire again, with plain Python numbers."""
    x = torch.tensor([[0.2], [0.5], [0.9]], dtype=torch.float64)
    network = nn.Sequential(nn.Linear(1, 1, bias=False), nn.ReLU(), nn.Linear(1, 1)).double()
    network[0].weight.data.fill_(1.0)
    calibration = make_calibration(network, x, steps=3)
    neuron = calibration.snn["1"].module
    neuron.threshold.fill_(0.6)
    neuron.initial.fill_(0.3)
    with torch.no_grad():
        FTBC(alpha=0.5).correct(calibration, x)

    theta, potentials, expected = 0.6, [0.3, 0.3, 0.3], []
    mean_a = sum(min(a, theta) for a in (0.2, 0.5, 0.9)) / 3
    for _ in range(3):
        charged = [v + a for v, a in zip(potentials, (0.2, 0.5, 0.9), strict=True)]
        mean_s = sum(theta for u in charged if u >= theta) / 3
        b = 0.5 * (mean_a - mean_s)
        expected.append(b)
        potentials = [u + b - (theta if u + b >= theta else 0) for u in charged]
    assert neuron.bias.flatten().tolist() == pytest.approx(expected, abs=1e-12)


def test_wrong_settings_are_refused() -> None:
    for wrong in ({"alpha": 0.0}, {"iterations": 0}, {"batch": 0}, {"batches": -1}, {"alpha": float("nan")}):
        with pytest.raises(RecipeError, match="FTBC"):
            FTBC(**wrong)
