"""What is seen inside a network, against loops over neurons and steps."""

from __future__ import annotations

import math
import sys
from dataclasses import asdict

import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc.measure.error_split import error_split, parts, unexplained
from ftbc.measure.inside import BINS, CHANNELS, HIGH, LOW, WATCHED, look_inside
from ftbc.neuron import IntegrateFire
from tests.networks import INPUT_SHAPE, residual

STEPS, IMAGES = 3, 4
QUICK = ftbc.recipe("ftbc", calibrate=(ftbc.FTBC(batch=8, iterations=2),))


def _converted() -> tuple[nn.Module, ftbc.SpikingNetwork, Tensor]:
    x = torch.randn(16, *INPUT_SHAPE, dtype=torch.float64)
    network = residual()
    return network, ftbc.convert(network, x, STEPS, QUICK), x[:IMAGES]


def _bin(v: float) -> int:
    return max(0, min(BINS - 1, math.floor((v - LOW) / (HIGH - LOW) * BINS)))


def test_membranes_rates_and_spikes_of_every_neuron_one_by_one() -> None:
    network, snn, x = _converted()
    currents: dict[str, Tensor] = {}
    snn(x, observe=lambda node, inputs, output, start: currents.__setitem__(node.name, inputs[0].clone()))
    inside = look_inside(snn, x, network)
    assert [layer.name for layer in inside.layers] == [node.name for node in snn.graph.of_type(IntegrateFire)]
    layer = inside.layers[1]
    neuron = snn.graph[layer.name].module
    assert isinstance(neuron, IntegrateFire)
    channels, height, width = layer.shape
    shares, fired, first = [[0] * BINS for _ in range(STEPS)], [0] * STEPS, {}
    for n in range(IMAGES):
        for c in range(channels):
            theta = float(neuron.threshold[c])
            for place in range(height * width):
                v = float(neuron.initial[c])
                for t in range(STEPS):
                    v += float(currents[layer.name][t, n, c].flatten()[place]) + float(neuron.bias[t, c])
                    shares[t][_bin(v / theta)] += 1
                    spike = v >= theta
                    fired[t] += spike
                    v -= theta * spike
                    if n == 0:
                        first[c * height * width + place, t] = int(spike)
    neurons = IMAGES * channels * height * width
    assert layer.rate == pytest.approx([count / neurons for count in fired])
    assert layer.membrane is not None
    for t in range(STEPS):
        assert layer.membrane[t] == pytest.approx([count / neurons for count in shares[t]], abs=1e-4)
    assert len(layer.watched) == WATCHED and layer.watched[0] == 0 and layer.watched[-1] == neurons // IMAGES - 1
    assert layer.raster == [[first[place, t] for t in range(STEPS)] for place in layer.watched]
    for t in range(STEPS):
        assert layer.bias[t] == pytest.approx((neuron.bias[t] / neuron.threshold).tolist(), abs=1e-4)
    assert layer.thresholds == pytest.approx(
        (float(neuron.threshold.min()), float(neuron.threshold.mean()), float(neuron.threshold.max()))
    )


def test_answers_are_those_of_the_network() -> None:
    network, snn, x = _converted()
    inside = look_inside(snn, x, network)
    outputs = snn(x)
    assert inside.predictions == outputs.argmax(2).T.tolist() and inside.images == IMAGES
    assert inside.reference == network(x).argmax(1).tolist()
    for row, wanted in zip(inside.confidences, outputs.softmax(2).amax(2).T.tolist(), strict=True):
        assert row == pytest.approx(wanted, abs=1e-4)
    assert look_inside(snn, x).reference is None


def test_steps_in_parts_are_seen_as_steps_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    network, snn, x = _converted()
    whole = look_inside(snn, x, network)
    monkeypatch.setattr(sys.modules["ftbc.simulate.layerwise"], "portion", lambda graph, steps, room=None: (1, 1))
    for found, wanted in zip(look_inside(snn, x, network).layers, whole.layers, strict=True):
        assert found.raster == wanted.raster and found.membrane == wanted.membrane
        assert asdict(found.split or pytest.fail()) == pytest.approx(asdict(wanted.split or pytest.fail()))


