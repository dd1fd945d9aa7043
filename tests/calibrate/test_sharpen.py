"""Weights for the neurons as they are: the edges, the targets, the loss written out, and what is left alone."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ftbc.calibrate import Calibration, CorrelationSearch, QuantileBias, Refit, Sharpen
from ftbc.calibrate.relaxation import FiringEdges
from ftbc.errors import RecipeError
from ftbc.neuron import IntegrateFire
from ftbc.neuron.functional import integrate_and_fire
from tests.calibrate.walk.test_plan import graphs
from tests.calibrate.walk.test_walk import lively, pictures
from tests.networks import INPUT_SHAPE, NETWORKS


def _neuron(graph, name: str) -> IntegrateFire:
    neuron = graph[name].module
    assert isinstance(neuron, IntegrateFire)
    return neuron


def _two_layers() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(),
        nn.Linear(45, 3),
    ).double().eval()  # fmt: skip


def test_neurons_are_silent_below_the_lower_edge_and_always_fire_above_the_upper() -> None:
    """Constant currents and biases, simulated on both sides of each edge for every number of steps."""
    torch.manual_seed(3)
    theta = torch.rand(6) + 0.5
    neuron = IntegrateFire(5, 1)
    neuron.threshold, neuron.initial = theta, torch.rand(6) * theta
    neuron.bias = (0.1 * torch.randn(6)).expand(5, 6).clone()
    edges = FiringEdges.of(neuron, 1.0)

    def sent(t: int, current: Tensor) -> Tensor:
        return (integrate_and_fire(current.expand(t, 6), theta, neuron.initial, neuron.bias)[0] / theta).sum(0)

    for t in range(1, 6):
        low, high = edges.low[t - 1], edges.high[t - 1]
        assert bool((sent(t, low - 1e-4) == 0).all()) and bool((sent(t, low + 1e-4) == 1).all())
        assert bool((sent(t, high - 1e-4) == t - 1).all()) and bool((sent(t, high + 1e-4) == t).all())
    assert torch.equal(edges.low[0], edges.high[0])


def test_targets_ask_for_the_right_side_and_a_margin() -> None:
    edges = FiringEdges(torch.tensor([[1.0], [0.5]]), torch.tensor([[1.0], [2.0]]), 1.0)
    z = torch.tensor([3.0, 3.0, 1.2, -1.0, -1.0, 3.0, 1.0, 0.0]).view(-1, 1, 1)
    prediction = torch.tensor([5.0, 0.0, 0.0, -5.0, 2.0, 0.0, 7.0, -3.0]).view(-1, 1, 1)
    part = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1])
    target = edges(z, prediction, part, torch.full((1, 1), 0.5))
    assert [round(float(y), 6) for y in target.flatten()] == [5.0, 1.5, 1.2, -5.0, 0.5, 2.5, 1.0, -3.0]


def _setting(steps: int) -> tuple[Tensor, object, object]:
    network, images = _two_layers(), torch.rand(40, *INPUT_SHAPE, dtype=torch.float64)
    ann, snn = graphs(network, images)
    calibration = Calibration(ann, snn, steps, images, torch.Generator())
    for piece in (Refit(ridge=1e-3, partial=0.0, rows=10**6), QuantileBias(rows=10**6)):
        piece(calibration)
    return images, ann, snn


def _mean_input(snn, images: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Patches of the mean spikes that the second convolution reads, ``[R, 36]``, and the spikes themselves."""
    neuron = _neuron(snn, "1")
    neuron.reset()
    current = snn["0"].module(images)
    spikes = neuron.run(current.expand(steps, *current.shape))
    neuron.reset()
    return F.unfold(spikes.mean(0), 3, padding=1, stride=2).transpose(1, 2).reshape(-1, 36), spikes


