"""Graphs in fewer operations do what they did."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ftbc.errors import UnsupportedError
from ftbc.export.agreement import agreement, recorded
from ftbc.export.rewrite import (
    first_bias,
    fully_convolutional,
    in_units,
    mean_bias,
    pads_into_weights,
    require_plain,
    windows,
)
from ftbc.graph.ops import Pad, Reduce, Reshape
from ftbc.neuron import IntegrateFire

from ..conftest import Refused
from .networks import NETWORKS, STEPS, converted


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("sum_pools", [False, True])
def test_rewritten_graphs_send_the_same_spikes(name: str, sum_pools: bool) -> None:
    snn, images = converted(name)
    graph = in_units(snn, sum_pools)
    windows(graph)
    pads_into_weights(graph)
    if len(graph.input_shape) > 1:
        fully_convolutional(graph)
        assert not graph.of_type(Reduce, Reshape, nn.Linear, nn.AdaptiveAvgPool2d)
    found = agreement(recorded(snn.graph, images, STEPS), recorded(graph, images, STEPS))
    assert found.equal and found.largest < 1e-12, found
    assert all(bool((node.module.threshold == 1).all()) for node in graph.of_type(IntegrateFire))


def test_pads_on_unequal_sides_go_into_weights() -> None:
    snn, _ = converted("mobile")
    graph = in_units(snn)
    assert graph.of_type(Pad)
    pads_into_weights(graph)
    (stem,) = [node.module for node in graph.of_type(nn.Conv2d) if node.module.in_channels == 3]
    assert not graph.of_type(Pad)
    assert stem.padding == (1, 1) and tuple(stem.weight.shape[2:]) == (4, 4) and not bool(stem.weight[:, :, 0].any())


def test_first_bias_holds_the_initial_potential() -> None:
    bias, initial = torch.randn(4, 3), torch.randn(3)
    neuron = IntegrateFire(4, 3).set(torch.ones(3), initial, bias)
    rows = first_bias(neuron)
    assert torch.equal(rows[0], bias[0] + initial) and torch.equal(rows[1:], bias[1:])
    per_neuron = torch.randn(4, 3, 2, 2)
    neuron = IntegrateFire(4, 3).set(torch.ones(3), initial, per_neuron)
    assert torch.equal(first_bias(neuron)[0], per_neuron[0] + initial.view(3, 1, 1))
    alone = IntegrateFire(4, 3).set(torch.ones(1), torch.full((1,), 0.5), bias)
    assert torch.equal(first_bias(alone)[0], bias[0] + 0.5)


@pytest.mark.parametrize("name", ["plain", "residual", "joined", "hidden", "waves"])
def test_mean_bias_is_the_mean_current(name: str) -> None:
    """A network whose biases are the mean at each step, written out by hand, is what `mean_bias` makes."""
    snn, images = converted(name)
    graph, wanted = in_units(snn), in_units(snn)
    lost = mean_bias(graph)
    for node in wanted.of_type(IntegrateFire):
        neuron = node.module
        rows = first_bias(neuron)
        mean = rows.mean(0)
        assert lost[node.name] == pytest.approx(float((rows - mean).pow(2).mean().sqrt()))
        neuron.set(neuron.threshold, torch.zeros(1, dtype=torch.float64), mean.expand_as(rows))
        assert not bool(graph[node.name].module.bias.any()) and not bool(graph[node.name].module.initial.any())
    found = agreement(recorded(wanted, images, STEPS), recorded(graph, images, STEPS))
    assert found.equal and found.largest < 1e-12
    assert not agreement(recorded(snn.graph, images, STEPS), recorded(graph, images, STEPS)).equal


def test_other_neurons_are_refused_by_name(refused: Refused) -> None:
    class Signed(IntegrateFire):
        pass

    snn, _ = converted("plain")
    name = snn.layers()[0].name
    snn.graph[name].module.__class__ = Signed
    refused(UnsupportedError, (name, "Signed", "NIR"), require_plain, snn, "NIR")