def test_the_error_of_each_layer_is_that_of_its_mean() -> None:
    network, snn, x = _converted()
    found = look_inside(snn, x, network)
    for layer, row in zip(found.layers, snn.layers(), strict=True):
        assert layer.split is not None and layer.split.total >= 0 and row.name == layer.name
    first = found.layers[0].split
    # Behind the first layer of weights the current is the same at each step: no order, no unevenness but by the bias.
    plain = look_inside(ftbc.convert(network, x, STEPS, "mean-square"), x, network).layers[0].split
    assert first is not None and plain is not None
    assert plain.unevenness < 1e-20 and plain.inherited < 1e-20 and plain.clipping > 0 and plain.quantisation > 0


def test_the_parts_add_up_and_each_is_its_formula() -> None:
    a, mean, drive = (torch.rand(50, dtype=torch.float64) * 2 for _ in range(3))
    theta, initial, steps = torch.tensor(1.2, dtype=torch.float64), torch.tensor(0.6, dtype=torch.float64), 4
    found = parts(a, mean, drive, theta, initial, steps)
    assert torch.allclose(sum(v for k, v in found.items() if k != "total"), found["total"])  # type: ignore[arg-type]
    squares = dict.fromkeys(found, 0.0)
    for i in range(50):
        q = [1.2 / 4 * max(0, min(4, math.floor((float(z[i]) * 4 + 0.6) / 1.2))) for z in (a, drive)]
        clipped = min(float(a[i]), 1.2)
        squares["total"] += (float(mean[i]) - float(a[i])) ** 2
        squares["clipping"] += (clipped - float(a[i])) ** 2
        squares["quantisation"] += (q[0] - clipped) ** 2
        squares["inherited"] += (q[1] - q[0]) ** 2
        squares["unevenness"] += (float(mean[i]) - q[1]) ** 2
    split = error_split(a.unsqueeze(1), mean.unsqueeze(1), drive.unsqueeze(1), theta, initial, steps)
    wanted = {k: v / float(a.pow(2).sum()) for k, v in squares.items()}
    assert split.to_dict() == pytest.approx({**wanted, "unexplained": split.unexplained})
    assert split.own == {name: getattr(split, name) for name in ("clipping", "quantisation", "unevenness")}


def test_unexplained_is_what_the_best_line_of_each_channel_leaves() -> None:
    a, mean = torch.rand(6, 3, 2, 2, dtype=torch.float64), torch.rand(6, 3, 2, 2, dtype=torch.float64)
    mean[:, 2] = 0.7  # tells nothing
    left = whole = 0.0
    for c in range(3):
        x, y = mean[:, c].flatten(), a[:, c].flatten()
        A = torch.stack([x, torch.ones_like(x)], 1)
        line = A @ torch.linalg.lstsq(A, y.unsqueeze(1), driver="gelsd").solution
        left += float((y - line[:, 0]).pow(2).sum())
        whole += float((y - y.mean()).pow(2).sum())
    assert unexplained(a, mean) == pytest.approx(left / whole)
    assert unexplained(a, 3 * a + 1) == pytest.approx(0, abs=1e-12) and unexplained(a * 0, mean) == 0


@pytest.mark.parametrize("name", ftbc.recipes())
def test_every_recipe_that_applies_can_be_looked_into(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.rand(8, *INPUT_SHAPE, dtype=torch.float64)
    recipe = ftbc.recipe(name)
    if recipe.facts.trained or recipe.facts.gradients:
        pytest.skip("needs a network trained for it, or takes long")
    network = residual()
    snn = ftbc.convert(network, x, 2, recipe)
    whole = look_inside(snn, x[:2], network)
    if recipe.facts.steppable:
        monkeypatch.setattr(sys.modules["ftbc.simulate.layerwise"], "portion", lambda graph, steps, room=None: (1, 1))
    inside = look_inside(snn, x[:2], network)
    assert inside.predictions == whole.predictions
    assert [layer.raster for layer in inside.layers] == [layer.raster for layer in whole.layers]
    steps = snn.extra_steps + 2
    for layer in inside.layers:
        assert len(layer.rate) == steps and len(layer.raster[0]) == steps and len(layer.channels) <= CHANNELS
        assert (layer.membrane is None) == (not isinstance(snn.graph[layer.name].module, IntegrateFire))
    assert len(inside.predictions[0]) == 2


def test_a_network_that_gives_a_map_has_layers_and_no_answers() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 8, 1), nn.ReLU(), nn.Conv2d(8, 2, 1)).eval()
    x = torch.rand(2, 1, 3, 3)
    inside = look_inside(ftbc.convert(net, x, 2, "maximum"), x, net)
    assert [layer.name for layer in inside.layers] == ["1"] and inside.layers[0].split is not None
    assert (inside.predictions, inside.confidences, inside.reference) == ([], [], None)