@pytest.mark.parametrize("steps", [1, 2])
def test_equals_the_rounds_written_out(steps: int) -> None:
    """Ridge regression by further rows, targets one by one; the whole mean alone."""
    images, ann, snn = _setting(steps)
    x, _ = _mean_input(snn, images, steps)
    layer, neuron = snn["2"].module, _neuron(snn, "3")
    W, bias = layer.weight.detach().clone(), layer.bias.detach().clone()
    z = ann["2"].module(F.relu(ann["0"].module(images))).flatten(2).transpose(1, 2).reshape(-1, 5)
    now = x @ W.flatten(1).t() + bias
    charge = neuron.initial + neuron.bias[:steps].sum(0)
    low, high = (neuron.threshold - charge) / steps, (steps * neuron.threshold - charge) / steps
    centred = x - x.mean(0)
    A = torch.cat([centred, (0.05 * centred.pow(2).sum(0)).sqrt().diag()])

    def solve(y: Tensor) -> tuple[Tensor, Tensor]:
        r = y - now
        D = torch.linalg.lstsq(A, torch.cat([r - r.mean(0), torch.zeros(36, 5).double()])).solution
        return D, r.mean(0) - x.mean(0) @ D

    D, offset = solve(z)
    m = 0.7 * (z - now - x @ D - offset).pow(2).mean(0).sqrt()
    for _ in range(3):
        prediction = now + x @ D + offset
        y = z.clone()
        for row, channel in itertools.product(range(len(z)), range(5)):
            p, value = prediction[row, channel], z[row, channel]
            if value > high[channel]:
                y[row, channel] = max(p, min(value, high[channel] + m[channel]))
            elif value < low[channel]:
                y[row, channel] = min(p, max(value, low[channel] - m[channel]))
        D, offset = solve(y)

    piece = Sharpen(margin=0.7, rounds=3, ridge=0.05, partial=0.0, rows=10**6)
    piece(Calibration(ann, snn, steps, images, torch.Generator()))
    torch.testing.assert_close(layer.weight.flatten(1).t(), W.flatten(1).t() + D, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(layer.bias, bias + offset, rtol=1e-7, atol=1e-9)


def test_more_spikes_are_on_the_side_of_their_threshold_where_the_ann_is() -> None:
    """At T = 1 a neuron is a classifier: it errs less than with weights of least squares."""
    wrong = []
    for piece in (Refit(ridge=1e-3, rounds=0, partial=0.0, rows=10**6), Sharpen(ridge=1e-3, rows=10**6)):
        images, ann, snn = _setting(1)
        neuron = _neuron(snn, "3")
        edge = (neuron.threshold - neuron.initial - neuron.bias[0]).view(1, -1, 1, 1)
        piece(Calibration(ann, snn, 1, images, torch.Generator()))
        current = snn["2"].module(_mean_input(snn, images, 1)[1][0])
        z = ann["2"].module(F.relu(ann["0"].module(images)))
        wrong.append(int(((current >= edge) != (z >= edge)).sum()))
    assert wrong[1] < 0.9 * wrong[0]


def test_layers_without_neurons_and_networks_of_more_steps_stay() -> None:
    for steps, settings, kept in ((1, {}, {"0", "5"}), (3, {"most_steps": 2}, {"0", "2", "5"})):
        images, ann, snn = _setting(steps)
        before = {name: snn[name].module.weight.clone() for name in ("0", "2", "5")}
        Sharpen(**settings)(Calibration(ann, snn, steps, images, torch.Generator()))
        same = {name for name, weight in before.items() if torch.equal(snn[name].module.weight, weight)}
        assert same == kept


@pytest.mark.parametrize("name", NETWORKS)
def test_any_network_comes_through(name: str) -> None:
    """Groups, depthwise layers, several branches, tokens: finite, and a heavy ridge changes no weights."""
    torch.manual_seed(5)
    network, images = lively(NETWORKS[name]()), pictures(24)
    ann, snn = graphs(network, images)
    weights = {node.name: node.module.weight.clone() for node in snn if hasattr(node.module, "weight")}
    Sharpen(ridge=1e12)(Calibration(ann, snn, 3, images, torch.Generator()))
    for node, weight in weights.items():
        torch.testing.assert_close(snn[node].module.weight, weight, rtol=1e-6, atol=1e-8)
    for piece in (QuantileBias(), CorrelationSearch(), Sharpen()):
        piece(Calibration(ann, snn, 3, images, torch.Generator()))
    assert all(bool(torch.isfinite(snn[node].module.weight).all()) for node in weights)


def test_wrong_settings_are_refused() -> None:
    for wrong in ({"margin": -0.1}, {"rounds": -1}, {"ridge": -1.0}, {"most_steps": -1}, {"rows": 0}):
        with pytest.raises(RecipeError, match="Sharpen"):
            Sharpen(**wrong)
